"""Which heads attend from one word of a text to another, from the attention of this text alone, compared with chance.

Of 16 words, the one with most attention always has more than an even share, so it is compared with the strongest of 16
words under chance. Under chance, the attention of a token is divided uniformly at random among the n tokens that it can
attend to: the share of a word of t tokens then has the distribution Beta(t, n - t), whose mean is the even share t / n.
Heads and queries are independent. The mean over several tokens of a query word is treated as that of a single token,
which varies more, so for such words these values are upper bounds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import UNLIMITED, Head, Reach, live_keys
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.statistics.means import Correction, adjusted
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

STEPS: Final = 1_000
"""Steps of the numerical integrals over a share; the relative error is below 0.001."""
WHOLE: Final = 1 - 1e-9
"""Shares are clipped to this, because a word that is all that a token can attend to gets a share of 1 by chance,
too."""


def strongest_by_chance(even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]) -> float:
    """Expected share of the strongest link.

    For a single link this is its even share. Links of one query divide its attention: their largest share is the
    largest of independent gamma variables, divided by n, since the sum of these is independent of their proportions.
    Links of several queries to one word are independent.

    Args:
        even: share of evenly spread attention on each link; 0 where a query cannot attend to the key; one query, or one
            key.
        n_seen: number of tokens that each query can attend to.

    Returns: 0 to 1; NaN if no link is possible.
    Source: Fisher 1929, Tests of significance in harmonic analysis, on the greatest part of a line divided at random.
    """
    from scipy.special import betainc, gammainc  # takes a quarter of a second

    if not even.any():
        return np.nan
    if len(even) == 1:
        n_tokens = even[even > 0] * n_seen
        largest = n_tokens.max() + 12 * np.sqrt(n_tokens.max()) + 30
        shares = np.linspace(0, largest, STEPS)
        below = np.prod([gammainc(t, shares) for t in n_tokens], axis=0)
        return float(np.trapezoid(1 - below, shares) / n_seen[0])
    shares = np.linspace(0, 1, STEPS)
    n_tokens, n_others = (even * n_seen[:, None])[even > 0], ((1 - even) * n_seen[:, None])[even > 0]
    below = np.prod([betainc(t, others, shares) for t, others in zip(n_tokens, n_others, strict=True)], axis=0)
    return float(np.trapezoid(1 - below, shares))


def p_of_strongest(
    share: Float[np.ndarray, " head"], even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " head"]:
    """p-values of "attention is divided at random": probability that any link gets as much as the strongest one.

    Summed over the links (Bonferroni), so valid for any dependence between them.

    Args:
        share: of the strongest link of each head, 0 to 1.
        even, n_seen: as for `strongest_by_chance`.

    Returns: 0 to 1; NaN if no link is possible.
    """
    from scipy.special import betaincc  # takes a quarter of a second

    is_seen = even > 0
    if not is_seen.any():
        return np.full(share.shape, np.nan)
    n_tokens, n_others = ((part * n_seen[:, None])[is_seen, None] for part in (even, 1 - even))
    return np.minimum(betaincc(n_tokens, n_others, np.clip(share, 0, WHOLE)).sum(axis=0), 1)


@dataclass(frozen=True)
class TextWord:
    """One word of a text, or one special token."""

    text: str
    """Its tokens as shown, joined."""
    tokens: tuple[int, ...]
    """Their positions in the whole text."""
    segment: int
    """0 or 1; SPECIAL for a special token."""
    occurrence: int
    """Number of occurrences of this word up to here, from 1."""
    n_occurrences: int
    """Number of occurrences in the whole text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordLinks:
    """The strongest link of each head from a set of query words to a set of key words."""

    shares: Float[np.ndarray, "layer head"]
    """Attention from the query word to the key word, 0 to 1; NaN in a layer whose window hides every link."""
    even: Float[np.ndarray, "layer head"]
    """Share of evenly spread attention on the same link."""
    queries: Int[np.ndarray, "layer head"]
    """Index of the query word."""
    keys: Int[np.ndarray, "layer head"]
    """Index of the key word."""
    n_links: Int[np.ndarray, " layer"]
    """Number of possible links, from a query word to a key word that it can attend to."""
    chance: Float[np.ndarray, " layer"]
    """Expected share of the strongest link if attention is divided at random (`strongest_by_chance`);
    for a single link, that of evenly spread attention; NaN as `shares`."""
    p: Float[np.ndarray, "layer head"]
    """Probability of such a link if attention is divided at random, not corrected for the number of heads; NaN as
    `shares`."""

    @property
    def ranked(self) -> list[Head]:
        """The heads with a link, strongest first."""
        order = np.argsort(-self.shares, axis=None, kind="stable")  # NaN last
        heads = zip(*(index.tolist() for index in np.unravel_index(order, self.shares.shape)))
        return [head for head in heads if not np.isnan(self.shares[head])]

    def beats_chance(self, alpha: float, correction: Correction) -> Bool[np.ndarray, "layer head"]:
        """Heads whose strongest link is stronger than by chance, at level alpha over all heads."""
        return adjusted(self.p, correction) < alpha


