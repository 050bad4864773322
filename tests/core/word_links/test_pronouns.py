"""Heads that follow a pronoun, by attention made by hand and by that of the bundled checkpoint."""

from dataclasses import replace

import numpy as np
import pytest
from made_words import BROTHER_TOKENS as TOKENS
from made_words import BROTHER_WORDS as WORDS
from made_words import even, looked, tokenized
from passing import look_at

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.word_links.pronouns import (
    LEAST_EXCESS,
    PRONOUNS,
    PronounSentence,
    follower,
    found_before,
    pronoun_link,
)

SENTENCE = PronounSentence("My brother broke his phone.", "his", "brother")
SPANS = ((0, 0), (0, 2), (3, 6), (6, 10), (11, 16), (17, 20), (21, 26), (26, 27), (0, 0))
TEXT = PassText(kind="self", source=tokenized(TOKENS, WORDS, SPANS))
FOLLOWS, FROM_EVERYWHERE = (0, 1), (1, 0)


def planted():
    """Two heads of six that give "brother" most of the attention of "his", one of them that of three other words."""
    attention = even(n_queries=9, n_keys=9)
    attention[FOLLOWS][5] = 0, 0.1, 0.2, 0.5, 0.1, 0, 0, 0, 0.1
    attention[FROM_EVERYWHERE][[1, 2, 3, 4, 5]] = 0, 0, 0.3, 0.5, 0, 0, 0, 0, 0.2
    return attention


def link_of(attention, **changed):
    return pronoun_link(SENTENCE, looked(attention, text=TEXT, **changed))


def test_the_excess_is_what_the_pronoun_gives_beyond_the_greatest_other_word_and_the_antecedent_itself():
    link = link_of(planted())
    assert link.attention[FOLLOWS] == pytest.approx(0.7)
    assert link.from_others[FOLLOWS] == pytest.approx([2 / 9, 2 / 9, 2 / 9, 0, 2 / 9])
    assert link.excess[FOLLOWS] == pytest.approx(0.7 - 2 / 9)
    assert link.from_others[FROM_EVERYWHERE] == pytest.approx([0.8, 0.8, 0.8, 0, 2 / 9])
    assert link.excess[FROM_EVERYWHERE] == pytest.approx(0)
    assert np.argwhere(link.follows).tolist() == [list(FOLLOWS)]
    assert follower(link, []) == FOLLOWS


def test_in_a_text_of_ones_own_a_head_is_tried_on_each_pronoun_with_an_earlier_content_word():
    (link,) = found_before(looked(planted(), text=TEXT), FOLLOWS)
    assert (link.sentence.pronoun, link.sentence.antecedent) == ("his", "brother")
    assert link.attention[FOLLOWS] == pytest.approx(0.7)
    assert link.follows[FOLLOWS]
    (link,) = found_before(looked(planted(), text=TEXT), FROM_EVERYWHERE)
    assert not link.follows[FROM_EVERYWHERE]
    without = (*TOKENS[:5], "old", *TOKENS[6:])
    nothing = PassText(kind="self", source=tokenized(without, WORDS, SPANS))
    assert found_before(looked(planted(), text=nothing), FOLLOWS) == ()
    first = PassText(
        kind="self", source=tokenized((TOKENS[0], "he", "is", "is", *TOKENS[4:5], "on", *TOKENS[6:]), WORDS, SPANS)
    )
    assert found_before(looked(planted(), text=first), FOLLOWS) == (), "no word stands before it"


def test_heads_that_attend_evenly_or_were_removed_follow_no_pronoun():
    removed = planted()
    removed[FOLLOWS] = np.nan
    assert follower(link_of(removed), []) is None
    link = link_of(even(n_queries=9, n_keys=9))
    assert link.excess == pytest.approx(0)
    assert follower(link, []) is None


def test_in_a_causal_model_words_before_the_antecedent_count_as_nothing():
    attention = even(n_queries=9, n_keys=9, causal=True)
    attention[FOLLOWS][5] = 0, 0.1, 0.3, 0.6, 0, 0, 0, 0, 0
    link = link_of(attention, causal=True)
    my, brother, broke, _, phone = link.from_others[FOLLOWS]
    assert my == 0
    assert brother == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert (broke, phone) == (pytest.approx(2 / 5), pytest.approx(2 / 7))
    assert link.excess[FOLLOWS] == pytest.approx(0.9 - brother)


def test_a_text_that_was_cut_before_the_pronoun_and_two_texts_have_no_link():
    across = PassText(kind="cross", source=TEXT.source, target=replace(TEXT.source))
    assert pronoun_link(SENTENCE, looked(planted(), text=across)) is None
    text = PassText(kind="self", source=tokenized(TOKENS[:5], WORDS[:5], SPANS[:5]))
    attention = even(n_queries=5, n_keys=5)
    whole = Window((0, 5), (0, 5))
    assert pronoun_link(SENTENCE, looked(attention, text=text, window=whole)) is None


def test_a_head_that_follows_in_most_other_sentences_comes_before_one_that_follows_most_here():
    attention = planted()
    here = link_of(attention)
    attention[0, 0][5] = 0, 0, 0.3, 0.3, 0.1, 0.1, 0.1, 0, 0.1
    both = link_of(attention)
    only_second = link_of(np.where(np.arange(3)[:, None, None] == 1, even(n_queries=9, n_keys=9), attention))
    assert both.excess[FOLLOWS] > both.excess[0, 0] >= LEAST_EXCESS
    assert follower(both, []) == FOLLOWS
    assert follower(both, [only_second, only_second, both]) == (0, 0)
    assert follower(both, [only_second, both]) == (0, 0)
    assert follower(both, [only_second, here]) == FOLLOWS, "neither follows in most"


def test_each_pronoun_and_antecedent_occurs_once():
    for each in PRONOUNS:
        words = each.sentence.rstrip(".").split()
        assert words.count(each.pronoun) == words.count(each.antecedent) == 1


def test_in_the_bundled_checkpoint_one_head_follows_the_pronoun_most_and_in_most_sentences(bundled):
    links = [pronoun_link(each, look_at(bundled, each.text)[0]) for each in PRONOUNS]
    head = follower(links[0], links[1:])
    assert head == (2, 4)
    assert links[0].attention[head] == pytest.approx(0.64, abs=0.005)
    assert links[0].from_others[head].max() == pytest.approx(0.12, abs=0.005)
    assert links[0].attention[5, 2] == pytest.approx(0.68, abs=0.005)
    assert links[0].from_others[5, 2][:2] == pytest.approx([0.47, 0.87], abs=0.005)
    assert sum(link.follows[head] for link in links[1:]) == 5
