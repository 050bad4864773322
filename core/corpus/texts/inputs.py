"""Reads the texts of files one after the other, so that a corpus of any size takes no memory.

A text may bring the data set and the language that it belongs to: columns or keys of these names, folders named
`dataset=...` and `language=...`, or else the folder below the one that is given.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from core.errors import AnalysisError, TextError, first_line, quoted, shortened
from core.texts.conllu import sentences_of_lines
from core.texts.json_files import from_object, parsed_json
from core.texts.tables import KNOWN_COLUMNS
from core.texts.text import MAX_CHARACTERS, Text, text_as_written, text_of, typed_lines

SUFFIXES: Final = (".txt", ".jsonl", ".parquet", ".conllu")
HUB: Final = "hub:"
"""Begins the name of a data set of the hub, which may end in a colon and the name of a split."""
LONGEST_LINE: Final = 20 * MAX_CHARACTERS
"""Characters of a line at most: a file without line ends would fill the memory."""
ROWS_AT_ONCE: Final = 1_000
DATASET: Final = "dataset"
LANGUAGE: Final = "language"
LONGEST_NAME: Final = 100
"""Characters of the name of a data set or a language."""


@dataclass(frozen=True)
class CorpusText:
    """One text of a corpus."""

    text: Text
    dataset: str = ""
    """Empty where it is not told, as the language."""
    language: str = ""


def input_files(given: str) -> list[Path]:
    """The files below a folder that hold texts, sorted; or the file that is given.

    Raises: AnalysisError where there is none, and for a file of another kind.
    """
    path = Path(given)
    if os.path.isfile(path):  # where Path raises for too long a name, os.path answers False
        if path.suffix.lower() not in SUFFIXES:
            raise AnalysisError(f"{shortened(given)} has a format that cannot be streamed. Give {', '.join(SUFFIXES)}.")
        return [path]
    if not os.path.isdir(path):
        raise AnalysisError(f"There is no folder {shortened(given)}. Check the path.")
    files = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
    if not files:
        raise AnalysisError(
            f"The folder {shortened(given)} holds no file that ends in {', '.join(SUFFIXES)}. Choose another."
        )
    return files


def read_inputs(given: str, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a folder, a file, or a data set of the hub, in the order of the files.

    Args:
        given: path of a folder or a file, or `hub:name` or `hub:name:split`.
        columns: of tables, and keys of objects: one, or two for pairs; None to recognise known names.

    Raises: AnalysisError for what is not there; TextError for a text that cannot be read, with its place.
    """
    if given.startswith(HUB):
        yield from _of_hub(given.removeprefix(HUB), columns)
        return
    root = Path(given)
    for path in input_files(given):
        dataset, language = _names_of(path, root)
        try:
            for each in _of_file(path, columns):
                yield replace(each, dataset=each.dataset or dataset, language=each.language or language)
        except TextError as error:
            raise TextError(f"{path}: {error}") from None
        except OSError as error:
            raise TextError(f"{path} cannot be read ({error.strerror or error}). Check the file.") from None


def _names_of(path: Path, root: Path) -> tuple[str, str]:
    """Data set and language that the folders of a file name."""
    folders = path.relative_to(root).parts[:-1] if root.is_dir() else ()
    named = dict(part.split("=", 1) for part in folders if "=" in part)
    first = next((part for part in folders if "=" not in part), "")
    return named.get(DATASET, first), named.get(LANGUAGE, "")


def _of_file(path: Path, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _of_parquet(path, columns)
    elif suffix == ".jsonl":
        yield from _of_objects(_lines(path), columns)
    elif suffix == ".conllu":
        yield from (CorpusText(text_as_written(written)) for written in sentences_of_lines(_lines(path)))
    else:
        yield from map(CorpusText, typed_lines(_lines(path)))


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
                    f"After line {number - 1:,} follow bytes that are not UTF-8 ({error.reason}). Save the file as "
                    "UTF-8."
                ) from None
            if len(line) > LONGEST_LINE:
                raise TextError(f"Line {number:,} has more than {LONGEST_LINE:,} characters. Put line ends between.")
            if not line:
                return
            yield line


def _of_objects(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a .jsonl file."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where, item = f"Line {number:,}", parsed_json(line.removesuffix("\n"), first_line=number)
        if columns is None or not isinstance(item, dict):
            text = text_as_written(from_object(item, where))
        else:
            text = text_of([_cell(item, name, where) for name in columns], where)
        yield CorpusText(text, *_named_in(item, where))


def _of_parquet(path: Path, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a Parquet file, some rows at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            picked = _text_columns(names, columns)
            others = [name for name in (DATASET, LANGUAGE) if name in names and name not in picked]
            number = 0
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=[*picked, *others]):
                for row in batch.to_pylist():
                    number += 1
                    where = f"Row {number:,}"
                    yield CorpusText(
                        text_of([_cell(row, name, where) for name in picked], where), *_named_in(row, where)
                    )
    except (pa.ArrowException, ValueError) as error:
        raise TextError(f"This is not a Parquet file that can be read ({first_line(error)}). Write it anew.") from None


def _text_columns(names: Sequence[str], columns: Sequence[str] | None) -> Sequence[str]:
    """The columns of the texts among those of a table.

    Raises: TextError where they are not there.
    """
    listed = quoted(", ".join(names))
    if columns is not None:
        if missing := [name for name in columns if name not in names]:
            raise TextError(f"There is no column {quoted(missing[0])}. Its columns are {listed}. Choose among them.")
        return columns
    known = next((each for each in KNOWN_COLUMNS if all(name in names for name in each)), None)
    if known is None:
        raise TextError(f"No column is known to hold texts. Its columns are {listed}. Name one with --text-columns.")
    return known


def _cell(row: dict[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        found = "nothing" if value is None else f"a value of type {type(value).__name__}"
        raise TextError(f"{where}: {quoted(name)} holds {found}. Write a text there.")
    return value


def _named_in(row: Any, where: str) -> tuple[str, str]:
    """Data set and language that a row names."""
    names = []
    for key in (DATASET, LANGUAGE):
        value = row.get(key) if isinstance(row, dict) else None
        if value is not None and (not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable()):
            raise TextError(
                f"{where}: {quoted(key)} is {quoted(value)}. Write a name of at most {LONGEST_NAME} characters."
            )
        names.append((value or "").strip())
    return names[0], names[1]


def _of_hub(name: str, columns: Sequence[str] | None) -> Iterator[CorpusText]:
    """The texts of a data set of the hub, streamed."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise AnalysisError(
            "The package datasets is not installed, and data sets of the hub are read with it. Install it with: pip "
            "install datasets"
        ) from None
    name, _, split = name.partition(":")

    def streamed() -> Iterator[dict[str, Any]]:
        try:
            yield from load_dataset(name, split=split or "train", streaming=True)
        except Exception as error:  # what the hub answers, at first or on the way, is open-ended
            raise AnalysisError(
                f"The data set {name} cannot be read ({first_line(error)}). Check its name and the connection."
            ) from None

    rows = streamed()
    picked: Sequence[str] | None = None
    for number, row in enumerate(rows, start=1):
        picked = _text_columns(list(row), columns) if picked is None else picked
        where = f"Row {number:,} of {name}"
        dataset, language = _named_in(row, where)
        yield CorpusText(text_of([_cell(row, each, where) for each in picked], where), dataset or name, language)
