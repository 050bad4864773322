"""Dependency relations of a Text, parsed by spaCy or given in its file, and the tokens of their words."""

import sys
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, groupby, repeat
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.pauses import pause
from attention_sieve.core.texts.pairs import GivenPairs
from attention_sieve.core.texts.parsers import (
    NO_PARSER,
    RELATION_NAMES,
    english_parser,
    find_parser,
    installed_parsers,
    parser_name,
)
from attention_sieve.core.texts.patterns import matched_words, word_patterns
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText, Words, words_of

RELATIONS: Final = ("nsubj", "dobj", "amod", "advmod")
"""Relations that have a syntactic role of their own, as spaCy names them.

Change with them: UNIVERSAL where Universal Dependencies has another name, LOOKS of
`attention_sieve.dashboard.figures.appearance`, and DEPENDENT_AND_HEAD of `attention_sieve.dashboard.wording`.
"""
ROOT: Final = -1
"""Head of a word without a head."""
ROOT_RELATION: Final = "root"
ANY_RELATION: Final = "any"
UNIVERSAL: Final = {"obj": "dobj"}
"""Universal Dependencies name -> name used here, for relations of roles whose names differ."""
PIECE_WORDS: Final = 5_000
"""Words parsed at once; 100,000 would take 1.5 GB. A sentence split between two pieces may lose a relation."""
BATCH_WORDS: Final = 1_000
"""Words of short texts that are parsed at once: others wait for the parser meanwhile."""
MOST_PIPELINES: Final = 4
"""Parsers in memory, each with about 50 MB."""
KEPT_STRINGS: Final = 50_000
"""Words, lower-cased words, affixes and shapes that spaCy may keep of texts it has parsed: about 10 MB."""
KEPT_WORDS: Final = 100_000
"""Words of texts whose parses are kept, so that a role that is changed costs no parser: about 25 MB."""
OPTIONAL: Final = ("tagger", "morphologizer", "attribute_ruler", "lemmatizer", "ner")
"""Parts of a pipeline that run only where they are needed."""
TAGGED: Final = ("TAG", "POS", "LEMMA")
"""Attributes of spaCy's Matcher that need its tagger."""
SPAN_CELLS: Final = 1 << 15
"""Maximum number of spans times tokens that are compared at once, so that they fit into a processor's cache."""
_one_at_a_time: Final = Lock()
"""One spaCy pipeline serves all threads, and spaCy does not guarantee that it is thread-safe."""


@dataclass(frozen=True)
class Wanted:
    """What a parse has to find in texts."""

    relations: tuple[str, ...] = RELATIONS
    """Names of the relations, with ANY_RELATION for all of them."""
    tags: bool = False
    lemmas: bool = False
    entities: bool = False
    patterns: tuple[str, ...] = ()
    """Of spaCy's Matcher, as JSON, from `attention_sieve.core.texts.patterns.checked`."""
    trees: tuple[str, ...] = ()
    """Patterns of trees, from `attention_sieve.core.texts.patterns.checked_tree`."""

    @cached_property
    def of_words(self) -> tuple[str, ...]:
        """All patterns of words: `patterns`, and those of the words of trees."""
        return tuple(dict.fromkeys((*self.patterns, *chain.from_iterable(map(word_patterns, self.trees)))))

    @property
    def by_words(self) -> bool:
        """Whether it is something that trees given in a file do not have."""
        return self.tags or self.lemmas or self.entities or bool(self.of_words)

    @property
    def nothing(self) -> bool:
        """Whether no parser is needed."""
        return not self.relations and not self.by_words

    def __or__(self, other: "Wanted") -> "Wanted":
        return Wanted(
            tuple(dict.fromkeys(self.relations + other.relations)),
            self.tags or other.tags,
            self.lemmas or other.lemmas,
            self.entities or other.entities,
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            tuple(dict.fromkeys(self.trees + other.trees)),
        )

    @property
    def left_out(self) -> list[str]:
        """Parts of the pipeline that are not needed, as they take time."""
        lemmas = self.lemmas or any('"LEMMA"' in pattern for pattern in self.of_words)
        attributes = lemmas or any(f'"{name}"' in pattern for pattern in self.of_words for name in TAGGED)
        tagged = self.tags or attributes
        entities = self.entities or any('"ENT_TYPE"' in pattern for pattern in self.of_words)
        needed = (tagged, tagged, attributes, lemmas, entities)
        return [part for part, is_needed in zip(OPTIONAL, needed, strict=True) if not is_needed]


