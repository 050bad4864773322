"""Text, the basic input of every analysis, and readers for typed lines and uploaded files."""

import codecs
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path, PurePath
from typing import Any, Final

from attention_sieve.core.errors import TextError, quoted, shortened
from attention_sieve.core.texts.given import (
    GivenPairs,
    GivenTokens,
    WrittenPair,
    WrittenText,
    given_pairs,
    sentences_of_lines,
    written_ids,
)
from attention_sieve.core.texts.json_files import from_object, parsed_json, read_json
from attention_sieve.core.texts.tables import read_header, read_rows

MAX_BYTES = 20_000_000
BYTE_ORDER_MARKS: Final = re.compile(b"(?:" + codecs.BOM_UTF8 + b")+")
MAX_TEXTS = 5_000
MAX_CHARACTERS = 500_000
"""Maximum length of a segment, about 120,000 English tokens: tokenizing takes a second, and spaCy refuses twice as
many."""
COUNTED_TEXTS = 10 * MAX_TEXTS
"""Texts beyond the limit are counted up to this number; counting millions of short lines would take a minute."""
PAIR_MARK = " ||| "
BYTE_ORDER_MARK = "\ufeff"

_BETWEEN_SEGMENTS = re.compile(r"\t|(?<!\S)\|\|\|(?!\S)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
BREAKS: Final = str.maketrans("\r\n\t", "   ")
"""Makes one line of a text; every character keeps its place."""
_OUTER = BYTE_ORDER_MARK + "".join(filter(str.isspace, map(chr, range(0x3001))))
_IDS = re.compile(r'\s*\{\s*"ids"\s*:')
"""How a line begins that gives the ids of tokens, as an object of JSON."""
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
    parser: str | None = None
    """spaCy's package that parses it; None for the English one, empty if it is not to be parsed."""
    given: GivenTokens | None = None
    """Its tokens, if their ids are given: its words are then these numbers, and its only segment is shown nowhere."""
    pairs: GivenPairs | None = None
    """Pairs of its spans, if its file marks them: they take the place of its trees where relations are looked for, and
    no result of anything else depends on them."""


@dataclass(frozen=True)
class Row:
    """A text of a file that is read line by line."""

    text: Text
    where: str = ""
    """Its place, with which messages begin; empty where nothing else is read from its row."""
    item: Any = None
    """The object that the text is part of, of parsed JSON or of a table; None in a format without any."""


Columns = Sequence[str] | None
"""Columns of a table, or keys of objects: one, or two for pairs; None to recognise known names."""


@dataclass(frozen=True)
class TextReader:
    """How a file with one suffix is read."""

    suffix: str
    holds: str
    """What such a file can hold, in words that follow its suffix."""
    whole: Callable[[str, Columns], Iterator[Text]] | None = None
    """The texts of a file, from all its characters; None for a file that only a corpus can have."""
    lines: Callable[[Iterable[str], Columns], Iterator[Row]] | None = None
    """The same one at a time, from lines that each end in a line feed; None for a file that has no such lines."""
    if_empty: str = "The file holds no text."
    has_columns: bool = False
    """Whether a reader of the page or of a command can pick the columns."""


def read_typed(value: str) -> tuple[Text, ...]:
    """Read texts typed one per line; a tab, or ||| between spaces, separates a pair; blank lines are ignored.

    A line such as {"ids": [1, 523, 88]} gives the ids of a text's tokens.

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


def read_bytes(path: Path) -> bytes:
    """A file's content, unless it is too large to be read.

    Raises: TextError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)  # a device has no size, and may have no end
    except OSError as error:
        raise TextError(f"{shortened(str(path))} cannot be read ({error.strerror}). Check the path.") from None
    if len(content) > MAX_BYTES:
        raise TextError(f"{path} is larger than {MAX_BYTES // 10**6} MB. Split it.")
    return content


