"""Parses texts with spaCy in batches, and keeps the parses: of the last words, or in a memory such as the cache has.

No spaCy object leaves this module.
"""

import sys
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import repeat
from threading import Lock
from typing import Any, Final, Protocol
from weakref import WeakSet

import numpy as np

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.pauses import interruptible, pause
from attention_sieve.core.texts.parsers import RELATION_NAMES, installed_parsers, parser_name
from attention_sieve.core.texts.patterns import matched_words
from attention_sieve.core.texts.text import Text

PIECE_WORDS: Final = 5_000
"""Words parsed at once; 100,000 would take 1.5 GB. A sentence split between two pieces may lose a relation."""
BATCH_WORDS: Final = 1_000
"""Words of short texts that are parsed at once: others wait for the parser meanwhile."""
MOST_PIPELINES: Final = 4
"""Parsers in memory, each with about 50 MB."""
KEPT_STRINGS: Final = 50_000
"""Words, lower-cased words, affixes and shapes that spaCy may keep of texts it has parsed: about 10 MB."""
KEPT_WORDS: Final = 100_000
"""Words of texts whose parses are kept where no memory is given: about 25 MB."""
OPTIONAL: Final = ("tagger", "morphologizer", "attribute_ruler", "lemmatizer", "ner")
"""Parts of a pipeline that run only where they are needed."""
_one_at_a_time: Final = Lock()
"""One spaCy pipeline serves all threads, and spaCy does not guarantee that it is thread-safe."""


class Parses(Protocol):
    """A memory of parses by name and key, so that a role that is changed costs no parser."""

    def get(self, name: str, key: Hashable) -> Any:
        """The parse, or None."""

    def put(self, name: str, key: Hashable, value: Any) -> Any:
        """Keep a parse of which there is none yet."""


class LastParses:
    """The parses of the last words."""

    def __init__(self, most_words: int = KEPT_WORDS) -> None:
        self._most_words = most_words
        self._by_key = OrderedDict[Hashable, Mapping[str, list[Any]]]()
        self._n_words = 0

    def get(self, _: str, key: Hashable) -> Mapping[str, list[Any]] | None:
        """As of `Parses`."""
        if key in self._by_key:
            self._by_key.move_to_end(key)
        return self._by_key.get(key)

    def put(self, _: str, key: Hashable, value: Mapping[str, list[Any]]) -> None:
        """As of `Parses`."""
        self._n_words += len(value["words"]) if key not in self._by_key else 0
        self._by_key[key] = value
        while self._n_words > self._most_words:
            self._n_words -= len(self._by_key.popitem(last=False)[1]["words"])


_last_parses: Final = LastParses()
_memories: Final[WeakSet[Parses]] = WeakSet()
"""These and the last parses are used under `_one_at_a_time`."""


def keep_parses_in(memory: Parses) -> None:
    """Keep parses in a memory for as long as it lives, and no longer the last ones of this process."""
    with _one_at_a_time:
        _memories.add(memory)


@dataclass(frozen=True)
class Position:
    """Position of a piece of a text."""

    text: int
    segment: int
    start: int
    """Index of the first character of the piece in its segment."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ParsedPiece:
    """Trees of a piece, without references to spaCy objects."""

    position: Position
    spans: list[tuple[int, int]]
    """Span of each word in the piece."""
    heads: list[int]
    """Index of each word's head among the words of the piece; of the root of a sentence, its own."""
    relations: list[str]
    tags: list[str]
    lemmas: list[str]
    entities: list[str]
    matches: list[tuple[bool, ...]]
    """Whether each word is part of a match of each pattern."""

    @classmethod
    def of(
        cls,
        position: Position,
        fields: Mapping[str, list[Any]],
        names: Mapping[str, str],
        matched: Sequence[Sequence[bool]],
    ) -> "ParsedPiece":
        """The trees of what `_fields` has of a document, whose relations get these names, and by pattern which of its
        words, spaces included, are matched."""
        words, heads = fields["words"], fields["heads"]
        ends = np.cumsum([len(word) + has_space for word, has_space in zip(words, fields["spaces"])]).tolist()
        kept = [i for i, word in enumerate(words) if not word.isspace()]
        numbers = {i: number for number, i in enumerate(kept)}
        return cls(
            position=position,
            spans=[(start, start + len(words[i])) for i in kept for start in (ends[i - 1] if i else 0,)],
            heads=[numbers.get(_head(words, heads, i), number) for number, i in enumerate(kept)],
            relations=[names.get(fields["deps"][i], fields["deps"][i]) for i in kept],
            tags=[fields["tags"][i] for i in kept],
            lemmas=[fields["lemmas"][i].lower() for i in kept],
            entities=[fields["ents"][i].partition("-")[2] for i in kept],
            matches=[tuple(pattern_words[i] for pattern_words in matched) for i in kept],
        )


