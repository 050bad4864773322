"""What a file gives of a text beside its characters: words with a dependency tree (CoNLL-U), ids of tokens, and pairs
of spans, with the words that they make: brackets, uses and definitions, atoms.

A text with pairs is an object of JSON, one a line in a .jsonl file:

    {"text": "f(x)", "document": "a.py", "pairs": [{"relation": "bracket", "from": [3, 4], "to": [1, 2]}]}

Keys:
    text, or text_a and text_b: as of any text.
    pairs: a list of objects. "relation" is a name; "from" and "to" are spans, each of the first character and the one
        after the last, counted from 0. Where there are two texts, the keys say which: "from_a" or "from_b", and "to_a"
        or "to_b". From every span at most one pair begins; any number may end in one.
    document: name of the document that the text is part of; optional.
    format: FORMAT; optional.

A head parses such a text as it parses a sentence: "from" stands where a dependent does, "to" where its syntactic head
does. Every marked span is a word. The characters between are runs of letters and digits, and single other characters.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from attention_sieve.core.errors import TextError, quoted
from attention_sieve.core.json_values import as_list, as_name, kind_of, span_of, value_at

FORMAT: Final = 1
PAIRS: Final = "pairs"
DOCUMENT: Final = "document"
ANTECEDENT: Final = "antecedent"
"""Name of the relation that leads from a mention to an earlier one of the same entity."""
RESERVED: Final = ("all", "punct", "root")
"""Names that no relation of a file may have: all relations together, and two that are never counted among them."""
MAX_NAME: Final = 100
"""Maximum length of a relation's name, in characters."""
NO_PAIR: Final = -1
_SIDES: Final = ("_a", "_b")
_WORD: Final = re.compile(r"\w+|[^\w\s]")

Place = tuple[int, int, int]
"""Segment, first and one-past-last character."""


@dataclass(frozen=True)
class WrittenPair:
    """A pair as written in a file, in the characters of its text as they stand there."""

    relation: str
    start: Place
    end: Place


@dataclass(frozen=True)
class GivenPairs:
    """The words of a text whose file marks pairs of them."""

    segments: tuple[int, ...]
    """Of each word."""
    spans: tuple[tuple[int, int], ...]
    """First and one-past-last character of each word in its segment."""
    heads: tuple[int, ...]
    """The word that each word is paired with; NO_PAIR for a word from which no pair begins."""
    relations: tuple[str, ...]
    """Of each word to that one; empty for none."""

    @property
    def is_across(self) -> bool:
        """Whether a pair joins the two segments of its text."""
        return any(head != NO_PAIR and self.segments[head] != side for head, side in zip(self.heads, self.segments))

    def antecedents(self) -> Iterator[tuple[int, list[int]]]:
        """Every word that a pair leads from to its antecedent, with this one, that one's antecedent, and so on."""
        for word in range(len(self.heads)):
            at, earlier = word, list[int]()
            while self.relations[at] == ANTECEDENT and self.heads[at] not in (word, *earlier):
                at = self.heads[at]
                earlier.append(at)
            if earlier:
                yield word, earlier

    def within_segment(self, side: int) -> "GivenPairs":
        """Those within one segment, which is a text of its own."""
        first, n_words = self.segments.index(side), self.segments.count(side)
        part, own = slice(first, first + n_words), range(first, first + n_words)
        return GivenPairs(
            segments=(0,) * n_words,
            spans=self.spans[part],
            heads=tuple(head - first if head in own else NO_PAIR for head in self.heads[part]),
            relations=tuple(
                relation if head in own else "" for head, relation in zip(self.heads[part], self.relations[part])
            ),
        )


def written_pairs(
    item: Mapping[str, Any], segments: Sequence[str], where: str
) -> tuple[str | None, tuple[WrittenPair, ...]]:
    """The document and the pairs of an object of parsed JSON. Error messages begin with its location in the file.

    Raises: TextError.
    """
    if (written := item.get("format", FORMAT)) != FORMAT:
        raise TextError(
            f'{where}: "format" is {kind_of(written) if not isinstance(written, float) else f"{written:g}"}, and pairs '
            f"of format {FORMAT} are read. Write the file again with this version of the program."
        )
    document = None if item.get(DOCUMENT) is None else as_name(item[DOCUMENT], DOCUMENT, where)
    pairs = enumerate(as_list(item[PAIRS], PAIRS, where, "objects"), start=1)
    return document, tuple(_pair(pair, segments, f"{where}, pair {number:,}") for number, pair in pairs)