def words_on(text: TokenizedText, window: tuple[int, int]) -> tuple[TextWord, ...]:
    """The words of a text that lie entirely in a window, from its first token to before its end; each special token
    is a word of its own."""
    tokens: dict[tuple[int, int], list[int]] = {}
    for token, (word, segment) in enumerate(zip(text.words.tolist(), text.segments.tolist())):
        tokens.setdefault((word, token if segment == SPECIAL else SPECIAL), []).append(token)
    spellings = [_shown(text, indices) for indices in tokens.values()]
    n_so_far, n_all = Counter[str](), Counter(spellings)
    words = []
    for name, indices in zip(spellings, tokens.values()):
        n_so_far[name] += 1
        if window[0] <= indices[0] and indices[-1] < window[1]:
            segment = int(text.segments[indices[0]])
            words.append(TextWord(name, tuple(indices), segment, n_so_far[name], n_all[name]))
    return tuple(words)


def other_words(words: Sequence[TextWord], word: TextWord, *, same_text: bool) -> tuple[TextWord, ...]:
    """The words that "any other word" stands for: no special tokens, and not the word itself.

    Raises: AnalysisError where there is none.
    """
    others = tuple(other for other in words if other.segment != SPECIAL and not (same_text and other == word))
    if not others:
        raise AnalysisError(f"There is no other word than “{word.text}” to link it with. Type a longer text.")
    return others


def word_links(text_attention: TextAttention, queries: Sequence[TextWord], keys: Sequence[TextWord]) -> WordLinks:
    """The strongest link of each head from any query word to any key word, and the strongest link by chance.

    Args:
        queries: query words, from `words_on` of the text's queries; one or more.
        keys: key words; only one if there are several queries.

    Raises: AnalysisError if no query can attend to any key.
    Source: Clark et al. 2019, section 4.1: attention to a word is the sum over its tokens, attention from a word the
        mean.
    """
    rows, columns = _tokens(queries), _tokens(keys)
    (first_query, _), (first_key, _) = text_attention.window.queries, text_attention.window.keys
    attention = text_attention.attention[:, :, rows[:, None] - first_query, columns - first_key]
    reaches = text_attention.reaches or (UNLIMITED,) * len(attention)
    chances = {reach: _chance(text_attention, reach, queries, keys) for reach in dict.fromkeys(reaches)}
    chance_of_layers = [chances[reach] for reach in reaches]
    if not any(chance.n_links for chance in chance_of_layers):
        raise AnalysisError(_hidden(text_attention, queries, keys))
    return _strongest(_means(queries) @ attention @ _members(keys).T, chance_of_layers)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Chance:
    """Links under chance in layers with the same attention window."""

    even: Float[np.ndarray, "query key"]
    """Attention of each query spread evenly over the tokens that it can attend to; 0 if the key is not among them."""
    n_seen: Float[np.ndarray, " query"]
    """Number of tokens that each query can attend to: the smallest of its tokens."""
    strongest: float
    """Expected share of the strongest link."""

    @property
    def n_links(self) -> int:
        return int((self.even > 0).sum())