def _head(words: Sequence[str], heads: Sequence[int], word: int) -> int:
    """A word's head, skipping spaCy's whitespace tokens."""
    head = heads[word]
    while words[head].isspace() and heads[head] != head:
        head = heads[head]
    return head


def parsed(
    package: str, texts: Sequence[Text], left_out: frozenset[str], patterns: Sequence[str]
) -> Iterator[ParsedPiece]:
    """The pieces of every segment, parsed in batches of a few words, or of one piece, which limits the parser's memory.
    Those of OPTIONAL that are left out do not run; matches of the patterns, of spaCy's Matcher, are looked for.

    Raises: AnalysisError if a part that has to run is not there.
    """
    parts = set(_pipeline(package).pipe_names)
    taggers = {"tagger", "morphologizer"}  # a language has one of them
    present = parts | taggers if parts & taggers else parts
    if lacking := sorted(set(OPTIONAL) - left_out - present):
        raise AnalysisError(
            f"The parser {parser_name(package)} has no {' and no '.join(lacking)}, which a role needs. Write the role "
            "without named entities, lemmas or parts of speech."
        )
    segments = (Position(i, side, 0) for i, text in enumerate(texts) for side in range(len(text.segments)))
    pending = deque[tuple[Position, _Words | None]]((position, None) for position in segments)
    names = RELATION_NAMES.get(installed_parsers().get(package, ""), {})
    while pending:
        pause()
        with _one_at_a_time, _within_bounds(package):
            batch = _parsed_batch(package, _next_batch(package, texts, pending), left_out)
        matched = _matched(package, patterns, [fields for _, fields in batch])
        yield from (ParsedPiece.of(*piece, names, matches) for piece, matches in zip(batch, matched))


def _within_bounds(package: str) -> AbstractContextManager[Any]:
    """Context that limits spaCy's memory: outside a memory zone, spaCy keeps each new word forever.

    The words of the first texts are kept, because they recur: a zone creates all of its words again, which takes a
    tenth of the parsing time.
    """
    n_kept = len(_pipeline(package).vocab.strings) - _n_strings_at_first(package)
    return _pipeline(package).memory_zone() if n_kept > KEPT_STRINGS else nullcontext()


@cache
def _n_strings_at_first(package: str) -> int:
    """Number of strings of the pipeline before it has parsed anything."""
    return len(_pipeline(package).vocab.strings)


def _parsed_batch(
    package: str, batch: list[tuple[Any, Position, Hashable]], left_out: frozenset[str]
) -> list[tuple[Position, Mapping[str, list[Any]]]]:
    """No spaCy object may outlive its batch, because its strings may be freed with the batch; parses are kept as
    strings."""
    keys = [None if key is None else (package, left_out, key) for _, _, key in batch]
    fields = [None if key is None else _kept(key) for key in keys]
    missing = [place for place, kept in enumerate(fields) if kept is None]
    documents = [batch[place][0] for place in missing]
    new = _pipeline(package).pipe(documents, batch_size=len(batch), disable=sorted(left_out))
    for place, document in zip(missing, new, strict=True):
        fields[place] = parsed_fields = _fields(document)
        for memory in (_memories or [_last_parses]) if keys[place] is not None else ():
            memory.put("parse", keys[place], parsed_fields)
    return [(position, text_fields) for (_, position, _), text_fields in zip(batch, fields) if text_fields is not None]


