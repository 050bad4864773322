"""The most surprising links of one text: attention beyond what a head gives at that distance, and to that word anyway.

A link from one word to another is compared with two things, and the larger one counts. The first is up to how much the
head usually gives to a word at that distance; else heads win that always look one word ahead. The second is what the
other words of this text give to the same word on average; else heads win that look at one word from everywhere.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from numpy.lib.stride_tricks import sliding_window_view

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.word_links.habits import FURTHEST, Habits, WordAttention, word_attention
from attention_sieve.core.word_links.on_text import TextWord

STANDS_OUT: Final = 0.45
"""Least excess of a link that stands out: a choice of this project, far above random weights, whose greatest is 0.06 in
128 sample texts. Shuffling words or permuting keys gives none, as such texts reach it about as often:
`benchmarks.findings.surprising_links` prints how often."""


@dataclass(frozen=True, kw_only=True)
class SurprisingLink:
    """A link between two words of a text, and what it is compared with. All shares are from 0 to 1."""

    head: Head
    query: TextWord
    """The word that looks."""
    key: TextWord
    """The word that it looks at."""
    attention: float
    """From the one to the other: sum over the tokens of the key, mean over those of the query."""
    usual: float
    """Up to how much the head usually gives to a word at this distance (`Habits.usual`); NaN where no text has words
    that far apart."""
    from_others: float
    """Mean attention to the same word from the other words of the text that can attend to it."""
    even: float
    """What evenly spread attention would give."""

    @property
    def excess(self) -> float:
        """Attention minus the larger of the two that it is compared with."""
        return self.attention - float(np.fmax(self.usual, self.from_others))

    @property
    def stands_out(self) -> bool:
        """Whether the excess is at least STANDS_OUT."""
        return self.excess >= STANDS_OUT


def surprising_links(text_attention: TextAttention, habits: Habits) -> tuple[SurprisingLink, ...]:
    """The most surprising link of each head, the greatest excess first.

    Special tokens and words without a letter or digit are no part of links; nor do links join two occurrences of one
    word, which would win in every text that has any. A link counts only if a third word can attend to its key, too.

    Args:
        text_attention: a text, whose queries and keys are the same tokens; of a long text, the window counts.
        habits: of the same checkpoint and kind of attention.

    Returns: one link per head that has any; empty for a text with fewer than three words.
    """
    text, window = text_attention.text, text_attention.window
    if text.queries is not text.keys or window.queries != window.keys:
        return ()
    words = word_attention(text_attention)
    if not words.words:
        return ()
    usual, joins = _by_pair(habits.usual, len(words.words)), words.joins
    spellings = np.array([word.text.casefold() for word in words.words])
    is_comparable = joins & (joins.sum(axis=1, keepdims=True) > 1) & (spellings[:, None] != spellings)
    links = [
        link
        for layer in range(len(words.attention))
        for link in _of_layer(words, layer, usual[layer], joins[layer], is_comparable[layer])
    ]
    return tuple(sorted(links, key=lambda link: -link.excess))


def _of_layer(
    words: WordAttention,
    layer: int,
    usual: Float[np.ndarray, "head word key_word"],
    joins: Bool[np.ndarray, "word key_word"],
    is_comparable: Bool[np.ndarray, "word key_word"],
) -> list[SurprisingLink]:
    """The most surprising link of each head of a layer: layer by layer, a long text fits the processor's cache."""
    attention = words.attention[layer]
    from_others = _from_others(attention, joins)
    excess = np.fmax(usual, from_others)
    np.subtract(attention, excess, out=excess)  # fresh memory would take longer than the calculation
    excess[np.isnan(excess) | ~is_comparable] = -np.inf
    best, n_words = excess.reshape(len(excess), -1).argmax(axis=-1), len(words.words)
    places = [(head, *divmod(place, n_words)) for head, place in enumerate(best.tolist())]
    return [
        SurprisingLink(
            head=(layer, head),
            query=words.words[query],
            key=words.words[key],
            attention=float(attention[head, query, key]),
            usual=float(usual[head, query, key]),
            from_others=float(from_others[head, query, key]),
            even=float(words.even[layer, query, key]),
        )
        for head, query, key in places
        if excess[head, query, key] > -np.inf
    ]


def _by_pair(
    at_distance: Float[np.ndarray, "layer head distance"], n_words: int
) -> Float[np.ndarray, "layer head word key_word"]:
    """Values by distance for each pair of words: a view, as the rows of pairs are windows into the same values."""
    distances = np.arange(1 - n_words, n_words).clip(-FURTHEST, FURTHEST)
    return sliding_window_view(at_distance[..., distances + FURTHEST], n_words, axis=-1)[..., ::-1, :]


def _from_others(
    attention: Float[np.ndarray, "head word key_word"], joins: Bool[np.ndarray, "word key_word"]
) -> Float[np.ndarray, "head word key_word"]:
    """Mean attention to each key word from the other words that can attend to it; 0 where there is none."""
    from_others = attention * joins
    np.subtract(from_others.sum(axis=1, keepdims=True), from_others, out=from_others)
    from_others /= np.maximum(joins.sum(axis=0) - joins, 1)
    return from_others
