"""Pairs of spans that a file marks in its texts, and the words that they make: brackets, uses and definitions, atoms.

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

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
            at, found = word, list[int]()
            while self.relations[at] == ANTECEDENT and self.heads[at] not in (word, *found):
                at = self.heads[at]
                found.append(at)
            if found:
                yield word, found

    def of_segment(self, side: int) -> "GivenPairs":
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
    read = {place: _read(place, segments, shifts, where) for pair in pairs for place in (pair.start, pair.end)}
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


def _read(place: Place, segments: Sequence[str], shifts: Sequence[int], where: str) -> Place:
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
