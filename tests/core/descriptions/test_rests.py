"""Which words give most to what a head rests on, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from made_heads import surface

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.descriptions.examples import MOST_TOKENS, resting, rests, telling_texts
from attention_sieve.core.descriptions.facts import HeadDescription, ShareFact
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText, words_of

HEAD = (1, 2)
TEXT = Text(("the baker left .",))
TOKENS, WORDS = ("[CLS]", "the", "ba", "##ker", "left", ".", "[SEP]"), (SPECIAL, 0, 1, 1, 2, 3, SPECIAL)
SPANS = ((0, 0), (0, 3), (4, 6), (6, 9), (10, 14), (15, 16), (0, 0))
GIVEN = (0.9, 0.2, 0.3, 0.7, 0.4, 0.8, 0.1)
"""What each token gives to the target; the rest goes to "the"."""


def looked(key):
    words = np.array(WORDS)
    tokens = TokenizedText(
        ids=np.arange(len(TOKENS)),
        type_ids=np.zeros(len(TOKENS), int),
        tokens=TOKENS,
        spans=np.array(SPANS),
        segments=np.where(words == SPECIAL, SPECIAL, 0),
        words=words,
        is_cls=np.array([token == "[CLS]" for token in TOKENS]),
        is_sep=np.array([token == "[SEP]" for token in TOKENS]),
        n_cut=0,
    )
    attention = np.zeros((2, 3, len(TOKENS), len(TOKENS)))
    attention[HEAD][:, 1] = 1 - np.array(GIVEN)
    attention[HEAD][:, key] += GIVEN
    return TextAttention(
        text=PassText(kind="self", source=tokens),
        causal=False,
        window=Window((0, len(TOKENS)), (0, len(TOKENS))),
        attention=attention,
        block=0,
        overview=None,
    )


@pytest.mark.parametrize(("target", "key"), [("cls", 0), ("first", 0), ("punctuation", 5), ("sep", 6)])
def test_the_words_that_give_most_and_least_are_found(target, key):
    found = rests(target, HEAD, looked(key), TEXT, words_of(TEXT))
    assert found.shares == pytest.approx([0.2, 0.5, 0.4, 0.8])
    assert (found.most, found.least) == ((1,), (0,)), "the full stop gives more, and is no word"


def test_a_text_without_the_target_or_with_one_word_shows_nothing():
    of_text = looked(0)
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
    rest = ShareFact(target="cls", share=0.3, low=0.2, high=0.4, even=0.1)
    facts = (replace(rest, target="previous"), rest)
    assert resting(HeadDescription(head=HEAD, n_texts=1, facts=facts)) is rest
    assert resting(HeadDescription(head=HEAD, n_texts=1, facts=facts[:1])) is None
