"""Which heads look from one word of a text to another, by the attention of that text alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.attention.settings import UNLIMITED, Head, live_keys
from core.errors import AnalysisError
from core.passes.texts import TextAttention
from core.texts.tokens import SPECIAL, TokenizedText

ROUNDING: Final = 0.001
"""Part of a share that half precision, in which the attention of a text is kept, may add or take away."""


@dataclass(frozen=True)
class TextWord:
    """One word of a text, or one special token."""

    text: str
    """Its tokens as they are shown, joined."""
    tokens: tuple[int, ...]
    """Their positions in the whole text."""
    segment: int
    """0 or 1; SPECIAL for a special token."""
    occurrence: int
    """How often the text has had this word so far, from 1."""
    n_occurrences: int
    """How often the whole text has it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordLinks:
    """The strongest link of each head between words that may look and words that may be looked at."""

    shares: Float[np.ndarray, "layer head"]
    """Attention from the one word to the other, 0 to 1; NaN in a layer whose window hides every such link."""
    even: Float[np.ndarray, "layer head"]
    """What evenly spread attention gives to the same link."""
    queries: Int[np.ndarray, "layer head"]
    """Which word looks, by its place among those that may."""
    keys: Int[np.ndarray, "layer head"]
    """Which word is looked at."""

    @property
    def ranked(self) -> list[Head]:
        """The heads with a link, strongest first."""
        order = np.argsort(-self.shares, axis=None, kind="stable")  # NaN last
        heads = zip(*(index.tolist() for index in np.unravel_index(order, self.shares.shape)))
        return [head for head in heads if not np.isnan(self.shares[head])]

    @property
    def n_above_even(self) -> int:
        """Number of heads whose link is stronger than under evenly spread attention."""
        return int((self.shares > self.even * (1 + ROUNDING)).sum())


def words_on(text: TokenizedText, window: tuple[int, int]) -> tuple[TextWord, ...]:
    """The words of a text that lie whole in a window; each special token stands for itself.

    Args:
        text: queries or keys.
        window: first and one-past-last token.
    """
    tokens: dict[tuple[int, int], list[int]] = {}
    for token, (word, segment) in enumerate(zip(text.words.tolist(), text.segments.tolist())):
        tokens.setdefault((word, token if segment == SPECIAL else SPECIAL), []).append(token)
    shown = [_shown(text, of_word) for of_word in tokens.values()]
    n_so_far, n_all = Counter[str](), Counter(shown)
    words = []
    for name, of_word in zip(shown, tokens.values()):
        n_so_far[name] += 1
        if window[0] <= of_word[0] and of_word[-1] < window[1]:
            segment = int(text.segments[of_word[0]])
            words.append(TextWord(name, tuple(of_word), segment, n_so_far[name], n_all[name]))
    return tuple(words)


def other_words(words: Sequence[TextWord], word: TextWord, *, same_text: bool) -> tuple[TextWord, ...]:
    """The words that "any other word" stands for: no special tokens, and not the word itself.

    Raises: AnalysisError where there is none.
    """
    others = tuple(other for other in words if other.segment != SPECIAL and not (same_text and other == word))
    if not others:
        raise AnalysisError(f"There is no other word than “{word.text}” to link it with. Type a longer text.")
    return others


def word_links(looked: TextAttention, queries: Sequence[TextWord], keys: Sequence[TextWord]) -> WordLinks:
    """The strongest link of each head from any of some words to any of some others.

    Args:
        looked: attention of the text.
        queries: words that may look, from `words_on` of the text's queries; one or more.
        keys: words that may be looked at.

    Raises: AnalysisError if no key can be seen from any query.
    Source: Clark et al. 2019, section 4.1: attention to a word is the sum over its tokens, attention from a word the
        mean.
    """
    rows, columns = _tokens(queries), _tokens(keys)
    from_word = _members(queries, rows)
    from_word = from_word / from_word.sum(axis=1, keepdims=True)
    to_word = _members(keys, columns).T
    (first_query, _), (first_key, _) = looked.window.queries, looked.window.keys
    attention = looked.attention[:, :, rows[:, None] - first_query, columns - first_key]
    even = from_word @ _even(looked, rows, columns) @ to_word
    if not even.any():
        raise AnalysisError(_hidden(looked, queries, keys))
    return _strongest(np.where(even[:, None] > 0, from_word @ attention @ to_word, -1), even)


def _strongest(
    shares: Float[np.ndarray, "layer head query key"], even: Float[np.ndarray, "layer query key"]
) -> WordLinks:
    n_layers, n_heads, _, n_keys = shares.shape
    best = shares.reshape(n_layers, n_heads, -1).argmax(axis=-1)
    queries, keys = best // n_keys, best % n_keys
    layers, heads = np.ogrid[:n_layers, :n_heads]
    found = shares[layers, heads, queries, keys]
    is_seen = found >= 0
    return WordLinks(
        shares=np.where(is_seen, found, np.nan),
        even=np.where(is_seen, even[layers, queries, keys], np.nan),
        queries=queries,
        keys=keys,
    )


def _even(
    looked: TextAttention, rows: Int[np.ndarray, " query"], columns: Int[np.ndarray, " key"]
) -> Float[np.ndarray, "layer query key"]:
    """Evenly spread attention over what a query can see of the whole text, layer by layer."""
    n_queries, n_keys = len(looked.text.queries.ids), len(looked.text.keys.ids)
    reaches = looked.reaches or (UNLIMITED,) * len(looked.attention)
    made = {}
    for reach in dict.fromkeys(reaches):
        bounds = live_keys(n_queries, n_keys, looked.causal, reach)[rows]
        is_live = (columns >= bounds[:, :1]) & (columns < bounds[:, 1:])
        made[reach] = is_live / (bounds[:, 1:] - bounds[:, :1])
    return np.stack([made[reach] for reach in reaches])


def _hidden(looked: TextAttention, queries: Sequence[TextWord], keys: Sequence[TextWord]) -> str:
    if len(queries) == len(keys) == 1:
        names = f"“{queries[0].text}” cannot look at “{keys[0].text}”"
    elif len(queries) == 1:
        names = f"“{queries[0].text}” cannot look at another word"
    else:
        names = f"No other word can look at “{keys[0].text}”"
    if looked.causal:
        return f"{names}: here each token sees only itself and what comes before it. Swap the two, or choose others."
    return f"{names}: in every layer they are too far apart for its attention window. Choose words closer together."


def _tokens(words: Sequence[TextWord]) -> Int[np.ndarray, " token"]:
    return np.array([token for word in words for token in word.tokens])


def _members(words: Sequence[TextWord], tokens: Int[np.ndarray, " token"]) -> Bool[np.ndarray, "word token"]:
    """Which of the tokens, which stand in the order of their words, belong to each word."""
    return np.repeat(np.arange(len(words)), [len(word.tokens) for word in words]) == np.arange(len(words))[:, None]


def _shown(text: TokenizedText, tokens: Sequence[int]) -> str:
    """A word as its tokens show it, without a space before it, and each character of several tokens once."""
    shown, end = list[str](), 0
    for token in tokens:
        start, stop = text.spans[token].tolist()
        if start < stop and end < stop:
            shown.append(text.tokens[token].removeprefix("##") if shown else text.tokens[token])
            end = stop
    return "".join(shown) or "".join(text.tokens[token] for token in tokens)
