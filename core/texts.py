"""What a reader gives: a Text, and the readers that turn typed lines and uploaded files into texts."""

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any

from core.errors import TextError
from core.tables import read_header, read_rows

MAX_BYTES = 20_000_000
MAX_TEXTS = 5_000
MAX_CHARACTERS = 500_000
"""Of a segment, some 120,000 English tokens: a tokenizer takes a second for it, and spaCy refuses twice as many."""
COUNTED_TEXTS = 10 * MAX_TEXTS
"""Where counting those beyond the limit ends: millions of short lines would take a minute."""
SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl")
"""Files that can be read; the suffix says how."""

PAIR_MARK = " ||| "
BYTE_ORDER_MARK = "\ufeff"
JSON_KINDS = (("text",), ("text_a", "text_b"), ("words",))

_BETWEEN_SEGMENTS = re.compile(r"\t|(?<!\S)\|\|\|(?!\S)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_NOT_A_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Text:
    """One text of one or two segments, as it was typed or read."""

    segments: tuple[str, ...]
    """One segment, or two for a pair."""
    words: tuple[tuple[str, ...], ...] | None = None
    """Words of each segment where the file brought its own; a segment is then its words joined by blanks."""


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
            of objects, or one object, .jsonl one object a line. Objects have `text`, `text_a` and `text_b`, or `words`.
        content: the file's bytes, UTF-8.
        columns: for a table, the one or two columns to read; None to recognise a known header.

    Raises: ColumnsNeeded for a table with an unknown header; TextError for all else that cannot be read.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise TextError(f'"{name}" is of a kind that cannot be read. Choose a file that ends in {", ".join(SUFFIXES)}.')
    if columns is not None and suffix not in (".csv", ".tsv"):
        raise TextError(f"A {suffix} file has no columns to pick from, got {columns}. Leave the columns out.")
    value = _decoded(content)
    if not value.strip():
        raise TextError("The file is empty. Choose one that holds at least one text.")
    if suffix == ".txt":
        return _collected(_typed(value), "The file holds no text.")
    if suffix == ".jsonl":
        return _collected(_json_lines(value), "The file holds no text.")
    if suffix == ".json":
        return _collected(_json_items(value), "The list in the file is empty. Choose a file with at least one text.")
    return _collected(_table_rows(value, suffix, columns), "The table has a header and no row. Add one row a text.")


def read_columns(content: bytes, suffix: str) -> tuple[str, ...]:
    """Names of the columns of a table, .csv or .tsv; none for an empty one.

    Raises: TextError for a header that cannot be read.
    """
    return read_header(_decoded(content), suffix)


def read_labelled(content: bytes, suffix: str, columns: tuple[str, ...], label: str) -> Iterator[tuple[int, Text, str]]:
    """Line, text and label of each row of a table, .csv or .tsv; a label is trimmed and may be empty.

    Raises: TextError for a column, a row or a text that cannot be read.
    """
    for line, (*cells, labelled) in read_rows(_decoded(content), suffix, columns, label):
        yield line, _text(cells, f"Line {line:,}"), _trimmed(labelled)


def _collected(texts: Iterator[Text], none_found: str) -> tuple[Text, ...]:
    kept = tuple(islice(texts, MAX_TEXTS))
    if not kept:
        raise TextError(none_found)
    n_texts = len(kept) + sum(1 for _ in islice(texts, COUNTED_TEXTS - MAX_TEXTS))
    if n_texts > MAX_TEXTS:
        counted = "at least " if n_texts == COUNTED_TEXTS else ""
        raise TextError(f"There are {counted}{n_texts:,} texts and at most {MAX_TEXTS:,} are read. Choose fewer.")
    return kept


def _decoded(content: bytes) -> str:
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
        yield _text(segments, f"Line {line:,}")


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
        yield _text(cells, f"Line {line:,}")


def _json_lines(value: str) -> Iterator[Text]:
    for line, row in enumerate(io.StringIO(value, newline=None), start=1):
        if row.strip():
            yield _from_object(_parsed(row.removesuffix("\n"), first_line=line), f"Line {line:,}")


def _json_items(value: str) -> Iterator[Text]:
    parsed = _parsed(value, first_line=1)
    if isinstance(parsed, dict):
        yield _from_object(parsed, "The object")
        return
    if not isinstance(parsed, list):
        raise TextError(f"The file holds {_kind(parsed)}. Write a list of objects, a list of texts, or one object.")
    for position, item in enumerate(parsed, start=1):
        where = f"Item {position:,}"
        yield _text([item], where) if isinstance(item, str) else _from_object(item, where)


def _parsed(value: str, first_line: int) -> Any:
    try:
        # Numbers are only ever extra keys; as floats they cannot run into the limit on the digits of an int.
        return json.loads(value, parse_int=float)
    except json.JSONDecodeError as error:
        line, reason = first_line + error.lineno - 1, error.msg.removesuffix(" at")
        raise TextError(
            f"{reason} at line {line:,}, character {error.colno:,}: this is not JSON. Correct it there."
        ) from error
    except RecursionError as error:
        raise TextError(
            f"The JSON that starts on line {first_line:,} is nested too deeply. Write flat objects with text or words."
        ) from error


def _from_object(item: Any, where: str) -> Text:
    if not isinstance(item, dict):
        raise TextError(f'{where} is {_kind(item)}. Write an object, such as {{"text": "One text."}}.')
    kinds = [keys for keys in JSON_KINDS if any(key in item for key in keys)]
    if len(kinds) > 1:
        raise TextError(f"{where} has both {' and '.join(keys[0] for keys in kinds)}. Keep one of them.")
    if not kinds:
        raise TextError(f'{where} has no text. Give it a key "text", the keys "text_a" and "text_b", or a key "words".')
    if kinds[0] == ("words",):
        return _from_words(item["words"], where)
    return _text([_string(item, key, where) for key in kinds[0]], where)


def _string(item: dict[str, Any], key: str, where: str) -> str:
    if key not in item:
        raise TextError(f'{where} has one half of a pair and no "{key}". Give both text_a and text_b.')
    if not isinstance(item[key], str):
        raise TextError(f'{where}: "{key}" is {_kind(item[key])}. Write a string.')
    return item[key]


def _from_words(words: Any, where: str) -> Text:
    if not isinstance(words, list):
        raise TextError(f'{where}: "words" is {_kind(words)}. Write a list of strings.')
    for position, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise TextError(f"{where}: word {position:,} is {_kind(word)}. Write a list of strings.")
        if not word.strip():
            raise TextError(f"{where}: word {position:,} is empty. Take it out or fill it in.")
    whole = tuple(_one_line(word) for word in words)
    return Text(_text([" ".join(whole)], where).segments, (whole,))


def _text(segments: Iterable[str], where: str) -> Text:
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
    return segment.strip().strip(BYTE_ORDER_MARK).strip()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", float: "a number"}
    return names.get(type(value), "null")
