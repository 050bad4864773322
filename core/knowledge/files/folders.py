"""Reads tasks from a file, or from a folder with one task per file."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.errors import TextError, shortened
from attention_sieve.core.finetuning.data import unpacked
from attention_sieve.core.json_values import as_list, value_at
from attention_sieve.core.knowledge.files.labelled import (
    USUAL_COLUMNS,
    TaskColumns,
    is_senteval,
    read_labelled_task,
    read_senteval,
)
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.texts.json_files import parsed_json
from attention_sieve.core.texts.text import decoded, read_bytes

FILE_OF_A_TASK: Final = re.compile(r"(.+?)\.(txt|tsv|csv)(\.gz)?", re.IGNORECASE | re.DOTALL)
MAX_FILES: Final = 100
ABOUT: Final = "tasks.json"
"""Optional file beside the tasks with their definitions and sources."""


def read_tasks(
    path: Path, columns: TaskColumns = USUAL_COLUMNS, *, is_regression: bool | None = None
) -> tuple[Task, ...]:
    """Read the task of a file, or one task from each file of a folder, sorted by name.

    A file is in SentEval's format if its first line is; else .csv and .tsv are labelled tables. All may be gzipped.

    Args:
        path: of the file or folder; in a folder, files with other endings are ignored.
        is_regression: of all tasks; None to decide by the labels of each.

    Raises: ColumnsNeeded for a table with an unknown header; TextError, with the file and the line.
    """
    if not os.path.isdir(path):  # returns False for too long a name, where Path raises
        return (_read_task(path, columns, is_regression),)
    files = sorted(file for file in path.iterdir() if FILE_OF_A_TASK.fullmatch(file.name) and file.is_file())
    if not files:
        raise TextError(f"{path} holds no task. Put files in SentEval's format (.txt) or labelled tables there.")
    if len(files) > MAX_FILES:
        raise TextError(f"{path} holds {len(files):,} files and at most {MAX_FILES} are read. Move some elsewhere.")
    tasks = [_read_task(file, columns, is_regression) for file in files]
    sources = _sources(path / ABOUT)
    return tuple(replace(task, source=sources.get(task.name, task.source)) for task in tasks)


def task_name(path: str | Path) -> str:
    """Name of the task in a file: the file name without its endings."""
    match = FILE_OF_A_TASK.fullmatch(Path(path).name)
    return match[1] if match else Path(path).name


def _read_task(path: Path, columns: TaskColumns, is_regression: bool | None) -> Task:
    match = FILE_OF_A_TASK.fullmatch(path.name)
    if match is None:
        raise TextError(
            f"{shortened(path.name)} cannot be read. Choose a file that ends in .txt, .tsv or .csv, or in .gz after it."
        )
    content = read_bytes(path)
    try:
        unpacked_content = unpacked(content) if match[3] else content
        if match[2].lower() == "txt" or is_senteval(unpacked_content):
            return read_senteval(match[1], unpacked_content, is_regression=is_regression)
        return read_labelled_task(path.name, content, columns, is_regression=is_regression)
    except TextError as error:
        error.args = (f"{path.name}: {error}",)
        raise


def _sources(path: Path) -> dict[str, str]:
    """Source of each task of a folder, by name, as written by `python -m attention_sieve tasks`; empty without that
    file."""
    if not path.is_file():
        return {}
    try:
        about: Any = parsed_json(decoded(read_bytes(path)), 1)
        tasks = as_list(value_at(about, "tasks", "The object"), "tasks", "The object")
        where = "A task"
        return {str(value_at(task, "name", where)): str(value_at(task, "source", where)) for task in tasks}
    except TextError as error:
        raise TextError(f"{path.name}: {error} Or remove the file, which is not needed.") from None
