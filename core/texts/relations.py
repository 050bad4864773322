"""Dependency relations of a Text, parsed by spaCy or given in its file, and the tokens of their words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.given import GivenPairs
from attention_sieve.core.texts.parsers import NO_PARSER, english_parser, find_parser
from attention_sieve.core.texts.parsing import OPTIONAL, parsed
from attention_sieve.core.texts.patterns import word_patterns
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
TAGGED: Final = ("TAG", "POS", "LEMMA")
"""Attributes of spaCy's Matcher that need its tagger."""
SPAN_CELLS: Final = 1 << 15
"""Maximum number of spans times tokens that are compared at once, so that they fit into a processor's cache."""


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
    def all_word_patterns(self) -> tuple[str, ...]:
        """All patterns of words: `patterns`, and those of the words of trees."""
        return tuple(dict.fromkeys((*self.patterns, *chain.from_iterable(map(word_patterns, self.trees)))))

    @property
    def by_words(self) -> bool:
        """Whether it is something that trees given in a file do not have."""
        return self.tags or self.lemmas or self.entities or bool(self.all_word_patterns)

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
    def left_out(self) -> frozenset[str]:
        """Parts of the pipeline that are not needed, as they take time."""
        lemmas = self.lemmas or any('"LEMMA"' in pattern for pattern in self.all_word_patterns)
        attributes = lemmas or any(f'"{name}"' in pattern for pattern in self.all_word_patterns for name in TAGGED)
        tagged = self.tags or attributes
        entities = self.entities or any('"ENT_TYPE"' in pattern for pattern in self.all_word_patterns)
        needed = (tagged, tagged, attributes, lemmas, entities)
        return frozenset(part for part, is_needed in zip(OPTIONAL, needed, strict=True) if not is_needed)


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
    trees = _parsed_trees([text for text in texts if text.heads is None])
    for text in texts:
        yield next(trees) if text.heads is None else _given_trees(text)


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
    trees = _parsed_trees([text for text, by_spacy in zip(texts, is_parsed) if by_spacy], wanted)
    for text, by_spacy in zip(texts, is_parsed):
        words = next(trees) if by_spacy else None
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
    for parser, parser_texts in groupby(texts, key=lambda text: text.parser):
        if parser == NO_PARSER:
            raise AnalysisError(
                "There are texts without trees, and no parser is to find them. Choose a parser, or give the trees in a "
                "file, such as one of CoNLL-U."
            )
        package = english_parser() if parser is None else find_parser(parser)
        yield from _trees_of(package, tuple(parser_texts), wanted)


def _trees_of(package: str, texts: Sequence[Text], wanted: Wanted) -> Iterator[Dependencies]:
    parsed_pieces = parsed(package, texts, wanted.left_out, wanted.all_word_patterns)
    for _, pieces in groupby(parsed_pieces, key=lambda piece: piece.position.text):
        segments, spans, heads, relations = list[int](), list[tuple[int, int]](), list[int](), list[str]()
        tags, lemmas, entities, matches = list[str](), list[str](), list[str](), list[tuple[bool, ...]]()
        for piece in pieces:
            first = len(heads)
            segments += [piece.position.segment] * len(piece.spans)
            spans += [(piece.position.start + start, piece.position.start + end) for start, end in piece.spans]
            heads += [ROOT if head == word else first + head for word, head in enumerate(piece.heads)]
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
            matches=tuple(zip(*matches)) if matches else ((),) * len(wanted.all_word_patterns),
        )


def _trees(words: Words, heads: Int[np.ndarray, " word"], relations: Sequence[str]) -> Dependencies:
    names = (ROOT_RELATION if head == ROOT else relation for head, relation in zip(heads.tolist(), relations))
    return Dependencies(words=words, heads=heads, relations=tuple(names))


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