def _matched(
    package: str, patterns: Sequence[str], batch: Sequence[Mapping[str, list[Any]]]
) -> Iterator[tuple[Sequence[bool], ...]]:
    """For each document the words that each pattern matches. They are searched in copies with a vocabulary of their
    own: whoever needs the parser meanwhile does not wait."""
    if not patterns:
        return repeat((), len(batch))
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    vocabulary = Vocab(lex_attr_getters=_pipeline(package).vocab.lex_attr_getters)
    return zip(*matched_words(patterns, [Doc(vocabulary, **fields) for fields in batch]))


def _kept(key: Hashable) -> Mapping[str, list[Any]] | None:
    memories = _memories or [_last_parses]
    return next((fields for memory in memories if (fields := memory.get("parse", key)) is not None), None)


def _fields(document: Any) -> Mapping[str, list[Any]]:
    """Arguments of spaCy's `Doc` that make a parsed document again."""
    return {
        "words": [word.text for word in document],
        "spaces": [bool(word.whitespace_) for word in document],
        "lemmas": [word.lemma_ for word in document],
        "heads": [word.head.i for word in document],
        "tags": [sys.intern(word.tag_) for word in document],
        "pos": [sys.intern(word.pos_) for word in document],
        "deps": [sys.intern(word.dep_) for word in document],
        "ents": [sys.intern(f"{word.ent_iob_}-{word.ent_type_}") if word.ent_type else "O" for word in document],
    }


@dataclass(frozen=True)
class _Words:
    """Words of a part of a document, without spaCy's objects, whose strings may be freed with those of their batch.

    Made in time that grows with the part alone; `Span.as_doc` goes through the whole document each time.
    """

    words: list[str]
    has_space: list[bool]
    """Whether a space follows."""
    norms: list[str]
    """The forms that the parser reads: the tokenizer's exceptions, such as contractions, differ from the vocabulary."""

    @classmethod
    def of(cls, part: Any) -> "_Words":
        """The words of a document that is not parsed yet, or of a part of one."""
        return cls([word.text for word in part], [bool(word.whitespace_) for word in part], [w.norm_ for w in part])

    def document(self, package: str) -> Any:
        """A document of these words."""
        from spacy.tokens import Doc

        document = Doc(_pipeline(package).vocab, words=self.words, spaces=self.has_space)
        for word, norm in zip(document, self.norms, strict=True):
            word.norm_ = norm
        return document


def _next_batch(
    package: str, texts: Sequence[Text], pending: deque[tuple[Position, _Words | None]]
) -> list[tuple[Any, Position, Hashable]]:
    """Take the next pieces from the pending ones, of at most BATCH_WORDS words in total unless it is one: document and
    position of each, and what its parse is kept by, None for a part of a segment. A long segment becomes such parts,
    without documents, as these may not outlive their batch."""
    batch, n_words = list[tuple[Any, Position, Hashable]](), 0
    while pending:
        position, words = pending[0]
        text, side = texts[position.text], position.segment
        document = _document(package, text, side) if words is None else words.document(package)
        if len(document) > PIECE_WORDS:
            parts = [document[start : start + PIECE_WORDS] for start in range(0, len(document), PIECE_WORDS)]
            cut = [(replace(position, start=part.start_char), _Words.of(part)) for part in parts]
            pending.popleft()
            pending.extendleft(reversed(cut))
            continue
        n_words += len(document)
        if batch and n_words > BATCH_WORDS:
            break
        key = (text.segments[side], None) if text.words is None else (None, text.words[side])
        batch.append((document, position, key if words is None else None))
        pending.popleft()
    return batch


@lru_cache(maxsize=MOST_PIPELINES)
def _pipeline(package: str) -> Any:
    with interruptible():
        import spacy

        return spacy.load(package)


def _document(package: str, text: Text, side: int) -> Any:
    if text.words is None:
        return _pipeline(package).make_doc(text.segments[side])
    from spacy.tokens import Doc

    return Doc(_pipeline(package).vocab, words=list(text.words[side]))