RELATED_WORDS: Final = Wanted()


class Relation(NamedTuple):
    """A dependent and its head, as character spans of their segment."""

    name: str
    segment: int
    dependent: tuple[int, int]
    """First and one-past-last character."""
    head: tuple[int, int]


class TokenPair(NamedTuple):
    """A relation in tokens: all word pieces of the dependent and of its head."""

    name: str
    dependent: Int[np.ndarray, " piece"]
    head: Int[np.ndarray, " head_piece"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dependencies:
    """The dependency tree of each sentence of one text, or the pairs that a file marks in it."""

    words: Words
    heads: Int[np.ndarray, " word"]
    """Index of each word's head among the words of the text, in the same segment unless a pair joins two; ROOT for the
    root of a sentence, and where no pair begins."""
    relations: tuple[str, ...]
    """Relation of each word to its head; always ROOT_RELATION for a root."""
    tags: tuple[str, ...] | None = None
    """Part of speech of each word, as a tag of the Penn Treebank; None unless asked for."""
    lemmas: tuple[str, ...] = ()
    """Lemma of each word, in lower case; empty unless asked for."""
    entities: tuple[str, ...] = ()
    """Kind of the named entity that each word is part of, or ""; empty unless asked for."""
    matches: tuple[tuple[bool, ...], ...] = ()
    """Whether each word is part of a match of each of the patterns of words that were asked for."""


def pairs_as_tree(pairs: GivenPairs) -> Dependencies:
    """Pairs that a file marks in a text, each as a dependent with its syntactic head; they may form cycles, and join
    two segments."""
    words = Words(segments=np.array(pairs.segments, int), spans=np.array(pairs.spans, int).reshape(-1, 2))
    return _trees(words, np.array(pairs.heads, int), pairs.relations)


def dependencies(texts: Sequence[Text]) -> Iterator[Dependencies]:
    """The dependency trees of each text, in order, parsed lazily.

    Texts with gold heads and relations keep them. All others are parsed by spaCy without preprocessing, by the package
    that they name: their words are spaCy's tokens, including punctuation but not whitespace, or the words given in the
    file.

    Raises: AnalysisError if a text has to be parsed and is not to be, or its parser is not installed.
    """
    parsed = _parsed_trees([text for text in texts if text.heads is None])
    for text in texts:
        yield next(parsed) if text.heads is None else _given_trees(text)


def tagged_dependencies(texts: Sequence[Text]) -> Iterator[Dependencies]:
    """The dependency trees of each text, in order, parsed lazily, with parts of speech; all by spaCy.

    Gold heads and relations, which have no parts of speech, are ignored; words given in a file are kept.

    Raises: AnalysisError if no pipeline is installed.
    """
    return _parsed_trees(texts, Wanted(tags=True))


def with_tree(text: Text, tree: Dependencies) -> Text:
    """A text with its tree from `dependencies` attached, so that it is not parsed again."""
    firsts = np.searchsorted(tree.words.segments, tree.words.segments)
    heads = np.where(tree.heads == ROOT, 0, tree.heads - firsts + 1).tolist()
    ends = np.searchsorted(tree.words.segments, range(len(text.segments)), side="right").tolist()
    sides = [slice(start, end) for start, end in zip([0, *ends], ends)]
    spans = [(start, end) for start, end in tree.words.spans.tolist()]
    return replace(
        text,
        heads=tuple(tuple(heads[side]) for side in sides),
        relations=tuple(tree.relations[side] for side in sides),
        spans=tuple(tuple(spans[side]) for side in sides),
    )


def parse(texts: Sequence[Text]) -> Iterator[tuple[Relation, ...]]:
    """The relations of each text that are in RELATIONS, in order, parsed lazily.

    Labels must match exactly, so passive subjects are not `nsubj`. Labels are spaCy's or gold; the gold label `obj` of
    Universal Dependencies counts as `dobj`.
    Source: Pande et al. 2021, syntactic sieve; their notebook parses cleaned text, this function the original text.
    """
    return (relations for relations, _ in parse_for(texts, RELATED_WORDS))


def parse_for(texts: Sequence[Text], wanted: Wanted) -> Iterator[tuple[tuple[Relation, ...], Dependencies | None]]:
    """The relations of each text that are wanted, as of `parse`, and its words as spaCy parses them, in order, lazily.

    The words are None where nothing is wanted that the trees of the file do not have. A text that is not to be parsed
    has neither, but the relations of its own trees.

    Raises: AnalysisError if a text has to be parsed and no pipeline is installed, or it cannot find what is wanted.
    """
    is_parsed = [
        text.parser != NO_PARSER and (wanted.by_words or bool(wanted.relations and text.heads is None))
        for text in texts
    ]
    parsed = _parsed_trees([text for text, by_spacy in zip(texts, is_parsed) if by_spacy], wanted)
    for text, by_spacy in zip(texts, is_parsed):
        words = next(parsed) if by_spacy else None
        if text.heads is not None:
            yield _given_relations(text, wanted.relations), words
        else:
            yield () if words is None else _relations(words, wanted.relations), words


def _given_relations(text: Text, wanted: tuple[str, ...]) -> tuple[Relation, ...]:
    """`_relations` of the trees given with a text; four times as fast if its spans are given too."""
    if text.spans is None:
        return _relations(_given_trees(text), wanted)
    results = list[Relation]()
    segments = zip(text.relations or (), text.heads or (), text.spans, strict=True)
    for segment, (relations, heads, spans) in enumerate(segments):
        for name, head, span in zip(relations, heads, spans, strict=True):
            universal = UNIVERSAL.get(name, name)
            if head and (universal in wanted or ANY_RELATION in wanted):
                results.append(Relation(universal, segment, span, spans[head - 1]))
    return tuple(results)


def _relations(dependencies: Dependencies, wanted: tuple[str, ...]) -> tuple[Relation, ...]:
    names = [UNIVERSAL.get(relation, relation) for relation in dependencies.relations]
    spans = [(start, end) for start, end in dependencies.words.spans.tolist()]
    return tuple(
        Relation(name, int(dependencies.words.segments[index]), spans[index], spans[head])
        for index, (name, head) in enumerate(zip(names, dependencies.heads.tolist()))
        if head != ROOT and (name in wanted or ANY_RELATION in wanted)
    )


def _given_trees(text: Text) -> Dependencies:
    words = words_of(text)
    heads = np.array(list(chain.from_iterable(text.heads or ())), int)
    firsts = np.searchsorted(words.segments, words.segments)
    relations = list(chain.from_iterable(text.relations or ()))
    return _trees(words, np.where(heads > 0, firsts + heads - 1, ROOT), relations)


def _parsed_trees(texts: Sequence[Text], wanted: Wanted = RELATED_WORDS) -> Iterator[Dependencies]:
    for parser, of_parser in groupby(texts, key=lambda text: text.parser):
        if parser == NO_PARSER:
            raise AnalysisError(
                "There are texts without trees, and no parser is to find them. Choose a parser, or give the trees in a "
                "file, such as one of CoNLL-U."
            )
        package = english_parser() if parser is None else find_parser(parser)
        yield from _trees_of(package, tuple(of_parser), wanted)


def _trees_of(package: str, texts: Sequence[Text], wanted: Wanted) -> Iterator[Dependencies]:
    """Trees of texts that one package parses."""
    for _, pieces in groupby(_parsed(package, texts, wanted), key=lambda piece: piece.position.text):
        segments, spans, heads, relations = list[int](), list[tuple[int, int]](), list[int](), list[str]()
        tags, lemmas, entities, matches = list[str](), list[str](), list[str](), list[tuple[bool, ...]]()
        for piece in pieces:
            first = len(heads)
            segments += [piece.position.segment] * len(piece.spans)
            spans += [(piece.position.start + start, piece.position.start + end) for start, end in piece.spans]
            heads += [first + head if head != ROOT else ROOT for head in piece.heads]
            relations += piece.relations
            tags += piece.tags
            lemmas += piece.lemmas
            entities += piece.entities
            matches += piece.matches
        words = Words(segments=np.array(segments, int), spans=np.array(spans, int).reshape(-1, 2))
        trees = _trees(words, np.array(heads, int), relations)
        if not wanted.by_words:
            yield trees
            continue
        yield replace(
            trees,
            tags=tuple(tags) if wanted.tags else None,
            lemmas=tuple(lemmas) if wanted.lemmas else (),
            entities=tuple(entities) if wanted.entities else (),
            matches=tuple(zip(*matches)) if matches else ((),) * len(wanted.of_words),
        )


def _head(word: Any) -> Any:
    """A word's head, skipping spaCy's whitespace tokens."""
    head = word.head
    while head.is_space and head.head != head:
        head = head.head
    return head


def _trees(words: Words, heads: Int[np.ndarray, " word"], relations: Sequence[str]) -> Dependencies:
    names = (ROOT_RELATION if head == ROOT else relation for head, relation in zip(heads.tolist(), relations))
    return Dependencies(words=words, heads=heads, relations=tuple(names))


@dataclass(frozen=True)
class _Position:
    """Position of a piece of a text."""

    text: int
    segment: int
    start: int
    """Index of the first character of the piece in its segment."""
    key: Hashable = None
    """What its parse is kept by; None for a part of a segment."""


@dataclass(frozen=True, eq=False)
class _Parse:
    """A parsed document, without references to spaCy objects."""

    left_out: frozenset[str]
    """Parts of the pipeline that did not run."""
    fields: Mapping[str, list[Any]]
    """Arguments of spaCy's `Doc`."""
    since: float
    """When it was parsed, in seconds since 1970."""

    @classmethod
    def of(cls, document: Any, left_out: frozenset[str]) -> "_Parse":
        """The parse of a document."""
        named = {
            "tags": [sys.intern(word.tag_) for word in document],
            "pos": [sys.intern(word.pos_) for word in document],
            "deps": [sys.intern(word.dep_) for word in document],
            "ents": [sys.intern(f"{word.ent_iob_}-{word.ent_type_}") if word.ent_type else "O" for word in document],
        }
        words, spaces = [word.text for word in document], [bool(word.whitespace_) for word in document]
        lemmas, heads = [word.lemma_ for word in document], [word.head.i for word in document]
        fields = {"words": words, "spaces": spaces, "lemmas": lemmas, "heads": heads, **named}
        return cls(left_out, fields, time.time())

    def document(self, package: str) -> Any:
        """The document again, in a hundredth of the time of parsing it."""
        from spacy.tokens import Doc

        return Doc(_pipeline(package).vocab, **self.fields)


class _Parses:
    """The parses of the last KEPT_WORDS words; used under `_one_at_a_time`."""

    def __init__(self) -> None:
        self._by_key = OrderedDict[Hashable, _Parse]()
        self._n_words = 0

    def get(self, key: Hashable) -> _Parse | None:
        """The parse of a text, whatever ran for it."""
        if key in self._by_key:
            self._by_key.move_to_end(key)
        return self._by_key.get(key)

    def put(self, key: Hashable, parse: _Parse) -> None:
        """Keep a parse in place of an earlier one of this text."""
        self._drop([key])
        self._by_key[key] = parse
        self._n_words += len(parse.fields["words"])
        while self._n_words > KEPT_WORDS:
            self._drop([next(iter(self._by_key))])

    def forget(self, before: float) -> None:
        """Drop what was parsed before a time."""
        self._drop([key for key, parse in self._by_key.items() if parse.since < before])

    def _drop(self, keys: Sequence[Hashable]) -> None:
        for key in keys:
            if (parse := self._by_key.pop(key, None)) is not None:
                self._n_words -= len(parse.fields["words"])


PARSES: Final = _Parses()


def forget_parses(before: float) -> None:
    """Forget the texts that were parsed before a time, in seconds since 1970."""
    with _one_at_a_time:
        PARSES.forget(before)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Piece:
    """Trees of a piece, without references to spaCy objects."""

    position: _Position
    spans: list[tuple[int, int]]
    """Span of each word in the piece."""
    heads: list[int]
    """Index of each word's head among the words of the piece; ROOT for the root of a sentence."""
    relations: list[str]
    tags: list[str]
    lemmas: list[str]
    entities: list[str]
    matches: list[tuple[bool, ...]]
    """Whether each word is part of a match of each pattern."""

    @classmethod
    def of(
        cls, position: _Position, document: Any, names: Mapping[str, str], matched: Sequence[Sequence[bool]]
    ) -> "_Piece":
        """The trees of a parsed document, whose relations get these names, and by pattern which of its words, spaces
        included, are matched."""
        words = [word for word in document if not word.is_space]
        numbers = {word.i: number for number, word in enumerate(words)}
        return cls(
            position=position,
            spans=[(word.idx, word.idx + len(word)) for word in words],
            heads=[numbers.get(_head(word).i, ROOT) if _head(word) != word else ROOT for word in words],
            relations=[names.get(word.dep_, word.dep_) for word in words],
            tags=[word.tag_ for word in words],
            lemmas=[word.lemma_.lower() for word in words],
            entities=[word.ent_type_ for word in words],
            matches=[tuple(of_pattern[word.i] for of_pattern in matched) for word in words],
        )


def _parsed(package: str, texts: Sequence[Text], wanted: Wanted) -> Iterator[_Piece]:
    """Parse every segment in batches of a few words, or of one piece, which limits the parser's memory.

    No spaCy object may outlive its batch, because its strings may be freed with the batch. Parses of the last texts are
    kept as strings.
    """
    parts = set(_pipeline(package).pipe_names)
    taggers = {"tagger", "morphologizer"}  # a language has one of them
    present = parts | taggers if parts & taggers else parts
    if lacking := sorted(set(OPTIONAL) - set(wanted.left_out) - present):
        raise AnalysisError(
            f"The parser {parser_name(package)} has no {' and no '.join(lacking)}, which a role needs. Write the role "
            "without named entities, lemmas or parts of speech."
        )
    pending = _PendingSegments(package, texts)
    while pending:
        pause()
        with _one_at_a_time, _within_bounds(package):
            pieces = _parsed_batch(package, pending.next_batch(), wanted)
        yield from pieces


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


def _parsed_batch(package: str, batch: list[tuple[Any, _Position]], wanted: Wanted) -> list[_Piece]:
    names = RELATION_NAMES.get(installed_parsers().get(package, ""), {})
    left_out, documents = frozenset(wanted.left_out), [document for document, _ in batch]
    kept = [None if position.key is None else PARSES.get((package, position.key)) for _, position in batch]
    missing = [place for place, parse in enumerate(kept) if parse is None or not parse.left_out <= left_out]
    # What has run for a text runs again with what is new, so that roles by turns do not push out each other's parses.
    left_out = left_out.intersection(*(parse.left_out for place in missing if (parse := kept[place]) is not None))
    parsed = _pipeline(package).pipe(
        [documents[place] for place in missing], batch_size=len(batch), disable=sorted(left_out)
    )
    for place, document in zip(missing, parsed, strict=True):
        documents[place] = document
        if (key := batch[place][1].key) is not None:
            PARSES.put((package, key), _Parse.of(document, left_out))
    for place, parse in enumerate(kept):
        if parse is not None and place not in missing:
            documents[place] = parse.document(package)
    by_pattern = [matched_words(pattern, documents) for pattern in wanted.of_words]
    matched = zip(*by_pattern) if by_pattern else repeat(())
    positions = [position for _, position in batch]
    return [_Piece.of(*each, names, of_text) for each, of_text in zip(zip(positions, documents), matched)]


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


class _PendingSegments:
    """Segments that are not parsed yet, and pieces of long ones."""

    def __init__(self, package: str, texts: Sequence[Text]) -> None:
        self._package, self._texts = package, texts
        self._segments = ((i, side) for i, text in enumerate(texts) for side in range(len(text.segments)))
        self._segment = next(self._segments, None)
        self._cut = deque[tuple[_Words, _Position]]()
        """Pieces of a long segment."""

    def __bool__(self) -> bool:
        return self._segment is not None or bool(self._cut)

    def next_batch(self) -> list[tuple[Any, _Position]]:
        """The next documents, of at most BATCH_WORDS words in total unless it is one."""
        batch, n_words = list[tuple[Any, _Position]](), 0
        while (piece := self._first()) is not None:
            n_words += len(piece[0])
            if batch and n_words > BATCH_WORDS:
                break
            batch.append(piece)
            if self._cut:
                self._cut.popleft()
            else:
                self._segment = next(self._segments, None)
        return batch

    def _first(self) -> tuple[Any, _Position] | None:
        """The next document, without removing it."""
        if self._segment is not None and not self._cut:
            i, side = self._segment
            document = _document(self._package, self._texts[i], side)
            if len(document) <= PIECE_WORDS:
                text = self._texts[i]
                key = (text.segments[side], None) if text.words is None else (None, text.words[side])
                return document, _Position(i, side, 0, key)
            for start in range(0, len(document), PIECE_WORDS):
                piece = document[start : start + PIECE_WORDS]
                self._cut.append((_Words.of(piece), _Position(i, side, piece.start_char)))
            self._segment = next(self._segments, None)
        if not self._cut:
            return None
        words, position = self._cut[0]
        return words.document(self._package), position


def token_pairs(tokenized: TokenizedText, relations: Sequence[Relation]) -> tuple[TokenPair, ...]:
    """Map relations to a text's tokens; those whose dependent or head has no tokens are dropped."""
    return token_pairs_of([tokenized], [relations])[0]


def token_pairs_of(
    texts: Sequence[TokenizedText], relations: Sequence[Sequence[Relation]]
) -> list[tuple[TokenPair, ...]]:
    """`token_pairs` of each text, looked up together, which is much faster for short texts."""
    spans = [
        (row, relation.segment, *span)
        for row, text_relations in enumerate(relations)
        for relation in text_relations
        for span in (relation.dependent, relation.head)
    ]
    tokens = iter(_tokens_of_spans(texts, spans))
    pairs = [
        [TokenPair(relation.name, next(tokens), next(tokens)) for relation in text_relations]
        for text_relations in relations
    ]
    return [
        tuple(pair for pair in text_relations if len(pair.dependent) and len(pair.head)) for text_relations in pairs
    ]


def tokens_of(tokenized: TokenizedText, segment: int, span: tuple[int, int]) -> Int[np.ndarray, " piece"]:
    """Tokens of a segment that overlap a span of characters."""
    return _tokens_of_spans([tokenized], [(0, segment, *span)])[0]


def _tokens_of_spans(texts: Sequence[TokenizedText], spans: Sequence[tuple[int, int, int, int]]) -> list[np.ndarray]:
    """Tokens that overlap each span, given as index of the text, segment, first and one-past-last character.

    Many spans are looked up at once, fewer if texts are long.
    """
    longest = max((len(text.ids) for text in texts), default=0)
    segments = np.full((len(texts), longest), SPECIAL)
    starts, ends = np.zeros((2, len(texts), longest), np.int64)
    for row, text in enumerate(texts):
        n_tokens = len(text.ids)
        segments[row, :n_tokens] = text.segments
        starts[row, :n_tokens], ends[row, :n_tokens] = text.spans.T
    at_once = max(1, SPAN_CELLS // max(1, longest))
    results: list[np.ndarray] = []
    for batch_start in range(0, len(spans), at_once):
        row, segment, first, last = np.array(spans[batch_start : batch_start + at_once], np.int64).T[:, :, None]
        row = row[:, 0]
        overlaps = np.maximum(starts[row], first) < np.minimum(ends[row], last)
        rows, tokens = np.nonzero((segments[row] == segment) & overlaps)
        ends_of_spans = np.searchsorted(rows, np.arange(len(row)), side="right").tolist()
        results += [tokens[start:end] for start, end in zip([0, *ends_of_spans], ends_of_spans)]
    return results


@lru_cache(maxsize=MOST_PIPELINES)
def _pipeline(package: str) -> Any:
    import spacy

    return spacy.load(package)


def _document(package: str, text: Text, side: int) -> Any:
    if text.words is None:
        return _pipeline(package).make_doc(text.segments[side])
    from spacy.tokens import Doc

    return Doc(_pipeline(package).vocab, words=list(text.words[side]))
