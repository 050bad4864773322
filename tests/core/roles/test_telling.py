"""The head to show first, on attention made by hand: 2 layers, 3 heads."""

import numpy as np
import pytest
from made_texts import pair, text

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.roles.sieves import telling_head

PREVIOUS, RELATED, LATER = (0, 1), (1, 2), (1, 0)
"""Heads that look one token back, at the related word, and at a word of the second half of the text."""
PAIRS = (pair("amod", (1,), (2,)), pair("nsubj", (3,), (6,)), pair("dobj", (7,), (4,)))


def looked(attention, pairs=PAIRS, start=0, causal=False):
    """The attention of [CLS], eight words and [SEP], or of what of it begins at a token."""
    tokens = text(8)
    ends = (start, len(tokens.ids))
    return TextAttention(
        text=PassText(kind="self", source=tokens, pairs=pairs),
        causal=causal,
        window=Window(ends, ends),
        attention=attention[..., start:, start:],
        block=0,
        overview=None,
    )


@pytest.fixture
def attention():
    """Even attention, but for the heads that are named above."""
    rows = np.full((2, 3, 10, 10), 0.1)
    rows[PREVIOUS] = np.eye(10, k=-1)
    for query, key in ((1, 2), (3, 6), (7, 4)):
        rows[RELATED][query] = np.eye(10)[key]
    rows[LATER][1:9] = np.eye(10)[[1, 2, 3, 4, 5, 8, 6, 8]]
    return rows


def test_the_head_that_joins_related_words_tells_more_than_one_that_always_looks_back(attention):
    assert telling_head(looked(attention)) == RELATED


def test_a_fixed_distance_tells_nothing_even_where_related_words_stand_at_it(attention):
    neighbours = tuple(pair("amod", (at + 1,), (at,)) for at in range(1, 8))
    attention[RELATED] = 0.1
    attention[RELATED][2] = np.eye(10)[1]
    assert telling_head(looked(attention, neighbours)) != PREVIOUS


def test_without_relations_every_word_counts_as_related(attention):
    attention[RELATED] = 0.1
    assert telling_head(looked(attention, ())) == LATER


def test_only_the_window_of_a_long_text_counts(attention):
    attention[0, 0, 7] = np.eye(10)[4]
    attention[RELATED][7] = 0.1
    assert telling_head(looked(attention)) == RELATED
    assert telling_head(looked(attention, start=4)) == (0, 0)


def test_heads_that_all_attend_evenly_give_the_first(attention):
    assert telling_head(looked(np.full_like(attention, 0.1))) == (0, 0)