def _pair(pair: Any, segments: Sequence[str], where: str) -> WrittenPair:
    relation = value_at(pair, "relation", where)
    if not isinstance(relation, str):
        raise TextError(f'{where}: "relation" is {kind_of(relation)}. Write its name.')
    relation = relation.strip()
    if not relation or len(relation) > MAX_NAME or not relation.isprintable() or relation in RESERVED:
        raise TextError(
            f"{where}: the relation is called {quoted(relation)}. Give it a plain name of at most {MAX_NAME} "
            f"characters that is none of {', '.join(RESERVED)}."
        )
    start, end = (_place(pair, key, segments, where) for key in ("from", "to"))
    if start == end:
        raise TextError(f"{where} begins and ends in {list(start[1:])}. Pair two different spans.")
    return WrittenPair(relation, start, end)


def _place(pair: Mapping[str, Any], key: str, segments: Sequence[str], where: str) -> Place:
    keys = [key] if len(segments) == 1 else [f"{key}{side}" for side in _SIDES]
    given = [side for side, name in enumerate(keys) if name in pair]
    if len(given) != 1:
        names = " or ".join(map(quoted, keys))
        raise TextError(f"{where} has {'more than one' if given else 'no'} span under {names}. Give it one.")
    (side,) = given
    span = span_of(pair[keys[side]], keys[side], len(segments[side]), where, "character")
    return side, *span


def pairs_line(segments: Sequence[str], pairs: Sequence[WrittenPair], document: str | None = None) -> str:
    """A line of a file, which reads as these pairs again. The pairs are of spans of their characters."""
    sides = _SIDES if len(segments) > 1 else ("",)
    item: dict[str, Any] = {"format": FORMAT, **{f"text{side}": text for side, text in zip(sides, segments)}}
    if document is not None:
        item[DOCUMENT] = document
    item[PAIRS] = [
        {
            "relation": pair.relation,
            f"from{sides[pair.start[0]]}": pair.start[1:],
            f"to{sides[pair.end[0]]}": pair.end[1:],
        }
        for pair in pairs
    ]
    return json.dumps(item)


def given_pairs(pairs: Sequence[WrittenPair], segments: Sequence[str], shifts: Sequence[int], where: str) -> GivenPairs:
    """The words of a text with its pairs.

    Args:
        segments: the texts as they are read: on one line, without spaces at their ends.
        shifts: characters before each of them that were left out.
        where: location of the text in the file, with which error messages begin.

    Raises: TextError for a span of spaces alone, two that overlap, and two pairs that begin in one.
    """
    read = {place: _place_as_read(place, segments, shifts, where) for pair in pairs for place in (pair.start, pair.end)}
    for one, other in pairwise(sorted(read.values())):
        if one[0] == other[0] and other[1] < one[2] and one != other:
            shift = shifts[one[0]]
            raise TextError(
                f"{where}: the spans [{one[1] + shift}, {one[2] + shift}] and [{other[1] + shift}, {other[2] + shift}] "
                "overlap. Every marked span is a word of its own: give equal spans, or spans apart from each other."
            )
    words = [word for side, segment in enumerate(segments) for word in _words(side, segment, sorted(read.values()))]
    number = {word: place for place, word in enumerate(words)}
    heads, relations = [NO_PAIR] * len(words), [""] * len(words)
    for pair in pairs:
        word, head = number[read[pair.start]], number[read[pair.end]]
        if heads[word] != NO_PAIR:
            raise TextError(
                f"{where}: two pairs begin in {list(pair.start[1:])}, and a head's guess for a word is one word. Write "
                "the text again on another line, with the second pair and the same document."
            )
        if word == head:
            raise TextError(f"{where}: a pair begins and ends in {list(pair.start[1:])}. Pair two different spans.")
        heads[word], relations[word] = head, pair.relation
    return GivenPairs(
        tuple(word[0] for word in words), tuple(word[1:] for word in words), tuple(heads), tuple(relations)
    )


