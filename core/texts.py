"""What a reader gives: a Text, and the readers that turn typed lines and uploaded files into texts."""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from core.errors import TextError
from core.json_texts import read_json, read_json_lines
from core.tables import read_header, read_rows
from core.trees import WrittenText, read_conllu

MAX_BYTES = 20_000_000
MAX_TEXTS = 5_000
MAX_CHARACTERS = 500_000
"""Of a segment, some 120,000 English tokens: a tokenizer takes a second for it, and spaCy refuses twice as many."""
COUNTED_TEXTS = 10 * MAX_TEXTS
"""Where counting those beyond the limit ends: millions of short lines would take a minute."""
SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".conllu")
"""Files that can be read; the suffix says how."""

PAIR_MARK = " ||| "
BYTE_ORDER_MARK = "\ufeff"

_BETWEEN_SEGMENTS = re.compile(r"\t|(?<!\S)\|\|\|(?!\S)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_OUTER = BYTE_ORDER_MARK + "".join(filter(str.isspace, map(chr, range(0x3001))))
_NOT_A_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Text:
    """One text of one or two segments, as it was typed or read."""

    segments: tuple[str, ...]
    """One segment, or two for a pair."""
    words: tuple[tuple[str, ...], ...] | None = None
    """Words of each segment where the file brought its own; a segment is then its words joined by blanks."""
    heads: tuple[tuple[int, ...], ...] | None = None
    """Head of each of these words, by its place in the segment counted from 1, 0 for a root; where the file says so."""
    relations: tuple[tuple[str, ...], ...] | None = None
    """Dependency relation of each of these words to its head; there exactly where heads are."""


def read_typed(value: str) -> tuple[Text, ...]:
    """Texts typed one a line; a tab or ||| between blanks makes a pair; blank lines are ignored.

    Raises: TextError for no text, too many of them, an empty segment or a third one.
    """
    return _collected(_typed(value), "There is no text yet. Type one text a line; for a pair put ||| between the two.")


def write_typed(texts: Iterable[Text]) -> str:
    """The lines that `read_typed` reads back as the same segments; words a file brought are not written.

    Raises: TextError for a segment that holds a pair's mark, a tab or a line break.
    """
    return "\n".join(_typed_line(position, text) for position, text in enumerate(texts, start=1))


def read_file(name: str, content: bytes, columns: tuple[str, ...] | None = None) -> tuple[Text, ...]:
    """Texts of an uploaded file, read by the suffix of its name.

    Args:
        name: the file's name; .txt holds typed lines, .csv and .tsv a table with a header, .json a list of texts or
            of objects, or one object, .jsonl one object a line, .conllu sentences, each of them a text. Objects have
            `text`; `text_a` and `text_b`; `words`, to which `heads` and `relns` may be added; or `tokens`, word pieces
            with [CLS] and [SEP], which are joined.
        content: the file's bytes, UTF-8.
        columns: for a table, the one or two columns to read; None to recognise a known header.

    Raises: ColumnsNeeded for a table with an unknown header; TextError for all else that cannot be read.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise TextError(f'"{name}" is of a kind that cannot be read. Choose a file that ends in {", ".join(SUFFIXES)}.')
    if columns is not None and suffix not in (".csv", ".tsv"):
        raise TextError(f"A {suffix} file has no columns to pick from, got {columns}. Leave the columns out.")
    value = decoded(content)
    if not value.strip():
        raise TextError("The file is empty. Choose one that holds at least one text.")
    if suffix == ".txt":
        return _collected(_typed(value), "The file holds no text.")
    if suffix == ".jsonl":
        return _collected(map(_written, read_json_lines(value)), "The file holds no text.")
    if suffix == ".json":
        none_found = "The list in the file is empty. Choose a file with at least one text."
        return _collected(map(_written, read_json(value)), none_found)
    if suffix == ".conllu":
        return _collected(map(_written, read_conllu(value)), "The file holds no sentence.")
    return _collected(_table_rows(value, suffix, columns), "The table has a header and no row. Add one row a text.")


def read_columns(content: bytes, suffix: str) -> tuple[str, ...]:
    """Names of the columns of a table, .csv or .tsv; none for an empty one.

    Raises: TextError for a header that cannot be read.
    """
    return read_header(decoded(content), suffix)


def read_labelled(content: bytes, suffix: str, columns: tuple[str, ...], label: str) -> Iterator[tuple[int, Text, str]]:
    """Line, text and label of each row of a table, .csv or .tsv; a label is trimmed and may be empty.

    Raises: TextError for a column, a row or a text that cannot be read.
    """
    for line, (*cells, labelled) in read_rows(decoded(content), suffix, columns, label):
        yield line, text_of(cells, f"Line {line:,}"), _trimmed(labelled)


def _collected(texts: Iterator[Text], none_found: str) -> tuple[Text, ...]:
    kept = tuple(islice(texts, MAX_TEXTS))
    if not kept:
        raise TextError(none_found)
    n_texts = len(kept) + sum(1 for _ in islice(texts, COUNTED_TEXTS - MAX_TEXTS))
    if n_texts > MAX_TEXTS:
        counted = "at least " if n_texts == COUNTED_TEXTS else ""
        raise TextError(f"There are {counted}{n_texts:,} texts and at most {MAX_TEXTS:,} are read. Choose fewer.")
    return kept


def decoded(content: bytes) -> str:
    """A file's characters, UTF-8.

    Raises: TextError for too many bytes, and for what is no text.
    """
    if len(content) > MAX_BYTES:
        raise TextError(f"The file has {len(content):,} bytes and at most {MAX_BYTES:,} are read. Split or shorten it.")
    if _looks_like_utf16(content):
        raise TextError("Line 1, byte 1: this looks like UTF-16. Save the file as UTF-8 and choose it again.")
    if b"\0" in content:
        line = _line_of(content, content.index(b"\0"))
        raise TextError(f"Line {line:,} holds a NUL byte, so this is no text file. Choose one saved as UTF-8 text.")
    while content.startswith(codecs.BOM_UTF8):
        content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = _line_of(content, error.start), content[error.start]
        raise TextError(
            f"Line {line:,} is not UTF-8: byte 0x{byte:02X} is no character there. Save the file as UTF-8."
        ) from error


def _looks_like_utf16(content: bytes) -> bool:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    head = content[:1000]
    return len(head) > 1 and any(2 * head[start::2].count(0) > len(head[start::2]) for start in (0, 1))


def _line_of(content: bytes, position: int) -> int:
    return len(_LINE_END.findall(content[:position])) + 1


def _typed(value: str) -> Iterator[Text]:
    for line, typed in enumerate(io.StringIO(value, newline=None), start=1):
        if not _trimmed(typed):
            continue
        segments = _BETWEEN_SEGMENTS.split(typed.removesuffix("\n"))
        if len(segments) > 2:
            raise TextError(
                f"Line {line:,} has {len(segments):,} segments and a text has one or two. "
                "Keep at most one tab or one ||| in a line."
            )
        yield text_of(segments, f"Line {line:,}")


def _typed_line(position: int, text: Text) -> str:
    for segment in text.segments:
        if not segment or segment != _one_line(segment) or _BETWEEN_SEGMENTS.search(segment):
            raise TextError(
                f"Text {position:,} cannot be shown as one typed line: a segment is empty or holds |||, a tab, a line "
                "break or outer blanks. Change it, or keep the text in its file."
            )
    return PAIR_MARK.join(text.segments)


def _table_rows(value: str, suffix: str, columns: tuple[str, ...] | None) -> Iterator[Text]:
    for line, cells in read_rows(value, suffix, columns):
        yield text_of(cells, f"Line {line:,}")


def _written(found: WrittenText) -> Text:
    if found.words is None:
        return text_of(found.segments, found.where)
    words = tuple(_one_line(word) for word in found.words)
    if "" in words:
        raise TextError(f"{found.where}: word {words.index('') + 1:,} is empty. Take it out or fill it in.")
    segments = text_of([" ".join(words)], found.where).segments
    if found.tree is None:
        return Text(segments, (words,))
    return Text(segments, (words,), (found.tree.heads,), (found.tree.relations,))


def text_of(segments: Iterable[str], where: str) -> Text:
    """A text from its segments, each in one line and without outer blanks.

    Raises: TextError that begins with where they stand.
    """
    cleaned = tuple(_one_line(segment) for segment in segments)
    for position, segment in enumerate(cleaned, start=1):
        which = f"segment {position} of {len(cleaned)}" if len(cleaned) > 1 else "the text"
        if not segment:
            raise TextError(f"{where}: {which} is empty. Fill it in or take the text out.")
        if len(segment) > MAX_CHARACTERS:
            raise TextError(
                f"{where}: {which} has {len(segment):,} characters and at most {MAX_CHARACTERS:,} are read. Cut it, or "
                "put line breaks between its parts."
            )
        broken = _NOT_A_CHARACTER.search(segment)
        if broken:
            raise TextError(
                f"{where}: {which} holds U+{ord(broken[0]):04X} at character {broken.start() + 1:,}, which is no "
                "character of a text. Take it out."
            )
    return Text(cleaned)


def _one_line(segment: str) -> str:
    return _trimmed(re.sub(r"\r\n|[\r\n\t]", " ", segment))


def _trimmed(segment: str) -> str:
    """Without outer blanks, and without the byte order marks that stay where files are joined or pasted."""
    return segment.strip(_OUTER)
