"""What each head usually gives to a word at each distance, over some texts, and the most surprising links of one text
beside it: attention beyond what a head gives at that distance, and to that word anyway.

Distances are in words, so that checkpoints with longer and with shorter word pieces are treated alike. A link from one
word to another is compared with two things, and the larger one counts. The first is up to how much the head usually
gives to a word at that distance; else heads win that always look one word ahead. The second is what the other words of
this text give to the same word on average; else heads win that look at one word from everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from attention_sieve.core.attention.settings import UNLIMITED, Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.core.word_links.on_text import TextWord, even_shares, words_on

FURTHEST: Final = 12
"""Words further apart count as this far apart."""
WITHIN: Final = 1
"""Number of standard deviations above the mean up to which attention is usual. A head that looks at the next noun from
articles only gives little to the next word on average, but in few texts nothing else: without these it would surprise
with every article."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordAttention:
    """Attention between the words of one text, without special tokens and punctuation."""

    words: tuple[TextWord, ...]
    attention: Float[np.ndarray, "layer head word key_word"]
    """Sum over the tokens of the key word, mean over those of the query word, 0 to 1; NaN for a removed head."""
    even: Float[np.ndarray, "layer word key_word"]
    """The same for evenly spread attention; 0 where a word cannot attend to the other."""

    @property
    def joins(self) -> Bool[np.ndarray, "layer word key_word"]:
        """Whether a word can attend to another one."""
        return np.asarray((self.even > 0) & ~np.eye(len(self.words), dtype=bool))

    @property
    def distances(self) -> Int[np.ndarray, "word key_word"]:
        """Key minus query, in words, at most FURTHEST in each direction."""
        positions = np.arange(len(self.words))
        return np.clip(positions - positions[:, None], -FURTHEST, FURTHEST)


@dataclass(frozen=True, eq=False, kw_only=True)
class SumsByDistance:
    """Attention between the words of one text, summed by distance, from -FURTHEST to FURTHEST words.

    Negative distances lead to earlier words.
    """

    sums: Float[np.ndarray, "layer head distance"]
    """NaN for a removed head."""
    squares: Float[np.ndarray, "layer head distance"]
    """Sums of squares."""
    n_pairs: Int[np.ndarray, "layer distance"]
    """Number of pairs of words of which the first can attend to the second."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Habits:
    """What each head gives to a word at each distance over some texts, from -FURTHEST to FURTHEST words."""

    means: Float[np.ndarray, "layer head distance"]
    """0 to 1; NaN where no text has such a pair of words, and for a removed head."""
    deviations: Float[np.ndarray, "layer head distance"]
    """Standard deviations over the pairs of words; NaN as the means."""

    @property
    def usual(self) -> Float[np.ndarray, "layer head distance"]:
        """Up to how much is usual: WITHIN standard deviations above the mean."""
        return self.means + WITHIN * self.deviations


def word_attention(text_attention: TextAttention) -> WordAttention:
    """Attention between the words of a text, whose queries are its keys, that lie in its window and have a letter or
    digit.

    Source: Clark et al. 2019, section 4.1, for the sum and the mean.
    """
    text, window, attention = text_attention.text, text_attention.window, text_attention.attention
    words = tuple(
        word
        for word in words_on(text.queries, window.queries)
        if word.segment != SPECIAL and any(map(str.isalnum, word.text))
    )
    reaches = text_attention.reaches or (UNLIMITED,) * len(attention)
    even = {reach: even_shares(text, text_attention.causal, reach, words, words) for reach in dict.fromkeys(reaches)}
    tokens = np.array([token - window.queries[0] for word in words for token in word.tokens], dtype=int)
    lengths = np.array([len(word.tokens) for word in words], dtype=int)
    between_words = np.empty((*attention.shape[:2], len(words), len(words)))
    for to_layer, layer in zip(between_words, attention):  # what a layer takes fits the processor's cache
        token_attention = layer[:, tokens[:, None], tokens].astype(np.float64)
        to_layer[:] = _word_sums(_word_sums(token_attention, lengths, axis=-1), lengths, axis=-2) / lengths[:, None]
    return WordAttention(words=words, attention=between_words, even=np.stack([even[reach] for reach in reaches]))


def _word_sums(
    values: Float[np.ndarray, "*tokens"], lengths: Int[np.ndarray, " word"], axis: int
) -> Float[np.ndarray, "*words"]:
    """Sums over the tokens of each word along an axis, of words that follow each other; most have a single token."""
    has_more = lengths > 1
    if not has_more.any():
        return values
    sums = values.take(np.cumsum(lengths) - lengths, axis=axis)
    parts = values.compress(np.repeat(has_more, lengths), axis=axis)
    starts = np.cumsum(lengths[has_more]) - lengths[has_more]
    np.moveaxis(sums, axis, 0)[has_more] = np.moveaxis(np.add.reduceat(parts, starts, axis=axis), axis, 0)
    return sums


def text_distances(words: WordAttention) -> SumsByDistance:
    """Sum a text's attention between words by their distance."""
    shape = (*words.attention.shape[:2], 2 * FURTHEST + 1)
    sums, squares = np.zeros(shape), np.zeros(shape)
    n_pairs = np.zeros((len(words.even), shape[-1]), dtype=np.int64)
    joins, places = words.joins, words.distances + FURTHEST
    for place in np.unique(places):
        at_distance = joins & (places == place)
        weights = words.attention * at_distance[:, None]
        n_pairs[:, place] = at_distance.sum(axis=(1, 2))
        sums[:, :, place], squares[:, :, place] = weights.sum(axis=(2, 3)), np.square(weights).sum(axis=(2, 3))
    return SumsByDistance(sums=sums, squares=squares, n_pairs=n_pairs)


def habits_of(texts: Sequence[SumsByDistance]) -> Habits:
    """Combine one or more texts; each pair of words counts as much as every other."""
    n_pairs = np.sum([text.n_pairs for text in texts], axis=0)[:, None]
    n_pairs = np.where(n_pairs > 0, n_pairs, np.nan)
    means = np.sum([text.sums for text in texts], axis=0, dtype=np.float64) / n_pairs
    squares = np.sum([text.squares for text in texts], axis=0, dtype=np.float64) / n_pairs
    return Habits(means=means, deviations=np.sqrt(np.maximum(squares - means**2, 0)))


STANDS_OUT: Final = 0.45
"""Least excess of a link that stands out: a choice of this project, far above random weights, whose greatest is 0.06 in
128 sample texts. Shuffling words or permuting keys gives none, as such texts reach it about as often:
`benchmarks.findings.surprising_links` prints how often."""


_JOINING = """
    a an the this that these those
    and or but nor so yet if because although though while when where whether as than
    of in on at by for with from to into onto over under about after before between through during without within
    is are was were be been being am has have had having do does did will would shall should can could may might must
    not no n't 's there up out off down
"""
FUNCTION_WORDS: Final = frozenset(_JOINING.split())
"""English words that join others, in lower case: a link of these says less than one of two others. Pronouns are none of
them, as they stand for a word. A choice of this project."""


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
    def joins_function_words(self) -> bool:
        """Whether one of the two words is of FUNCTION_WORDS."""
        return not FUNCTION_WORDS.isdisjoint({self.query.text.casefold(), self.key.text.casefold()})

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
        for link in _layer_links(words, layer, usual[layer], joins[layer], is_comparable[layer])
    ]
    return tuple(sorted(links, key=lambda link: -link.excess))


def _layer_links(
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
