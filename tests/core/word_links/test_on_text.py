"""Which heads look from one word to another, by attention made by hand."""

import numpy as np
import pytest
from made_words import even, looked, tokenized

from attention_sieve.core.attention.settings import Reach, Window
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.core.word_links.on_text import other_words, word_links, words_on


def word(name, occurrence=1, window=(0, 8)):
    return next(each for each in words_on(tokenized(), window) if (each.text, each.occurrence) == (name, occurrence))


def test_words_of_several_tokens_are_one_and_repeated_ones_are_counted():
    words = words_on(tokenized(), (0, 8))
    assert [each.text for each in words] == ["[CLS]", "the", "baker", "saw", "the", "shop", "[SEP]"]
    assert [(each.occurrence, each.n_occurrences) for each in words if each.text == "the"] == [(1, 2), (2, 2)]
    assert word("baker").tokens == (2, 3)
    assert [each.segment for each in words] == [SPECIAL, 0, 0, 0, 0, 0, SPECIAL]
    in_window = words_on(tokenized(), (3, 6))
    assert [(each.text, each.occurrence) for each in in_window] == [("saw", 1), ("the", 2)], "whole words only"


def test_each_special_token_stands_for_itself():
    words = words_on(tokenized(("[CLS]", "a", "[SEP]", "b", "[SEP]"), (-1, 0, -1, 1, -1)), (0, 5))
    assert [(each.text, each.tokens, each.occurrence) for each in words if each.segment == SPECIAL] == [
        ("[CLS]", (0,), 1),
        ("[SEP]", (2,), 1),
        ("[SEP]", (4,), 2),
    ]


def test_a_word_is_shown_without_the_space_before_it_and_each_character_once():
    tokens = tokenized(
        ("▁", "s", "hop", "é", "é", "</s>"), (0, 0, 0, 1, 1, SPECIAL), [(1, 1), (1, 2), (2, 5), *((5, 6),) * 2, (0, 0)]
    )
    assert [each.text for each in words_on(tokens, (0, 6))] == ["shop", "é", "</s>"]


def test_the_planted_head_comes_first_with_its_attention_by_hand():
    attention = even()
    attention[1, 2, 2] = 0, 0, 0, 0, 0.1, 0, 0.7, 0.2
    attention[1, 2, 3] = 0, 0, 0, 0, 0.5, 0, 0.5, 0
    # To a word its tokens' sum, from a word its tokens' mean.
    there = word_links(looked(attention), [word("baker")], [word("shop")])
    assert there.ranked[0] == (1, 2)
    assert there.shares[1, 2] == pytest.approx((0.7 + 0.5) / 2)
    assert there.even == pytest.approx(np.full((2, 3), 1 / 8))
    # One link is compared with its even share; a random split gives it more than 0.6 with p = (1 - 0.6) ** 7.
    assert there.chance == pytest.approx([1 / 8, 1 / 8], rel=1e-3)
    assert there.p[1, 2] == pytest.approx(0.4**7)
    assert np.argwhere(there.beats_chance(0.05, "holm")).tolist() == [[1, 2]]
    attention[0, 1, 6] = 0, 0, 0.3, 0.6, 0.1, 0, 0, 0
    back = word_links(looked(attention), [word("shop")], [word("baker")])
    assert (back.ranked[0], back.shares[0, 1]) == ((0, 1), pytest.approx(0.9))
    assert back.even == pytest.approx(np.full((2, 3), 2 / 8))


def test_the_other_occurrence_of_a_word_is_another_word():
    attention = even()
    attention[0, 0, 6] = np.eye(8)[5]
    shares = [word_links(looked(attention), [word("shop")], [word("the", which)]).shares[0, 0] for which in (1, 2)]
    assert shares == [0, 1]


def test_any_other_word_is_the_one_of_the_strongest_link_and_neither_special_nor_itself():
    attention = even()
    attention[1, 0, 4] = 0.5, 0, 0.1, 0.1, 0.1, 0.12, 0.08, 0
    words = words_on(tokenized(), (0, 8))
    saw = word("saw")
    others = other_words(words, saw, same_text=True)
    assert [each.text for each in others] == ["the", "baker", "the", "shop"]
    links = word_links(looked(attention), [saw], others)
    assert (others[links.keys[1, 0]].text, links.shares[1, 0]) == ("baker", pytest.approx(0.2))
    assert links.even[1, 0] == pytest.approx(2 / 8)
    assert links.n_links.tolist() == [4, 4]
    assert (links.chance > 2 / 8).all(), "the strongest of four words gets more than an even share by chance"
    attention[0, 2, 6] = np.eye(8)[4]
    back = word_links(looked(attention), others, [saw])
    assert (others[back.queries[0, 2]].text, back.shares[0, 2], back.ranked[0]) == ("shop", 1, (0, 2))
    assert set(other_words(words, saw, same_text=False)) == {*others, saw}


