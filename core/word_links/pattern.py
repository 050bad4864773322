"""A pattern of two words, and where a text has it: from a word or any to a word or any, joined by a relation or not."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.errors import AnalysisError
from core.texts.relations import ROOT, UNIVERSAL, Dependencies
from core.texts.text import Text
from core.texts.words import Words

WordPair = tuple[int, int]
"""The word that looks and the word that it looks at, by their places among the words of a text."""


@dataclass(frozen=True)
class Pattern:
    """Which words are to be linked.

    Raises: AnalysisError where it names neither two words nor a relation.
    """

    query: str | None = None
    """The word that looks, in any case; None for any."""
    key: str | None = None
    """The word that is looked at; None for any."""
    relation: str | None = None
    """Name of the relation that joins them; None for any two words of the text."""
    from_dependent: bool = True
    """Whether the dependent of the relation looks at its head, or the head at its dependent."""

    def __post_init__(self) -> None:
        if self.relation is None and (self.query is None or self.key is None):
            raise AnalysisError(
                "A pattern needs two words or a relation. Name the word that is missing, or a relation."
            )


@dataclass(frozen=True)
class PatternText:
    """A text, its words, the pairs of a pattern, and other pairs to compare them with."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in core.texts.words.Words."""
    pairs: tuple[WordPair, ...]
    """Those of the pattern."""
    others: tuple[WordPair, ...]
    """Those that the pattern leaves out, at the same signed distances in words and in the same segments."""

    @classmethod
    def of(cls, text: Text, tree: Dependencies, pattern: Pattern) -> "PatternText | None":
        """A text with the pairs of a pattern; None where it has none.

        Args:
            text: what is read, as in core.passes.prepare.queries_text.
            tree: its words and relations.
            pattern: which words are to be linked.
        """
        pairs = _pairs(tree, tree.words.shown(text), pattern)
        if not pairs:
            return None
        spans = tuple((start, end) for start, end in tree.words.spans.tolist())
        return cls(text, tuple(tree.words.segments.tolist()), spans, pairs, _others(text, tree.words, pairs))

    @property
    def words(self) -> Words:
        """The words as arrays."""
        return Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))

    def place(self, pair: WordPair) -> tuple[int, int, int]:
        """Signed distance of two words, and their segments: what pairs that are compared have in common."""
        return _place(self.segments, pair)


@dataclass(frozen=True, eq=False, kw_only=True)
class PatternAttention:
    """Attention between the words of a pattern in one text; NaN where the text has no such pair that can be seen."""

    n_pairs: int
    """Pairs of the pattern of which the first word sees the second."""
    shares: Float[np.ndarray, "layer head"]
    """Attention from the first word to the second, 0 to 1, mean over those pairs."""
    even: Float[np.ndarray, " layer"]
    """What evenly spread attention gives to them."""
    compared: Float[np.ndarray, "layer head"]
    """As `shares`, over those pairs with others at their distance."""
    others: Float[np.ndarray, "layer head"]
    """Mean over the same pairs of the mean attention between other words at the same distance."""


def _pairs(tree: Dependencies, shown: tuple[str, ...], pattern: Pattern) -> tuple[WordPair, ...]:
    def fits(word: int, wanted: str | None) -> bool:
        return wanted is None or shown[word].casefold() == wanted.casefold()

    if pattern.relation is None:
        queries, keys = ([word for word in range(len(shown)) if fits(word, of)] for of in (pattern.query, pattern.key))
        return tuple((query, key) for query in queries for key in keys if query != key)
    wanted = UNIVERSAL.get(pattern.relation, pattern.relation)
    joined = [
        (word, head) if pattern.from_dependent else (head, word)
        for word, (name, head) in enumerate(zip(tree.relations, tree.heads.tolist()))
        if head != ROOT and UNIVERSAL.get(name, name) == wanted
    ]
    return tuple(pair for pair in joined if fits(pair[0], pattern.query) and fits(pair[1], pattern.key))


def _others(text: Text, words: Words, pairs: tuple[WordPair, ...]) -> tuple[WordPair, ...]:
    """What has no letter and no digit is no word to compare with."""
    segments = tuple(words.segments.tolist())
    is_word = [any(map(str.isalnum, word)) for word in words.shown(text)]
    places, own = {_place(segments, pair) for pair in pairs}, set(pairs)
    at_distance = (
        (query, query + distance)
        for distance in sorted({distance for distance, *_ in places})
        for query in range(max(0, -distance), len(segments) - max(0, distance))
    )
    return tuple(
        pair
        for pair in at_distance
        if is_word[pair[0]] and is_word[pair[1]] and _place(segments, pair) in places and pair not in own
    )


def _place(segments: tuple[int, ...], pair: WordPair) -> tuple[int, int, int]:
    query, key = pair
    return key - query, segments[query], segments[key]
