"""The texts that show what a head does, and the words that give most to what it rests on, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from made_heads import FINDER, ROOT, predictions, surface
from made_stories import made
from made_words import looked, tokenized

from attention_sieve.core.descriptions.accuracies import (
    HeadDescription,
    KeyControl,
    MentionFact,
    ReadMentions,
    RelationFact,
    ShareFact,
)
from attention_sieve.core.descriptions.examples import MOST_TOKENS, examples, resting, rests, telling_texts
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, words_of

HEAD = (1, 2)
CONTROL = KeyControl(to_right=0.3, from_others=0.1, p_value=0.001, beats=True, from_everywhere=False)
RELATION = RelationFact(
    relation="nsubj", direction="dependent-to-head", accuracy=0.8, low=0.7, high=0.9, baseline=0.4, offset=1,
    where_wrong=0.7, surplus=0.1, n_cases=50, p_value=0.001, control=CONTROL,
)  # fmt: skip
MENTIONED = MentionFact(
    source="stories", accuracy=0.9, low=0.8, high=1.0, nearest=0.5, same_word=0.5, where_wrong=0.8, surplus=0.1,
    n_cases=40, n_documents=40, p_value=0.01, control=CONTROL,
)  # fmt: skip
REST = ShareFact(target="cls", share=0.6, low=0.5, high=0.7, even=0.1)
PREVIOUS = replace(REST, target="previous")
TREE = ([1, ROOT, 3, ROOT], ["nsubj", "root", "nsubj", "root"])


def shown(facts, texts, shares=None):
    """The fact that is shown, and the places and links of the examples."""
    of_texts = [surface(previous={HEAD: share}) for share in shares or [0.1] * len(texts)]
    named = [Text((str(id(text)),)) for text in texts]
    fact, found = examples(HeadDescription(head=HEAD, n_texts=len(texts), facts=facts), named, of_texts, texts)
    return fact, [(named.index(each.text), [(link.query, link.key) for link in each.links]) for each in found]


def test_a_relation_is_shown_where_most_of_its_words_are_right_less_those_that_are_wrong():
    half = predictions(*TREE, {HEAD: [1, -1, 0, -1]})
    both = predictions(*TREE, {HEAD: [1, -1, 3, -1]})
    one = predictions([1, ROOT], ["nsubj", "root"], {HEAD: [1, -1]})
    none = predictions(*TREE, {HEAD: [2, -1, 0, -1]})
    fact, found = shown((REST, RELATION), [half, none, one, both])
    assert fact is RELATION
    assert found == [(3, [(0, 1), (2, 3)]), (2, [(0, 1)]), (0, [(0, 1)])]


def test_the_other_direction_links_the_head_to_its_dependent():
    turned = replace(RELATION, direction="head-to-dependent")
    text = predictions([1, ROOT], ["nsubj", "root"], {}, {HEAD: [1, -1]})
    assert shown((turned,), [text])[1] == [(0, [(1, 0)])]


def test_the_previous_token_is_shown_where_it_gets_most_by_words_that_share_none():
    texts = [predictions(*TREE, {HEAD: [-1, 0, 1, 2]}) for _ in range(4)]
    fact, found = shown((PREVIOUS,), texts, [0.4, 0.9, 0.6, 0.7])
    assert fact is PREVIOUS
    assert found == [(place, [(1, 0), (3, 2)]) for place in (1, 3, 2)]


def test_equal_texts_are_shown_once():
    text = predictions([1, ROOT], ["nsubj", "root"], {HEAD: [1, -1]})
    assert shown((RELATION,), [text, text])[1] == [(0, [(0, 1)])]


def test_what_no_word_shows_has_no_example():
    assert shown((REST,), [predictions(*TREE, {HEAD: [1, -1, 3, -1]})]) == (None, [])
    assert examples(HeadDescription(head=HEAD, n_texts=0, facts=()), [], [], []) == (None, ())


def test_what_a_mention_refers_to_is_shown_where_most_choices_are_right_by_the_nearest_first():
    told = HeadDescription(head=FINDER, n_texts=1, facts=(REST, RELATION, MENTIONED))
    read = made(3)  # in the first three texts the head is right
    texts = [replace(text, text=Text((f"{text.text.segments[0]} {place}",))) for place, text in enumerate(read.texts)]
    wrong = replace(texts[0], text=Text(("Ann saw Bo and it rained",)))
    choices = [*read.choices, replace(read.choices[0], mentions=np.full((2, 3, 3), 2))]
    mentions = ReadMentions(name="stories", texts=[*texts, wrong], choices=choices)
    fact, found = examples(told, [], [], None, mentions)
    assert fact is MENTIONED
    assert [(each.text, [(link.query, link.key) for link in each.links]) for each in found] == [
        (text.text, [(4, 0)]) for text in texts
    ]


TEXT = Text(("the baker left .",))
TOKENS, WORDS = ("[CLS]", "the", "ba", "##ker", "left", ".", "[SEP]"), (SPECIAL, 0, 1, 1, 2, 3, SPECIAL)
SPANS = ((0, 0), (0, 3), (4, 6), (6, 9), (10, 14), (15, 16), (0, 0))
GIVEN = (0.9, 0.2, 0.3, 0.7, 0.4, 0.8, 0.1)
"""What each token gives to the target; the rest goes to "the"."""


def attended(key):
    names = np.array(TOKENS)
    source = replace(tokenized(TOKENS, WORDS, SPANS), is_cls=names == "[CLS]", is_sep=names == "[SEP]")
    attention = np.zeros((2, 3, len(TOKENS), len(TOKENS)))
    attention[HEAD][:, 1] = 1 - np.array(GIVEN)
    attention[HEAD][:, key] += GIVEN
    return looked(attention, text=PassText(kind="self", source=source))


@pytest.mark.parametrize(("target", "key"), [("cls", 0), ("first", 0), ("punctuation", 5), ("sep", 6)])
def test_the_words_that_give_most_and_least_are_found(target, key):
    found = rests(target, HEAD, attended(key), TEXT, words_of(TEXT))
    assert found.shares == pytest.approx([0.2, 0.5, 0.4, 0.8])
    assert (found.most, found.least) == ((1,), (0,)), "the full stop gives more, and is no word"


def test_a_text_without_the_target_or_with_one_word_shows_nothing():
    of_text = attended(0)
    without = replace(of_text.text.source, is_sep=np.zeros(len(TOKENS), bool))
    of_one_word = Text(("the-baker-left-.",))
    without_target = replace(of_text, text=PassText(kind="self", source=without))
    assert rests("sep", HEAD, without_target, TEXT, words_of(TEXT)) is None
    assert rests("cls", HEAD, of_text, of_one_word, words_of(of_one_word)) is None


def test_short_texts_that_give_most_are_told_once_each():
    again = surface(cls={HEAD: 0.7})
    texts = [surface(cls={HEAD: 0.5}), again, surface(cls={HEAD: 0.6}), again, surface(cls={HEAD: np.nan})]
    long = surface(n_keys=MOST_TOKENS + 1, cls={HEAD: 0.9})
    assert telling_texts("cls", HEAD, [long, *texts]) == (2, 3, 1)
    first = np.zeros((6, 2, 3))
    first[:, *HEAD] = [0.9, 0.1, 0.2, 0.2, 0.5, 0.4]
    assert telling_texts("first", HEAD, [long, *texts], first) == (4, 5, 3)
    assert telling_texts("first", HEAD, texts) == ()


def test_a_head_rests_on_what_no_link_shows():
    assert resting(HeadDescription(head=HEAD, n_texts=1, facts=(PREVIOUS, REST))) is REST
    assert resting(HeadDescription(head=HEAD, n_texts=1, facts=(PREVIOUS,))) is None
