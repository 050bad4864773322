"""Which heads look from one word of a text to another, by the attention of that text alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from core.attention.settings import UNLIMITED, Head, Reach, live_keys
from core.errors import AnalysisError
from core.passes.texts import TextAttention
from core.statistics.means import Correction, adjusted
from core.texts.tokens import SPECIAL, TokenizedText
from core.word_links.chance import p_of_strongest, strongest_by_chance


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
    n_links: Int[np.ndarray, " layer"]
    """How many links were to choose among: all of those words that see another."""
    chance: Float[np.ndarray, " layer"]
    """Expected share of the strongest link if attention were split at random (core.word_links.chance): of a single
    link what evenly spread attention gives; NaN as `shares`."""
    p: Float[np.ndarray, "layer head"]
    """That a random split gives one of the links as much, not corrected for the number of heads; NaN as `shares`."""

    @property
    def ranked(self) -> list[Head]:
        """The heads with a link, strongest first."""
        order = np.argsort(-self.shares, axis=None, kind="stable")  # NaN last
        heads = zip(*(index.tolist() for index in np.unravel_index(order, self.shares.shape)))
        return [head for head in heads if not np.isnan(self.shares[head])]

    def beats_chance(self, alpha: float, correction: Correction) -> Bool[np.ndarray, "layer head"]:
        """Heads whose strongest link is stronger than a random split gives, at level alpha over all heads."""
        return adjusted(self.p, correction) < alpha


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
    """The strongest link of each head from any of some words to any of some others, beside the strongest by chance.

    Args:
        looked: attention of the text.
        queries: words that may look, from `words_on` of the text's queries; one or more.
        keys: words that may be looked at; one, where there are several queries.

    Raises: AnalysisError if no key can be seen from any query.
    Source: Clark et al. 2019, section 4.1: attention to a word is the sum over its tokens, attention from a word the
        mean.
    """
    rows, columns = _tokens(queries), _tokens(keys)
    from_word, to_word = _members(queries, rows), _members(keys, columns).T
    by_token = from_word / from_word.sum(axis=1, keepdims=True)
    (first_query, _), (first_key, _) = looked.window.queries, looked.window.keys
    attention = looked.attention[:, :, rows[:, None] - first_query, columns - first_key]
    reaches = looked.reaches or (UNLIMITED,) * len(attention)
    chances = {reach: _chance(looked, reach, queries, keys) for reach in dict.fromkeys(reaches)}
    of_layers = [chances[reach] for reach in reaches]
    if not any(chance.n_links for chance in of_layers):
        raise AnalysisError(_hidden(looked, queries, keys))
    return _strongest(by_token @ attention @ to_word, of_layers)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Chance:
    """What chance gives to the links in layers with one attention window."""

    even: Float[np.ndarray, "query key"]
    """Evenly spread attention over what a query sees of the whole text; 0 where it does not see the key."""
    n_seen: Float[np.ndarray, " query"]
    """Tokens that each query sees; of its tokens, that which sees fewest."""
    strongest: float
    """Expected share of the strongest link."""

    @property
    def n_links(self) -> int:
        return int((self.even > 0).sum())


def _chance(looked: TextAttention, reach: Reach, queries: Sequence[TextWord], keys: Sequence[TextWord]) -> _Chance:
    rows, columns = _tokens(queries), _tokens(keys)
    from_word = _members(queries, rows)
    bounds = live_keys(len(looked.text.queries.ids), len(looked.text.keys.ids), looked.causal, reach)[rows]
    is_live = (columns >= bounds[:, :1]) & (columns < bounds[:, 1:])
    n_live = bounds[:, 1] - bounds[:, 0]
    even = from_word / from_word.sum(axis=1, keepdims=True) @ (is_live / n_live[:, None]) @ _members(keys, columns).T
    n_seen = np.where(from_word, n_live, np.inf).min(axis=1)
    return _Chance(even=even, n_seen=n_seen, strongest=strongest_by_chance(even, n_seen))


def _strongest(shares: Float[np.ndarray, "layer head query key"], chances: Sequence[_Chance]) -> WordLinks:
    n_layers, n_heads, _, n_keys = shares.shape
    even = np.stack([chance.even for chance in chances])
    best = np.where(even[:, None] > 0, shares, -1).reshape(n_layers, n_heads, -1).argmax(axis=-1)
    queries, keys = best // n_keys, best % n_keys
    layers, heads = np.ogrid[:n_layers, :n_heads]
    n_links = np.array([chance.n_links for chance in chances])
    found = np.where(n_links[:, None] > 0, shares[layers, heads, queries, keys], np.nan)
    return WordLinks(
        shares=found,
        even=np.where(n_links[:, None] > 0, even[layers, queries, keys], np.nan),
        queries=queries,
        keys=keys,
        n_links=n_links,
        chance=np.array([chance.strongest for chance in chances]),
        p=np.stack([p_of_strongest(*of_layer) for of_layer in zip(found, even, (one.n_seen for one in chances))]),
    )


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
