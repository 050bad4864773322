"""Reads the texts of files one at a time, so that a corpus of any size takes little memory.

A text may have a data set and a language: from columns or keys of these names, from folders named `dataset=...` and
`language=...`, or otherwise from the folder below the given one.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.corpus.texts.parquet_files import parquet_columns, parquet_rows
from attention_sieve.core.errors import AnalysisError, TextError, first_line, quoted, shortened
from attention_sieve.core.running import PROGRESS
from attention_sieve.core.texts.tables import KNOWN_COLUMNS
from attention_sieve.core.texts.text import MAX_CHARACTERS, READERS, STREAMED, Row, Text, text_cell, text_of

HUB: Final = "hub:"
"""Prefix of a data set of the hub; a colon and the name of a split may follow its name."""
LONGEST_LINE: Final = 20 * MAX_CHARACTERS
"""Maximum length of a line in characters, because a file without line breaks would fill the memory."""
DATASET: Final = "dataset"
LANGUAGE: Final = "language"
LONGEST_NAME: Final = 100
"""Maximum length of the name of a data set or a language."""


@dataclass(frozen=True)
class CorpusText:
    """One text of a corpus."""

    text: Text
    dataset: str = ""
    """Empty if unknown, like the language."""
    language: str = ""


def input_files(source: str) -> list[Path]:
    """The files with texts below a folder, sorted, without the journal of a run; or the given file itself.

    Raises: AnalysisError if there is none, and for a file of another format.
    """
    path = Path(source)
    if os.path.isfile(path):  # where Path raises for too long a name, os.path answers False
        if path.suffix.lower() not in STREAMED:
            raise AnalysisError(
                f"{shortened(source)} has a format that cannot be streamed. Give {', '.join(STREAMED)}."
            )
        return [path]
    if not os.path.isdir(path):
        raise AnalysisError(f"There is no folder {shortened(source)}. Check the path.")
    files = sorted(
        file for file in path.rglob("*") if file.suffix.lower() in STREAMED and file.name != PROGRESS and file.is_file()
    )
    if not files:
        raise AnalysisError(
            f"The folder {shortened(source)} holds no file that ends in {', '.join(STREAMED)}. Choose another."
        )
    return files


def read_inputs(source: str, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a folder, a file, or a data set of the hub, in the order of the files.

    Args:
        source: path of a folder or a file, or `hub:name` or `hub:name:split`.
        columns: columns of tables, or keys of objects: one, or two for pairs; None to recognise known names.

    Raises: AnalysisError for a missing source; TextError, with the location, for a text that cannot be read.
    """
    if source.startswith(HUB):
        yield from _hub_texts(source.removeprefix(HUB), columns)
        return
    root = Path(source)
    for path in input_files(source):
        dataset, language = _names_of(path, root)
        try:
            for text in _file_texts(path, columns):
                yield replace(text, dataset=text.dataset or dataset, language=text.language or language)
        except TextError as error:
            raise TextError(f"{path}: {error}") from None
        except OSError as error:
            raise TextError(f"{path} cannot be read ({error.strerror or error}). Check the file.") from None


def _names_of(path: Path, root: Path) -> tuple[str, str]:
    """Data set and language from the folders of a file."""
    folders = path.relative_to(root).parts[:-1] if root.is_dir() else ()
    names = dict(folder.split("=", 1) for folder in folders if "=" in folder)
    first_plain = next((folder for folder in folders if "=" not in folder), "")
    return names.get(DATASET, first_plain), names.get(LANGUAGE, "")


def _file_texts(path: Path, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    reader = next(reader for reader in READERS if reader.suffix == path.suffix.lower())
    rows = _parquet_rows(path, columns) if reader.lines is None else reader.lines(_lines(path), columns)
    for row in rows:
        if row.text.pairs is not None:
            raise TextError(
                f"{row.where} marks pairs, which corpora do not keep. Give this file to the command relations, "
                'or remove "pairs".'
            )
        yield CorpusText(row.text, *_named_in(row.item, row.where))


def _lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file."""
    with path.open(encoding="utf-8-sig", newline=None) as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(LONGEST_LINE + 1)
            except UnicodeDecodeError as error:
                raise TextError(
                    f"The bytes after line {number - 1:,} are not UTF-8 ({error.reason}). Save the file as UTF-8."
                ) from None
            if len(line) > LONGEST_LINE:
                raise TextError(
                    f"Line {number:,} has more than {LONGEST_LINE:,} characters. Split it into shorter lines."
                )
            if not line:
                return
            yield line


def _parquet_rows(path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
    """The texts of a Parquet file."""
    names = parquet_columns(path)
    text_columns = _text_columns(names, columns)
    name_columns = [name for name in (DATASET, LANGUAGE) if name in names and name not in text_columns]
    for number, row in enumerate(parquet_rows(path, [*text_columns, *name_columns]), start=1):
        where = f"Row {number:,}"
        yield Row(text_of([text_cell(row, name, where) for name in text_columns], where), where, row)


def _text_columns(names: Sequence[str], columns: Sequence[str] | None) -> Sequence[str]:
    """The text columns among the columns of a table.

    Raises: TextError if they are missing.
    """
    listed = quoted(", ".join(names))
    if columns is not None:
        if missing := [name for name in columns if name not in names]:
            raise TextError(f"There is no column {quoted(missing[0])}. Its columns are {listed}. Choose among them.")
        return columns
    recognised = next((names_of for names_of in KNOWN_COLUMNS if all(name in names for name in names_of)), None)
    if recognised is None:
        raise TextError(f"No column is known to hold texts. Its columns are {listed}. Name one with --text-columns.")
    return recognised


def _named_in(row: Any, location: str) -> tuple[str, str]:
    """Data set and language of a row."""
    names = []
    for key in (DATASET, LANGUAGE):
        value = row.get(key) if isinstance(row, dict) else None
        if value is not None and (not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable()):
            raise TextError(
                f"{location}: {quoted(key)} is {quoted(value)}. Write a name of at most {LONGEST_NAME} characters."
            )
        names.append((value or "").strip())
    return names[0], names[1]


def _hub_texts(name: str, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a data set of the hub, streamed."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise AnalysisError(
            "The package datasets, which reads data sets from the hub, is not installed. Install it with: pip "
            "install datasets"
        ) from None
    name, _, split = name.partition(":")

    def streamed() -> Iterator[dict[str, Any]]:
        try:
            yield from load_dataset(name, split=split or "train", streaming=True)
        except Exception as error:  # errors of the hub, at the start or later, are open-ended
            raise AnalysisError(
                f"The data set {name} cannot be read ({first_line(error)}). Check its name and the connection."
            ) from None

    rows = streamed()
    text_columns: Sequence[str] | None = None
    for number, row in enumerate(rows, start=1):
        text_columns = _text_columns(list(row), columns) if text_columns is None else text_columns
        location = f"Row {number:,} of {name}"
        dataset, language = _named_in(row, location)
        cells = [text_cell(row, column, location) for column in text_columns]
        yield CorpusText(text_of(cells, location), dataset or name, language)
