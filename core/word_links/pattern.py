"""Patterns of two words, each a given word or any word, possibly joined by a relation, and their occurrences in a
text."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import ROOT, UNIVERSAL, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words

WordPair = tuple[int, int]
"""Indices of the attending word and the attended word among the words of a text."""


@dataclass(frozen=True)
class Pattern:
    """Two words, a relation, or both.

    Raises: AnalysisError for neither two words nor a relation.
    """

    query: str | None = None
    """The attending word, case-insensitive; None for any."""
    key: str | None = None
    """The attended word; None for any."""
    relation: str | None = None
    """Name of the relation that joins them; None for any two words of the text."""
    from_dependent: bool = True
    """Whether the dependent of the relation attends to its head, or the head to its dependent."""

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
    """As in attention_sieve.core.texts.tokens.Words."""
    pairs: tuple[WordPair, ...]
    """Pairs of the pattern."""
    others: tuple[WordPair, ...]
    """All other pairs at the same signed distances in words and in the same segments."""

    @classmethod
    def of(cls, text: Text, tree: Dependencies, pattern: Pattern) -> "PatternText | None":
        """A text of queries with the pairs of a pattern, by its words and relations; None if it has none."""
        pairs = _pairs(tree, tree.words.shown(text), pattern)
        if not pairs:
            return None
        spans = tuple((start, end) for start, end in tree.words.spans.tolist())
        return cls(text, tuple(tree.words.segments.tolist()), spans, pairs, _others(text, tree.words, pairs))

    @property
    def words(self) -> Words:
        """The words as arrays."""
        return Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))

    def offset_and_segments(self, pair: WordPair) -> tuple[int, int, int]:
        """Signed distance of two words, and their segments; equal for pairs that are compared."""
        return _offset_and_segments(self.segments, pair)


@dataclass(frozen=True, eq=False, kw_only=True)
class PatternAttention:
    """Attention between the words of a pattern in one text; NaN if the text has no pair that attention can link."""

    n_pairs: int
    """Pairs of the pattern whose first word can attend to the second."""
    shares: Float[np.ndarray, "layer head"]
    """Attention from the first word to the second, 0 to 1, mean over those pairs."""
    even: Float[np.ndarray, " layer"]
    """The same for evenly spread attention."""
    compared: Float[np.ndarray, "layer head"]
    """As `shares`, over those pairs with others at their distance."""
    others: Float[np.ndarray, "layer head"]
    """Mean over the same pairs of the mean attention between other words at the same distance."""


def _pairs(tree: Dependencies, spellings: tuple[str, ...], pattern: Pattern) -> tuple[WordPair, ...]:
    def fits(word: int, spelling: str | None) -> bool:
        return spelling is None or spellings[word].casefold() == spelling.casefold()

    if pattern.relation is None:
        queries, keys = (
            [word for word in range(len(spellings)) if fits(word, name)] for name in (pattern.query, pattern.key)
        )
        return tuple((query, key) for query in queries for key in keys if query != key)
    relation = UNIVERSAL.get(pattern.relation, pattern.relation)
    pairs = [
        (word, head) if pattern.from_dependent else (head, word)
        for word, (relation_of_word, head) in enumerate(zip(tree.relations, tree.heads.tolist()))
        if head != ROOT and UNIVERSAL.get(relation_of_word, relation_of_word) == relation
    ]
    return tuple(pair for pair in pairs if fits(pair[0], pattern.query) and fits(pair[1], pattern.key))


def _others(text: Text, words: Words, pairs: tuple[WordPair, ...]) -> tuple[WordPair, ...]:
    """Pairs of words to compare with; only words with a letter or digit count."""
    segments = tuple(words.segments.tolist())
    is_word = [any(map(str.isalnum, word)) for word in words.shown(text)]
    offsets, pattern_pairs = {_offset_and_segments(segments, pair) for pair in pairs}, set(pairs)
    at_distance = (
        (query, query + distance)
        for distance in sorted({distance for distance, *_ in offsets})
        for query in range(max(0, -distance), len(segments) - max(0, distance))
    )
    return tuple(
        pair
        for pair in at_distance
        if is_word[pair[0]]
        and is_word[pair[1]]
        and _offset_and_segments(segments, pair) in offsets
        and pair not in pattern_pairs
    )


def _offset_and_segments(segments: tuple[int, ...], pair: WordPair) -> tuple[int, int, int]:
    query, key = pair
    return key - query, segments[query], segments[key]