def read_file(name: str, content: bytes, columns: tuple[str, ...] | None = None) -> tuple[Text, ...]:
    """Read the texts of an uploaded file in the format given by its suffix.

    Args:
        name: name of the file, which ends in one of SUFFIXES; READERS say what it can hold. A .json file has a list of
            strings or objects, or one object; of the keys of an object, `tokens` are word pieces with [CLS] and [SEP],
            which are joined.
        content: the file's bytes, UTF-8.
        columns: for a table, the one or two columns to read; None to recognise a known header.

    Raises: ColumnsNeeded for a table with an unknown header; TextError for other files that cannot be read.
    """
    reader = next((reader for reader in READERS if reader.suffix == PurePath(name).suffix.lower()), None)
    if reader is None or reader.whole is None:
        raise TextError(
            f'"{shortened(name)}" has a format that cannot be read. Choose a file that ends in {", ".join(SUFFIXES)}.'
        )
    if columns is not None and not reader.has_columns:
        raise TextError(
            f"A {reader.suffix} file has no columns to pick from, got {quoted(', '.join(columns))}. "
            "Leave the columns out."
        )
    value = decoded(content)
    if not value.strip():
        raise TextError("The file is empty. Choose one that holds at least one text.")
    return _collected(reader.whole(value, columns), reader.if_empty)


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
        if _IDS.match(typed):
            yield from (row.text for row in _object_rows([typed], None, line))
            continue
        segments = _BETWEEN_SEGMENTS.split(typed.removesuffix("\n"))
        if len(segments) > 2:
            raise TextError(
                f"Line {line:,} has {len(segments):,} segments and a text has one or two. "
                "Keep at most one tab or one ||| in a line."
            )
        yield text_of(segments, f"Line {line:,}")


def _typed_line(position: int, text: Text) -> str:
    if text.given is not None:
        return json.dumps({key: value for key, value in text.given.fields.items() if value is not None})
    for segment in text.segments:
        if not segment or segment != _one_line(segment) or _BETWEEN_SEGMENTS.search(segment):
            raise TextError(
                f"Text {position:,} cannot be shown as one typed line: a segment is empty or holds |||, a tab, a line "
                "break, or spaces at its ends. Change it, or keep the text in its file."
            )
    return PAIR_MARK.join(text.segments)


def _table_rows(suffix: str, value: str, columns: Columns) -> Iterator[Text]:
    for line, cells in read_rows(value, suffix, None if columns is None else tuple(columns)):
        yield text_of(cells, f"Line {line:,}")


def _object_rows(lines: Iterable[str], columns: Columns, first: int = 1) -> Iterator[Row]:
    for line, value in enumerate(lines, start=first):
        if not value.strip():
            continue
        where, item = f"Line {line:,}", parsed_json(value.removesuffix("\n"), first_line=line)
        if columns is None or not isinstance(item, dict):
            text = text_as_written(from_object(item, where))
        else:
            text = text_of([text_cell(item, name, where) for name in columns], where)
        yield Row(text, where, item)


def text_cell(row: dict[str, Any], name: str, where: str) -> str:
    """The text in a column of a row, or under a key of an object.

    Raises: TextError that begins with `where`, if there is none.
    """
    value = row.get(name)
    if not isinstance(value, str):
        content = "nothing" if value is None else f"a value of type {type(value).__name__}"
        raise TextError(f"{where}: {quoted(name)} holds {content}. Write a text there.")
    return value


def text_as_written(source: WrittenText) -> Text:
    """A text as written in a file, cleaned.

    Raises: TextError for an empty segment or word.
    """
    if source.pairs is not None:
        return _paired(source, source.pairs)
    if source.words is None:
        return text_of(source.segments, source.where)
    words = tuple(_one_line(word) for word in source.words)
    if "" in words:
        raise TextError(f"{source.where}: word {words.index('') + 1:,} is empty. Remove it or fill it in.")
    segments = text_of([" ".join(words)], source.where).segments
    if source.tree is None:
        return Text(segments, (words,), document=source.document)
    tree = source.tree
    return Text(segments, (words,), (tree.heads,), (tree.relations,), source.document, given=source.given)


