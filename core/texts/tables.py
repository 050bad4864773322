"""Reads texts from tables: finds the text columns by the header, and keeps the line number of each row."""

import csv
import io
from collections.abc import Iterator

from attention_sieve.core.errors import ColumnsNeeded, TextError, shortened

KNOWN_COLUMNS = (
    ("question", "sentence"),
    ("question1", "question2"),
    ("#1 string", "#2 string"),
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("sentence",),
    ("text",),
)
"""Names of known text columns, in lower case; pairs before single columns, so that a pair is not read as one column."""

DELIMITERS = (",", ";", "\t")
SHOWN_NAMES, SHOWN_CHARACTERS = 12, 40
MAX_COLUMNS = 1_000


def read_rows(
    content: str, suffix: str, columns: tuple[str, ...] | None, others: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line number and text cells of each row below the header.

    Args:
        suffix: ".tsv" (tabs; quotes are data, as in GLUE) or ".csv" (quotes are syntax; comma, semicolon or tab).
        columns: one or two names from the header; None to recognise a known header.
        others: names of further columns, such as the labels', whose cells come last.

    Returns: 1-based line on which each row starts, and its one or two text cells and the others, all unchanged.
    Raises: ColumnsNeeded for an unknown header; TextError for a column or a row that cannot be read.
    """
    rows = _records(content, suffix)
    names = _names(rows)
    indices = _known_columns(names) if columns is None else _picked_columns(names, columns)
    for name in others:
        indices += _picked_columns(names, (name,))
    for line, row in _whole_rows(rows, names):
        yield line, tuple(row[index] for index in indices)


def read_table(content: str, suffix: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells, by the name of their column, of each row below the header; see `read_rows`.

    Raises: TextError for two columns of one name, and for a row that cannot be read.
    """
    rows = _records(content, suffix)
    names = _names(rows)
    for name in names:
        _column_index(names, name)
    for line, row in _whole_rows(rows, names):
        yield line, dict(zip(names, row))


def _whole_rows(rows: Iterator[tuple[int, list[str]]], names: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """The same rows; raises TextError for one without a cell for each column."""
    for line, row in rows:
        if len(row) != len(names):
            raise TextError(
                f"Line {line:,} has {_counted(len(row), 'cell')} and the header {len(names):,}. "
                "Check the separators and quotes in this row and in the one before it."
            )
        yield line, row


def read_header(content: str, suffix: str) -> tuple[str, ...]:
    """Names of a table's columns, in order; none for an empty table.

    Raises: TextError for a header that cannot be read.
    """
    return _names(_records(content, suffix))


def _names(rows: Iterator[tuple[int, list[str]]]) -> tuple[str, ...]:
    _, header = next(rows, (0, []))
    if len(header) > MAX_COLUMNS:
        raise TextError(
            f"The first line has {len(header):,} columns and at most {MAX_COLUMNS:,} are read. Check its separators, "
            "or put a line with names above it."
        )
    return tuple(name.strip() for name in header)


def _records(content: str, suffix: str) -> Iterator[tuple[int, list[str]]]:
    lines = io.StringIO(content, newline="")
    if suffix == ".tsv":
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.reader(lines, delimiter=_delimiter(content), strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise TextError(_broken_row(line, str(error))) from error


def _delimiter(content: str) -> str:
    header = next((line for line in io.StringIO(content, newline=None) if line.strip()), "")
    if len(header) > csv.field_size_limit():
        return ","  # the reader itself then says which line is too long
    return max(DELIMITERS, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), [])))


def _broken_row(line: int, reason: str) -> str:
    if "field limit" in reason:
        return (
            f"The row that starts on line {line:,} has a cell of more than {csv.field_size_limit():,} characters. "
            "Close a quote left open there, or cut the text into shorter ones."
        )
    if "unexpected end" in reason:
        return (
            f"The row that starts on line {line:,} opens a quote that is never closed. "
            'Close it, or write a quote inside a quoted cell twice ("").'
        )
    return (
        f"The row that starts on line {line:,} goes on after a closing quote. "
        'Write a quote inside a quoted cell twice (""), or close the quote left open before it.'
    )


def _known_columns(names: tuple[str, ...]) -> tuple[int, ...]:
    lower_names = tuple(name.lower() for name in names)
    for columns in KNOWN_COLUMNS:
        if set(columns) <= set(lower_names):
            return tuple(_column_index(lower_names, name) for name in columns)
    pick = "Pick it if it holds the texts." if len(names) == 1 else "Pick the one or two columns with the texts."
    raise ColumnsNeeded(
        f"The first line names no column known to hold texts; it has {_listed(names)}. {pick} If the first line is a "
        "text, put a line with names above it.",
        names,
    )


def _picked_columns(names: tuple[str, ...], columns: tuple[str, ...]) -> tuple[int, ...]:
    if len(columns) not in (1, 2) or len(set(columns)) < len(columns):
        raise TextError(f"A text comes from one column or from two different ones, got {columns}. Pick one or two.")
    missing = [name for name in columns if name not in names]
    if missing:
        raise TextError(f'There is no column "{shortened(missing[0])}". Pick from the header: {_listed(names)}.')
    return tuple(_column_index(names, name) for name in columns)


def _column_index(names: tuple[str, ...], name: str) -> int:
    if names.count(name) > 1:
        raise TextError(f'The header has {names.count(name)} columns named "{name}". Give each its own name.')
    return names.index(name)


def _listed(names: tuple[str, ...]) -> str:
    shortened_names = [name if len(name) <= SHOWN_CHARACTERS else name[: SHOWN_CHARACTERS - 1] + "…" for name in names]
    remainder = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return (
        _counted(len(names), "column")
        + ", "
        + ", ".join(f'"{name}"' for name in shortened_names[:SHOWN_NAMES])
        + remainder
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