def test_equal_heads_are_ranked_by_layer_and_head():
    links = word_links(looked(even() * 1.0005), [word("shop")], [word("saw")])  # as half precision may round it
    assert links.ranked == [(layer, head) for layer in range(2) for head in range(3)]
    assert not links.beats_chance(0.05, "none").any()


def test_chance_counts_the_keys_that_a_query_can_see():
    causal = word_links(looked(even(causal=True), causal=True), [word("shop")], [word("baker")])
    assert causal.even == pytest.approx(np.full((2, 3), 2 / 7))
    assert causal.shares == pytest.approx(causal.even)
    near = looked(even(), reaches=(Reach(), Reach(back=1, ahead=1)))
    assert word_links(near, [word("shop")], [word("the", 2)]).even[:, 0] == pytest.approx([1 / 8, 1 / 3])


def test_a_layer_whose_window_hides_the_word_is_not_ranked():
    links = word_links(looked(even(), reaches=(Reach(back=1), Reach())), [word("shop")], [word("baker")])
    assert links.ranked == [(1, 0), (1, 1), (1, 2)]
    assert np.isnan(links.shares[0]).all()
    assert np.isnan(links.even[0]).all()


def test_a_window_of_a_long_text_gives_what_the_whole_map_gives():
    attention = np.random.default_rng(0).dirichlet(np.ones(8), size=(2, 3, 8))
    whole = word_links(looked(attention), [word("baker")], [word("the", 2)])
    window = Window((2, 5), (4, 7))
    part = looked(attention[:, :, 2:5, 4:7], window=window)
    inside = word_links(part, [word("baker", window=(2, 5))], [word("the", 2, window=(4, 7))])
    assert inside.shares == pytest.approx(whole.shares)
    assert inside.even == pytest.approx(whole.even)


def at_random(rng, n_heads, *, causal=False):
    """Attention of many heads that is split at random among the tokens that each query sees."""
    weights = rng.exponential(size=(2, n_heads, 8, 8)) * (np.tril(np.ones((8, 8))) if causal else 1)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("query", "key", "causal"),
    [("shop", "saw", True), ("shop", None, False), (None, "the", True), ("baker", None, True), (None, "baker", False)],
)
def test_of_heads_that_attend_at_random_few_have_a_link_beyond_chance(query, key, causal):
    words, n_heads = words_on(tokenized(), (0, 8)), 2_000
    others = list(other_words(words, word(query or key), same_text=True))
    queries, keys = (others if name is None else [word(name)] for name in (query, key))
    links = word_links(
        looked(at_random(np.random.default_rng(1), n_heads, causal=causal), causal=causal), queries, keys
    )
    false, margin = (links.p < 0.05).mean(), 3 * np.sqrt(0.05 * 0.95 / links.p.size)
    assert false < 0.05 + margin
    if all(len(each.tokens) == 1 for each in queries):
        assert false > 0.03
        assert links.chance == pytest.approx(links.shares.mean(axis=1), rel=0.03)
    else:  # the mean over a word's tokens varies less than chance reckons with
        assert (links.chance > 0.97 * links.shares.mean(axis=1)).all()
    if links.n_links[0] > 1:
        assert (links.shares > links.even).mean() > 0.5, "beside an even share, most heads seem to have a link"


def test_words_of_two_texts_are_linked_across_them():
    source, target = tokenized(), tokenized(("<s>", "le", "magasin"), (-1, 0, 1))
    across = PassText(kind="cross", source=source, target=target)
    attention = even(n_queries=3)
    attention[1, 1, 2] = np.eye(8)[6]
    links = word_links(looked(attention, text=across), [words_on(target, (0, 3))[2]], [word("shop")])
    assert (links.ranked[0], links.shares[1, 1], links.even[0, 0]) == ((1, 1), 1, 1 / 8)


@pytest.mark.parametrize(
    ("queries", "keys", "sentence"),
    [
        (["saw"], ["shop"], "“saw” cannot look at “shop”: here each token sees only itself and what comes before it."),
        (["the"], ["baker", "saw"], "“the” cannot look at another word: here each token sees only itself"),
        (["the", "saw"], ["shop"], "No other word can look at “shop”: here each token sees only itself"),
    ],
)
def test_a_later_word_cannot_be_seen(queries, keys, sentence):
    with pytest.raises(AnalysisError, match=sentence):
        word_links(looked(even(causal=True), causal=True), [word(of) for of in queries], [word(of) for of in keys])


def test_words_too_far_apart_are_said_to_be():
    reaches = (Reach(back=1, ahead=1),) * 2
    with pytest.raises(AnalysisError, match="“saw” cannot look at “shop”: in every layer they are too far apart"):
        word_links(looked(even(), reaches=reaches), [word("saw")], [word("shop")])


def test_a_text_of_one_word_has_no_other():
    words = words_on(tokenized(("[CLS]", "shop", "[SEP]"), (-1, 0, -1)), (0, 3))
    with pytest.raises(AnalysisError, match="There is no other word than “shop” to link it with"):
        other_words(words, words[1], same_text=True)
