"""The most surprising links of a text, by attention made by hand and, once more, word by word."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_words import BROTHER_TOKENS, BROTHER_WORDS, even, looked, tokenized
from passing import look_at

from attention_sieve.core import analysis
from attention_sieve.core.attention.settings import PassSettings, Reach
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.core.word_links.analysis import DISTANCES
from attention_sieve.core.word_links.habits import (
    FURTHEST,
    Habits,
    habits_of,
    surprising_links,
    text_distances,
    word_attention,
)

TEXT = PassText(kind="self", source=tokenized(BROTHER_TOKENS, BROTHER_WORDS))
WORD_TOKENS = {"my": (1,), "brother": (2, 3), "broke": (4,), "his": (5,), "phone": (6,)}
FOLLOWS, FROM_EVERYWHERE, ONE_AHEAD = (0, 1), (1, 0), (1, 2)
SENTENCES = ("The black cat quickly chased two birds.", "Who sat on the red mat, where she ran?", "A dog ran.")


def no_habits(n_layers=2, n_heads=3):
    """Of heads that usually give nothing to any word."""
    shape = (n_layers, n_heads, 2 * FURTHEST + 1)
    return Habits(means=np.zeros(shape), deviations=np.zeros(shape))


def planted():
    """Three heads that give "brother" more than an even share of the attention of "his", each in its own way."""
    attention = even(n_queries=9, n_keys=9)
    attention[FOLLOWS][5] = 0, 0.1, 0.2, 0.5, 0.1, 0, 0, 0, 0.1
    attention[FROM_EVERYWHERE][[1, 4, 5, 6]] = 0, 0, 0.3, 0.5, 0, 0, 0, 0, 0.2
    attention[ONE_AHEAD][5] = np.eye(9)[6]
    return attention


def by_hand(text_attention, habits):
    """The best link of each head and its excess, pair by pair from the definition."""
    words, names, attention = WORD_TOKENS, list(WORD_TOKENS), text_attention.attention.astype(float)
    reaches = text_attention.reaches or (Reach(),) * len(attention)

    def sees(layer, query, key):
        behind, ahead = reaches[layer].back, reaches[layer].ahead
        return not (
            (text_attention.causal and key > query)
            or (behind is not None and query - key > behind)
            or (ahead is not None and key - query > ahead)
        )

    def link(layer, head, query, key):
        return np.mean([sum(attention[layer, head, i, j] for j in words[key]) for i in words[query]])

    def can(layer, query, key):
        return query != key and any(sees(layer, i, j) for i in words[query] for j in words[key])

    best = {}
    for layer, head in np.ndindex(attention.shape[:2]):
        for q, query in enumerate(names):
            for k, key in enumerate(names):
                others = [o for o in names if o not in (query, key) and can(layer, o, key)]
                if not can(layer, query, key) or not others:
                    continue
                place = min(max(k - q, -FURTHEST), FURTHEST) + FURTHEST
                usual = habits.means[layer, head, place] + habits.deviations[layer, head, place]
                from_others = np.mean([link(layer, head, other, key) for other in others])
                compared = from_others if np.isnan(usual) else max(usual, from_others)
                excess = link(layer, head, query, key) - compared
                if not np.isnan(excess) and excess > best.get((layer, head), (-np.inf,))[0]:
                    best[layer, head] = excess, query, key
    return best


def test_the_link_of_one_word_stands_out_and_that_of_a_column_or_a_habit_does_not():
    habits = no_habits()
    habits.means[(*ONE_AHEAD, FURTHEST + 1)], habits.deviations[(*ONE_AHEAD, FURTHEST + 1)] = 0.7, 0.25
    first, *rest = surprising_links(looked(planted(), text=TEXT), habits)
    assert (first.head, first.query.text, first.key.text) == (FOLLOWS, "his", "brother")
    # The other words that can look at "brother" are three; each gives 1 / 9 to each of its two tokens.
    assert (first.attention, first.usual) == (pytest.approx(0.7), 0)
    assert (first.from_others, first.even) == (pytest.approx(2 / 9), pytest.approx(2 / 9))
    assert first.excess == pytest.approx(0.7 - 2 / 9)
    excesses = {link.head: link.excess for link in rest}
    # What is left is "brother", which looks evenly, while the others give the rest of the words nothing.
    assert excesses[FROM_EVERYWHERE] == pytest.approx(1 / 9)
    assert excesses[ONE_AHEAD] < 0.1, "it usually gives the next word as much as here"
    assert [link.stands_out for link in (first, replace(first, attention=0.6))] == [True, False]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("reaches", [(), (Reach(), Reach(2, 1))])
@given(seed=st.integers(0, 1_000))
def test_every_heads_best_link_is_the_one_found_pair_by_pair(causal, reaches, seed):
    rng = np.random.default_rng(seed)
    attention = rng.dirichlet(np.full(9, 0.3), (2, 3, 9))
    habits = no_habits()
    habits.means[:], habits.deviations[:] = rng.uniform(0, 0.3, (2, *habits.means.shape))
    habits.means[0, :, FURTHEST - 2] = np.nan
    attention[1, 1] = np.nan
    text_attention = looked(attention, text=TEXT, causal=causal, reaches=reaches)
    links, expected = surprising_links(text_attention, habits), by_hand(text_attention, habits)
    assert {link.head: (link.query.text, link.key.text) for link in links} == {
        head: (query, key) for head, (_, query, key) in expected.items()
    }
    assert [link.excess for link in links] == pytest.approx(sorted(each[0] for each in expected.values())[::-1])
    assert (1, 1) not in expected


@given(seed=st.integers(0, 1_000))
def test_links_do_not_depend_on_attention_to_and_from_special_tokens_and_punctuation(seed):
    rng = np.random.default_rng(seed)
    attention = rng.dirichlet(np.full(9, 0.3), (2, 3, 9))
    links = surprising_links(looked(attention, text=TEXT), no_habits())
    changed = attention.copy()
    changed[:, :, [0, 7, 8]] = rng.dirichlet(np.full(9, 0.3), (2, 3, 3))
    changed[..., [0, 7, 8]] = rng.random((2, 3, 9, 3))
    assert surprising_links(looked(changed, text=TEXT), no_habits()) == links


def test_two_occurrences_of_a_word_are_not_linked():
    tokens = ("[CLS]", "The", "dog", "saw", "the", "cat", "[SEP]")
    attention = even(n_queries=7, n_keys=7)
    attention[0, 0, 4] = np.eye(7)[1]
    text = PassText(kind="self", source=tokenized(tokens, (SPECIAL, 0, 1, 2, 3, 4, SPECIAL)))
    links = surprising_links(looked(attention, text=text), no_habits())
    assert max(link.excess for link in links) < 0.05, "the whole attention of one goes to the other"
    assert not [link for link in links if link.query.text.casefold() == link.key.text.casefold()]


@pytest.mark.parametrize("words", [("[CLS]", "[SEP]"), ("[CLS]", "one", "[SEP]"), ("[CLS]", "one", "two", "[SEP]")])
def test_a_text_of_fewer_than_three_words_has_no_link_to_compare(words):
    numbers = (SPECIAL, *range(len(words) - 2), SPECIAL)
    text, n_tokens = PassText(kind="self", source=tokenized(words, numbers)), len(words)
    attention = even(n_queries=n_tokens, n_keys=n_tokens)
    assert surprising_links(looked(attention, text=text), no_habits()) == ()


def test_habits_are_means_and_deviations_over_the_pairs_of_all_texts():
    rng = np.random.default_rng(2)
    maps = [rng.dirichlet(np.full(9, 0.3), (2, 3, 9)) for _ in range(2)]
    texts = [word_attention(looked(attention, text=TEXT, causal=True)) for attention in maps]
    habits, names = habits_of([text_distances(text) for text in texts]), list(WORD_TOKENS)
    for distance in (-1, -3):
        values = [
            np.mean(
                [[attention[..., i, j] for j in WORD_TOKENS[names[q + distance]]] for i in WORD_TOKENS[names[q]]], 0
            ).sum(axis=0)
            for attention in maps
            for q in range(len(names))
            if q + distance >= 0
        ]
        np.testing.assert_allclose(habits.means[..., FURTHEST + distance], np.mean(values, axis=0))
        np.testing.assert_allclose(habits.deviations[..., FURTHEST + distance], np.std(values, axis=0))
    assert np.isnan(habits.usual[..., FURTHEST + 1 :]).all(), "no word attends to a later one"
    assert np.isnan(habits.usual[..., FURTHEST]).all(), "no word is linked to itself"


@pytest.mark.parametrize(
    ("family", "kind", "causal"),
    [("bert", "self", False), ("gpt2", "self", True), ("t5", "encoder", False), ("mistral", "self", True)],
)
def test_habits_of_a_checkpoint_are_those_of_its_maps_text_by_text(loaded, family, kind, causal):
    checkpoint, pass_settings = loaded(family), PassSettings(kind)
    texts = [Text((sentence,)) for sentence in SENTENCES]
    habits = habits_of(analysis.results(checkpoint, DISTANCES, texts, pass_settings))
    looks = [look_at(checkpoint, text, pass_settings)[0] for text in texts]
    assert {look.causal for look in looks} == {causal}
    of_looks = habits_of([text_distances(word_attention(look)) for look in looks])
    np.testing.assert_allclose(habits.means, of_looks.means, atol=1e-3)  # maps are kept in half precision
    np.testing.assert_allclose(habits.deviations, of_looks.deviations, atol=2e-3)
    for look in looks:
        links = surprising_links(look, habits)
        assert len(links) == habits.means[..., 0].size or len(look.text.queries.ids) < 7
        for link in links:
            assert not causal or link.query.tokens[-1] > link.key.tokens[0]


def test_his_means_brother_in_the_bundled_checkpoint(bundled):
    """Numbers as in the study of the design notes."""
    from attention_sieve.dashboard.samples import read_sample

    habits = habits_of(analysis.results(bundled, DISTANCES, read_sample("both")))
    links = surprising_links(look_at(bundled, Text(("My brother broke his new phone.",)))[0], habits)
    first, second = links[:2]
    assert (first.head, first.query.text, first.key.text) == ((2, 4), "his", "brother")
    assert (round(first.attention, 2), first.stands_out) == (0.64, True)
    assert first.from_others < 0.12
    assert (second.head, second.query.text, second.key.text) == ((3, 1), "broke", "phone")
    assert round(second.attention, 2) == 0.81
    assert not next(link for link in links if link.head == (5, 2)).stands_out