def _place_as_read(place: Place, segments: Sequence[str], shifts: Sequence[int], where: str) -> Place:
    """A marked span in the text as it is read, without spaces at its ends."""
    side, start, end = place
    segment, start, end = segments[side], max(start - shifts[side], 0), max(end - shifts[side], 0)
    marked = segment[start:end]
    if not marked.strip():
        raise TextError(f"{where}: the span {list(place[1:])} holds spaces alone. Mark something that can be read.")
    start += len(marked) - len(marked.lstrip())
    return side, start, start + len(marked.strip())


def _words(side: int, segment: str, marked: Sequence[Place]) -> Iterator[Place]:
    """The words of a segment in their order: marked spans, and those between."""
    before = 0
    for span in [*dict.fromkeys(span for span in marked if span[0] == side), (side, len(segment), len(segment))]:
        yield from ((side, *match.span()) for match in _WORD.finditer(segment, before, span[1]))
        if span[1] < span[2]:
            yield span
        before = span[2]


N_COLUMNS: Final = 10
_ID, _FORM, _TAG, _HEAD, _RELATION = 0, 1, 4, 6, 7
_WORD_ID = re.compile(r"[0-9]{1,9}")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*))?")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""A multiword token, such as don't for do and n't, or an empty node."""


@dataclass(frozen=True)
class Tree:
    """Head and relation of each word of a segment."""

    heads: tuple[int, ...]
    """Position of each word's head in the segment, from 1; 0 for a root."""
    relations: tuple[str, ...]


@dataclass(frozen=True)
class GivenTokens:
    """The tokens of a text that is given by their ids, and never tokenized."""

    ids: tuple[int, ...]
    needle: tuple[int, int] | None = None
    """First and one-past-last token of what the answer copies; None if nothing is marked."""
    answer: tuple[int, int] | None = None
    """First and one-past-last token of the copy, which comes after the needle."""
    turns: tuple[tuple[int, int], ...] | None = None
    """First and one-past-last token of what is said in each turn of a chat, in order, also in a system message of the
    template's own; all other tokens are those of the chat template. None if it is no chat."""

    @property
    def fields(self) -> dict[str, object]:
        """Its fields for JSON; the turns only of a chat, so that the keys of other results stay as they were."""
        fields = asdict(self)
        return fields if self.turns is not None else {name: fields[name] for name in fields if name != "turns"}


@dataclass(frozen=True)
class WrittenText:
    """One text as written in a file, not yet cleaned."""

    where: str
    """Its location in the file, with which error messages begin."""
    segments: tuple[str, ...] = ()
    """One or two; empty if the file gives words instead."""
    words: tuple[str, ...] | None = None
    """Words of the single segment."""
    tree: Tree | None = None
    """Dependency tree of these words."""
    tags: tuple[str, ...] | None = None
    """Part of speech of each of these words in the tag set of the file's language, column 5 of CoNLL-U."""
    document: str | None = None
    """Name of its document; None if the file does not mark documents."""
    given: GivenTokens | None = None
    """Its tokens, if the file gives their ids; its words are then these numbers."""
    pairs: tuple[WrittenPair, ...] | None = None
    """Pairs of spans of its segments, if the file marks them."""


def written_ids(given: GivenTokens, where: str) -> WrittenText:
    """A text that is given by the ids of its tokens: its words are these numbers, and no relation joins two of them."""
    n_tokens = len(given.ids)
    tree = Tree((0,) * n_tokens, ("root",) * n_tokens)
    return WrittenText(where, words=tuple(map(str, given.ids)), tree=tree, given=given)