def _chance(
    text_attention: TextAttention, reach: Reach, queries: Sequence[TextWord], keys: Sequence[TextWord]
) -> _Chance:
    text, causal = text_attention.text, text_attention.causal
    even = even_shares(text, causal, reach, queries, keys)
    bounds = live_keys(len(text.queries.ids), len(text.keys.ids), causal, reach)
    n_live = bounds[:, 1] - bounds[:, 0]
    n_seen = np.array([n_live[list(query.tokens)].min() for query in queries], dtype=float)
    return _Chance(even=even, n_seen=n_seen, strongest=strongest_by_chance(even, n_seen))


def even_shares(
    text: PassText, causal: bool, reach: Reach, queries: Sequence[TextWord], keys: Sequence[TextWord]
) -> Float[np.ndarray, "query key"]:
    """Attention from each query word to each key word if it is spread evenly over the tokens that are seen.

    Returns: 0 to 1; 0 where a word cannot attend to the other.
    """
    rows, columns = _tokens(queries), _tokens(keys)
    bounds = live_keys(len(text.queries.ids), len(text.keys.ids), causal, reach)[rows]
    is_live = (columns >= bounds[:, :1]) & (columns < bounds[:, 1:])
    return np.asarray(_means(queries) @ (is_live / (bounds[:, 1:] - bounds[:, :1])) @ _members(keys).T)


def _strongest(shares: Float[np.ndarray, "layer head query key"], chances: Sequence[_Chance]) -> WordLinks:
    n_layers, n_heads, _, n_keys = shares.shape
    even = np.stack([chance.even for chance in chances])
    best = np.where(even[:, None] > 0, shares, -1).reshape(n_layers, n_heads, -1).argmax(axis=-1)
    queries, keys = best // n_keys, best % n_keys
    layers, heads = np.ogrid[:n_layers, :n_heads]
    n_links = np.array([chance.n_links for chance in chances])
    strongest = np.where(n_links[:, None] > 0, shares[layers, heads, queries, keys], np.nan)
    return WordLinks(
        shares=strongest,
        even=np.where(n_links[:, None] > 0, even[layers, queries, keys], np.nan),
        queries=queries,
        keys=keys,
        n_links=n_links,
        chance=np.array([chance.strongest for chance in chances]),
        p=np.stack([p_of_strongest(*layer) for layer in zip(strongest, even, (chance.n_seen for chance in chances))]),
    )


def _hidden(text_attention: TextAttention, queries: Sequence[TextWord], keys: Sequence[TextWord]) -> str:
    if len(queries) == len(keys) == 1:
        names = f"“{queries[0].text}” cannot look at “{keys[0].text}”"
    elif len(queries) == 1:
        names = f"“{queries[0].text}” cannot look at another word"
    else:
        names = f"No other word can look at “{keys[0].text}”"
    if text_attention.causal:
        return f"{names}: here each token sees only itself and what comes before it. Swap the two, or choose others."
    return f"{names}: in every layer they are too far apart for its attention window. Choose words closer together."


def _tokens(words: Sequence[TextWord]) -> Int[np.ndarray, " token"]:
    return np.array([token for word in words for token in word.tokens], dtype=int)


def _means(words: Sequence[TextWord]) -> Float[np.ndarray, "word token"]:
    """Weights of the mean over the tokens of each word."""
    members = _members(words)
    return members / members.sum(axis=1, keepdims=True)


def _members(words: Sequence[TextWord]) -> Bool[np.ndarray, "word token"]:
    """Which tokens belong to each word; tokens are in the order of the words."""
    return np.repeat(np.arange(len(words)), [len(word.tokens) for word in words]) == np.arange(len(words))[:, None]


def _shown(text: TokenizedText, tokens: Sequence[int]) -> str:
    """The text of a word from its tokens, without a preceding space; a character of several tokens appears once."""
    parts, end = list[str](), 0
    for token in tokens:
        start, stop = text.spans[token].tolist()
        if start < stop and end < stop:
            parts.append(text.tokens[token].removeprefix("##") if parts else text.tokens[token])
            end = stop
    return "".join(parts) or "".join(text.tokens[token] for token in tokens)