def _paired(source: WrittenText, pairs: Sequence[WrittenPair]) -> Text:
    """A text with marked pairs; each of its characters keeps its place, but for spaces at the beginning."""
    lines = [segment.translate(BREAKS) for segment in source.segments]
    text = text_of(lines, source.where)
    shifts = [line.index(segment) for line, segment in zip(lines, text.segments, strict=True)]
    return replace(text, document=source.document, pairs=given_pairs(pairs, text.segments, shifts, source.where))


def text_of_ids(given: GivenTokens) -> Text:
    """A text that is given by the ids of its tokens.

    Raises: TextError for one that is too long.
    """
    return text_as_written(written_ids(given, "The text"))


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
    tree: list[object] = [] if text.heads is None else [text.heads, text.relations]
    if text.pairs is not None:
        tree.append(asdict(text.pairs))
    return tree if text.given is None else [*tree, text.given.fields]


def text_fields(text: Text) -> dict[str, object]:
    """The fields of a text for JSON that the result of a pass depends on, so not its document.

    By hand, because dataclasses.asdict took a third of the time of a cache lookup.
    """
    fields: dict[str, object] = {"segments": text.segments, "words": text.words}
    if text.heads is not None:  # most texts have none, and the keys of their results must not change
        fields |= {"heads": text.heads, "relations": text.relations}
    if text.spans is not None:
        fields["spans"] = text.spans
    if text.given is not None:
        fields["given"] = text.given.fields
    return fields


def _line_reader(
    suffix: str,
    holds: str,
    lines: Callable[[Iterable[str], Columns], Iterator[Row]],
    if_empty: str = TextReader.if_empty,
) -> TextReader:
    """A reader of a format that is read line by line, whether the whole file is there or not."""

    def whole(value: str, columns: Columns) -> Iterator[Text]:
        return (row.text for row in lines(io.StringIO(value, newline=None), columns))

    return TextReader(suffix, holds, whole, lines, if_empty)


def _table_reader(suffix: str) -> TextReader:
    return TextReader(
        suffix,
        holds="with a header row; common names (sentence, sentence1/sentence2, question, text_a/text_b, "
        "premise/hypothesis, ...) are recognised",
        whole=partial(_table_rows, suffix),
        if_empty="The table has a header but no rows. Add one row per text.",
        has_columns=True,
    )


OBJECTS: Final = (
    "text, or text_a and text_b (with pairs of spans, if you mark any), or words (with heads and relns, if you have "
    "them), or tokens, or ids of a vocabulary"
)
READERS: Final = (
    _line_reader(".txt", "one text per line", lambda lines, _: map(Row, typed_lines(lines))),
    _table_reader(".csv"),
    _table_reader(".tsv"),
    TextReader(
        ".json",
        OBJECTS,
        whole=lambda value, _: map(text_as_written, read_json(value)),
        if_empty="The list in the file is empty. Choose a file with at least one text.",
    ),
    _line_reader(".jsonl", OBJECTS, _object_rows),
    _line_reader(
        ".conllu",
        "one text per sentence, with its relations",
        lambda lines, _: map(Row, map(text_as_written, sentences_of_lines(lines))),
        "The file holds no sentence.",
    ),
    TextReader(".parquet", "a table with columns of texts"),
)
"""Every format of files with texts, for uploads, commands and corpora."""
SUFFIXES: Final = tuple(reader.suffix for reader in READERS if reader.whole is not None)
"""Of the files that are read as a whole, uploaded or by a command."""
STREAMED: Final = tuple(reader.suffix for reader in READERS if reader.lines is not None or reader.whole is None)
"""Of the files that a corpus may have: their texts are read one at a time."""


def formats_in_words(suffixes: Sequence[str]) -> str:
    """What files with these suffixes can hold, a sentence for each kind."""
    readers = [reader for reader in READERS if reader.suffix in suffixes]
    kinds = [(holds, [reader.suffix for reader in own]) for holds, own in groupby(readers, lambda reader: reader.holds)]
    return " ".join(f"{', '.join(names)}: {holds}." for holds, names in kinds)
