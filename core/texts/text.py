"""Text, the basic input of every analysis, and readers for typed lines and uploaded files."""

import codecs
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Final

from attention_sieve.core.errors import TextError, quoted, shortened
from attention_sieve.core.texts.conllu import WrittenText, read_conllu
from attention_sieve.core.texts.json_files import read_json, read_json_lines
from attention_sieve.core.texts.tables import read_header, read_rows

MAX_BYTES = 20_000_000
BYTE_ORDER_MARKS: Final = re.compile(b"(?:" + codecs.BOM_UTF8 + b")+")
MAX_TEXTS = 5_000
MAX_CHARACTERS = 500_000
"""Maximum length of a segment, about 120,000 English tokens: tokenizing takes a second, and spaCy refuses twice as
many."""
COUNTED_TEXTS = 10 * MAX_TEXTS
"""Texts beyond the limit are counted up to this number; counting millions of short lines would take a minute."""
SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".conllu")
"""Suffixes of supported file formats."""

PAIR_MARK = " ||| "
BYTE_ORDER_MARK = "\ufeff"

_BETWEEN_SEGMENTS = re.compile(r"\t|(?<!\S)\|\|\|(?!\S)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_OUTER = BYTE_ORDER_MARK + "".join(filter(str.isspace, map(chr, range(0x3001))))
_NOT_A_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Text:
    """One text of one or two segments, as typed or read from a file."""

    segments: tuple[str, ...]
    """One segment, or two for a pair."""
    words: tuple[tuple[str, ...], ...] | None = None
    """Words of each segment, if given in the file; the segment is then its words joined by spaces."""
    heads: tuple[tuple[int, ...], ...] | None = None
    """Head of each word, as a position in the segment from 1, or 0 for a root; if given in the file."""
    relations: tuple[tuple[str, ...], ...] | None = None
    """Dependency relation of each word to its head; given if and only if heads are."""
    document: str | None = None
    """Name of the text's document, if the file gives it; no result of a pass depends on it."""
    spans: tuple[tuple[tuple[int, int], ...], ...] | None = None
    """First and one-past-last character of each word, if the text was parsed as it was written; else its words are
    joined by single spaces."""


def read_typed(value: str) -> tuple[Text, ...]:
    """Read texts typed one per line; a tab, or ||| between spaces, separates a pair; blank lines are ignored.

    Raises: TextError for no texts, too many texts, an empty segment or more than two segments.
    """
    return _collected(
        typed_lines(io.StringIO(value, newline=None)),
        "There is no text yet. Type one text per line; for a pair put ||| between the two.",
    )


def write_typed(texts: Iterable[Text]) -> str:
    """Format texts as lines from which `read_typed` restores the same segments; words given in a file are not written.

    Raises: TextError for a segment that contains |||, a tab or a line break.
    """
    return "\n".join(_typed_line(position, text) for position, text in enumerate(texts, start=1))


def read_file(name: str, content: bytes, columns: tuple[str, ...] | None = None) -> tuple[Text, ...]:
    """Read the texts of an uploaded file in the format given by its suffix.

    Args:
        name: name of the file: .txt with one text per line, .csv and .tsv with a header, .json with a list of strings
            or objects or one object, .jsonl with one object per line, .conllu with one text per sentence. Objects have
            `text`; `text_a` and `text_b`; `words`, optionally with `heads` and `relns`; or `tokens`, word pieces with
            [CLS] and [SEP], which are joined.
        content: the file's bytes, UTF-8.
        columns: for a table, the one or two columns to read; None to recognise a known header.

    Raises: ColumnsNeeded for a table with an unknown header; TextError for other files that cannot be read.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise TextError(
            f'"{shortened(name)}" has a format that cannot be read. Choose a file that ends in {", ".join(SUFFIXES)}.'
        )
    if columns is not None and suffix not in (".csv", ".tsv"):
        raise TextError(
            f"A {suffix} file has no columns to pick from, got {quoted(', '.join(columns))}. Leave the columns out."
        )
    value = decoded(content)
    if not value.strip():
        raise TextError("The file is empty. Choose one that holds at least one text.")
    if suffix == ".txt":
        return _collected(typed_lines(io.StringIO(value, newline=None)), "The file holds no text.")
    if suffix == ".jsonl":
        return _collected(map(text_as_written, read_json_lines(value)), "The file holds no text.")
    if suffix == ".json":
        none_found = "The list in the file is empty. Choose a file with at least one text."
        return _collected(map(text_as_written, read_json(value)), none_found)
    if suffix == ".conllu":
        return _collected(map(text_as_written, read_conllu(value)), "The file holds no sentence.")
    return _collected(_table_rows(value, suffix, columns), "The table has a header but no rows. Add one row per text.")


def read_columns(content: bytes, suffix: str) -> tuple[str, ...]:
    """Read the column names of a table, .csv or .tsv; empty for an empty table.

    Raises: TextError for a header that cannot be read.
    """
    return read_header(decoded(content), suffix)


def read_labelled(
    content: bytes, suffix: str, columns: tuple[str, ...] | None, label: str
) -> Iterator[tuple[int, Text, str]]:
    """Read line number, text and label of each row of a table, .csv or .tsv; labels are trimmed and may be empty.

    The columns are None to recognise a known header.

    Raises: ColumnsNeeded for an unknown header; TextError for a column, a row or a text that cannot be read.
    """
    for line, (*cells, labelled) in read_rows(decoded(content), suffix, columns, (label,)):
        yield line, text_of(cells, f"Line {line:,}"), _trimmed(labelled)


def read_parted(
    content: bytes, suffix: str, columns: tuple[str, ...] | None, label: str, part: str
) -> Iterator[tuple[int, Text, str, str]]:
    """Read line number, text, label and part (such as train or test) of each row of a table, .csv or .tsv.

    Labels and parts are trimmed and may be empty; the columns are None to recognise a known header.

    Raises: ColumnsNeeded for an unknown header; TextError for a column, a row or a text that cannot be read.
    """
    for line, (*cells, labelled, parted) in read_rows(decoded(content), suffix, columns, (label, part)):
        yield line, text_of(cells, f"Line {line:,}"), _trimmed(labelled), _trimmed(parted)


def _collected(texts: Iterator[Text], none_found: str) -> tuple[Text, ...]:
    collected = tuple(islice(texts, MAX_TEXTS))
    if not collected:
        raise TextError(none_found)
    n_texts = len(collected) + sum(1 for _ in islice(texts, COUNTED_TEXTS - MAX_TEXTS))
    if n_texts > MAX_TEXTS:
        prefix = "at least " if n_texts == COUNTED_TEXTS else ""
        raise TextError(f"There are {prefix}{n_texts:,} texts and at most {MAX_TEXTS:,} are read. Choose fewer.")
    return collected


def decoded(content: bytes) -> str:
    """Decode a UTF-8 file.

    Raises: TextError if the file is too large or not UTF-8 text.
    """
    if len(content) > MAX_BYTES:
        raise TextError(f"The file has {len(content):,} bytes and at most {MAX_BYTES:,} are read. Split or shorten it.")
    if _looks_like_utf16(content):
        raise TextError("Line 1, byte 1: this looks like UTF-16. Save the file as UTF-8 and choose it again.")
    if b"\0" in content:
        line = _line_of(content, content.index(b"\0"))
        raise TextError(f"Line {line:,} holds a NUL byte, so this is not a text file. Choose one saved as UTF-8 text.")
    if marks := BYTE_ORDER_MARKS.match(content):
        content = content[marks.end() :]
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = _line_of(content, error.start), content[error.start]
        raise TextError(
            f"Line {line:,} is not UTF-8: byte 0x{byte:02X} is not a character there. Save the file as UTF-8."
        ) from error


def _looks_like_utf16(content: bytes) -> bool:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    head = content[:1000]
    return len(head) > 1 and any(2 * head[start::2].count(0) > len(head[start::2]) for start in (0, 1))


def _line_of(content: bytes, position: int) -> int:
    return len(_LINE_END.findall(content[:position])) + 1


def typed_lines(lines: Iterable[str]) -> Iterator[Text]:
    """Texts typed one per line, as for `read_typed`; each line ends in a line feed.

    Raises: TextError for an empty segment or more than two segments.
    """
    for line, typed in enumerate(lines, start=1):
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
                "break, or spaces at its ends. Change it, or keep the text in its file."
            )
    return PAIR_MARK.join(text.segments)


def _table_rows(value: str, suffix: str, columns: tuple[str, ...] | None) -> Iterator[Text]:
    for line, cells in read_rows(value, suffix, columns):
        yield text_of(cells, f"Line {line:,}")


def text_as_written(source: WrittenText) -> Text:
    """A text as written in a file, cleaned.

    Raises: TextError for an empty segment or word.
    """
    if source.words is None:
        return text_of(source.segments, source.where)
    words = tuple(_one_line(word) for word in source.words)
    if "" in words:
        raise TextError(f"{source.where}: word {words.index('') + 1:,} is empty. Remove it or fill it in.")
    segments = text_of([" ".join(words)], source.where).segments
    if source.tree is None:
        return Text(segments, (words,), document=source.document)
    return Text(segments, (words,), (source.tree.heads,), (source.tree.relations,), source.document)


def text_of(segments: Iterable[str], where: str) -> Text:
    """Build a text from its segments, each reduced to one line without leading or trailing spaces.

    Raises: TextError that begins with `where`.
    """
    cleaned = tuple(_one_line(segment) for segment in segments)
    for position, segment in enumerate(cleaned, start=1):
        subject = f"segment {position} of {len(cleaned)}" if len(cleaned) > 1 else "the text"
        if not segment:
            raise TextError(f"{where}: {subject} is empty. Fill it in or remove the text.")
        if len(segment) > MAX_CHARACTERS:
            raise TextError(
                f"{where}: {subject} has {len(segment):,} characters and at most {MAX_CHARACTERS:,} are read. Cut it, "
                "or put line breaks between its parts."
            )
        broken = _NOT_A_CHARACTER.search(segment)
        if broken:
            raise TextError(
                f"{where}: {subject} holds U+{ord(broken[0]):04X} at character {broken.start() + 1:,}, which is not a "
                "character of a text. Remove it."
            )
    return Text(cleaned)


def _one_line(segment: str) -> str:
    return _trimmed(re.sub(r"\r\n|[\r\n\t]", " ", segment))


def _trimmed(segment: str) -> str:
    """Strip spaces, and the byte order marks that remain when files are concatenated or pasted."""
    return segment.strip(_OUTER)


def texts_sha256(texts: Iterable[Text]) -> str:
    """SHA-256 over texts in their order; identifies a corpus independently of the names of files and documents."""
    content = json.dumps([[text.segments, text.words, *_tree_of(text)] for text in texts])
    return hashlib.sha256(content.encode()).hexdigest()


def _tree_of(text: Text) -> list[object]:
    return [] if text.heads is None else [text.heads, text.relations]


def text_fields(text: Text) -> dict[str, object]:
    """The fields of a text for JSON that the result of a pass depends on, so not its document.

    By hand, because dataclasses.asdict took a third of the time of a cache lookup.
    """
    fields: dict[str, object] = {"segments": text.segments, "words": text.words}
    if text.heads is not None:  # most texts have none, and the keys of their results must not change
        fields |= {"heads": text.heads, "relations": text.relations}
    if text.spans is not None:
        fields["spans"] = text.spans
    return fields