def checked_tree(heads: Sequence[int], relations: Sequence[str], n_words: int, where: str) -> Tree:
    """Check and build the tree of a segment; it may have several roots, for example one per sentence.

    Raises: TextError if the number of heads or relations differs from the number of words, a head does not exist, the
        heads form a cycle, or the name of a relation is empty, too long or not printable.
    """
    for values, name in ((heads, "heads"), (relations, "relations")):
        if len(values) != n_words:
            raise TextError(
                f"{where}: the number of words is {n_words:,} and of {name} {len(values):,}. Give one for each word."
            )
    for position, (head, relation) in enumerate(zip(heads, relations), start=1):
        if not 0 <= head <= n_words:
            raise TextError(
                f"{where}: word {position:,} has head {head:,} and the last word is {n_words:,}. Count heads from 1; 0 "
                "is a root."
            )
        if not relation.strip():
            raise TextError(f"{where}: word {position:,} has a relation without a name. Fill it in.")
        if len(relation) > MAX_NAME or not relation.isprintable():
            raise TextError(
                f"{where}: the relation of word {position:,} has a name of more than {MAX_NAME} characters, or of some "
                "that cannot be shown. Give it a plain name."
            )
    if word_in_cycle := _word_in_cycle(heads):
        raise TextError(
            f"{where}: following the heads from word {word_in_cycle:,} leads back to it. Every word must lead to a "
            "root, whose head is 0."
        )
    return Tree(tuple(heads), tuple(relation.strip() for relation in relations))


def _word_in_cycle(heads: Sequence[int]) -> int:
    """A word on a cycle of heads, numbered from 1; 0 if there is none."""
    reached_from = [0] * (len(heads) + 1)
    for start in range(1, len(heads) + 1):
        word = start
        while word and not reached_from[word]:
            reached_from[word] = start
            word = heads[word - 1]
        if word and reached_from[word] == start:
            return word
    return 0


def read_conllu(value: str) -> Iterator[WrittenText]:
    """Read the sentences of a CoNLL-U file, each as a text of syntactic words; their forms are joined by spaces.

    A comment `# newdoc` or `# newdoc id = ...` begins a document; documents of one id are one document. Other comments,
    multiword tokens and empty nodes are skipped.

    Raises: TextError with the line number.
    """
    return sentences_of_lines(io.StringIO(value, newline=None))


def sentences_of_lines(lines: Iterable[str]) -> Iterator[WrittenText]:
    """The same of a file that is read line by line, each ending in a line feed."""
    rows: list[tuple[int, list[str]]] = []
    document = sentence_document = None
    for line, row in enumerate(lines, start=1):
        if row.startswith("#"):
            document = _document(line, row, document)
        elif row.strip():
            sentence_document = sentence_document if rows else document
            rows += _word(line, row.removesuffix("\n").split("\t"), len(rows))
        elif rows:
            yield _sentence(rows, sentence_document)
            rows = []
    if rows:
        yield _sentence(rows, sentence_document)


def _document(line: int, comment: str, previous: str | None) -> str | None:
    """Name of the document after a comment: its id, or the line where it begins."""
    begins = _NEW_DOCUMENT.fullmatch(comment.strip())
    return previous if begins is None else begins[1] or f"from line {line}"


def _word(line: int, cells: list[str], n_before: int) -> list[tuple[int, list[str]]]:
    """A row as the next word of its sentence; empty if the row is not a word."""
    if len(cells) != N_COLUMNS:
        raise TextError(
            f"Line {line:,}: the number of columns is {len(cells):,} and CoNLL-U has {N_COLUMNS}. Separate them by "
            "tabs, and sentences by an empty line."
        )
    if _NO_WORD.fullmatch(cells[_ID]):
        return []
    if cells[_ID] != str(n_before + 1):
        raise TextError(
            f'Line {line:,} begins with "{cells[_ID][:40]}" and word {n_before + 1:,} of the sentence is expected. '
            "Number the words from 1, and put an empty line between sentences."
        )
    if not _WORD_ID.fullmatch(cells[_HEAD]):
        raise TextError(
            f'Line {line:,}: the head is "{cells[_HEAD][:40]}". Write the number of the head, 0 for a root, in column '
            "7."
        )
    return [(line, cells)]


def _sentence(rows: Sequence[tuple[int, list[str]]], document: str | None) -> WrittenText:
    where = f"The sentence from line {rows[0][0]:,}"
    words = tuple(cells[_FORM] for _, cells in rows)
    heads, relations = [int(cells[_HEAD]) for _, cells in rows], [cells[_RELATION] for _, cells in rows]
    tree = checked_tree(heads, relations, len(words), where)
    tags = tuple(cells[_TAG] for _, cells in rows)
    return WrittenText(where, words=words, tree=tree, tags=tags, document=document)
