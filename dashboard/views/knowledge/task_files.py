"""Files of probing tasks, from the sample and from readers, and the facts about each."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.errors import AnalysisError, ColumnsNeeded
from attention_sieve.core.json_values import parse_json, typed_json
from attention_sieve.core.knowledge.files.folders import ABOUT, FILE_OF_A_TASK, task_name
from attention_sieve.core.knowledge.files.labelled import LABEL_COLUMN
from attention_sieve.core.knowledge.task import PARTS, check_task
from attention_sieve.core.knowledge.tasks_command import sample_tasks_folder
from attention_sieve.core.knowledge.trials.trial import Trial, task_sha256
from attention_sieve.dashboard.views.training.folders import SHA_CHARACTERS, keep_file, safe_name

COLUMNS: Final = "columns.json"
"""File next to a labelled table that records what its columns are."""
ENOUGH_TEST_TEXTS: Final = 385
"""Test texts with which the 95% interval of an accuracy reaches at most 5 points to each side."""
TELLING: Final = ("bigram_shift", "tense")
"""Tasks that the page opens on, and that `make app` probes: on the first of the sample's, a head of the bundled
checkpoint beats every baseline."""
MAX_CACHED: Final = 200


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """What the columns of a labelled table are; the fields are those of a trial."""

    text_columns: str | None = None
    label_column: str = LABEL_COLUMN
    part_column: str | None = None
    is_regression: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    path: Path
    columns: TableColumns
    name: str
    digest: str = ""
    """Hash of its examples, by `task_sha256`."""
    n_rows: tuple[int, ...] = ()
    n_classes: int = 0
    """0 for a regression."""
    source: str = ""
    definition: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be probed; empty if it can."""
    header: tuple[str, ...] = ()
    """Columns of a table for which the reader has to say first what they hold."""

    def trial(self, checkpoint: str) -> Trial:
        return Trial(checkpoint=checkpoint, data=str(self.path), **asdict(self.columns))


def before_others(task: TaskFile) -> tuple[bool, bool, int]:
    """Sort key: the TELLING tasks first, then those with enough test texts, small ones before large; then those with
    most test texts."""
    n_test = task.n_rows[-1]
    is_small = n_test < ENOUGH_TEST_TEXTS
    return task.name not in TELLING, is_small, -n_test if is_small else sum(task.n_rows)


def sample_tasks() -> tuple[TaskFile, ...]:
    folder = sample_tasks_folder()
    if not (folder / ABOUT).is_file():
        return ()
    about = _about(folder / ABOUT)
    return tuple(replace(task, **about.get(task.name, {})) for task in _task_files(folder.glob("*.txt")))


def own_tasks() -> tuple[TaskFile, ...]:
    """The tasks of readers, by name; where names are equal, all but the first carry a prefix of their content hash."""
    tasks: dict[str, TaskFile] = {}
    for task in _task_files(own_folder().glob("*/*")):
        name = f"{task.name} ({task.path.parent.name[:4]})" if task.name in tasks else task.name
        tasks[name] = replace(task, name=name)
    return tuple(tasks.values())


def own_folder() -> Path:
    return program_folder() / "tasks" / "yours"


def keep_task(name: str, content: bytes) -> Path:
    """Save a task of a reader where a run finds it.

    Args:
        name: of the uploaded file; unsafe characters are removed.

    Returns: its path, in a folder named by a hash of the content.
    Raises: AnalysisError if it cannot be written.
    """
    stem = task_name(name)
    folder = own_folder() / sha256(content).hexdigest()[:SHA_CHARACTERS]
    return keep_file(folder / f"{safe_name(stem)}{name[len(stem) :].lower()}", content)


def keep_columns(path: Path, columns: TableColumns) -> None:
    columns_path = path.with_name(COLUMNS)
    try:
        columns_path.write_text(json.dumps(asdict(columns)), encoding="utf-8")
    except OSError as error:
        raise AnalysisError(f"{columns_path} cannot be written ({error.strerror}). Make room there.") from None


def forget(task: TaskFile) -> None:
    """Delete the saved file of a reader's task; its results are kept."""
    shutil.rmtree(task.path.parent, ignore_errors=True)


def _task_files(paths: Iterable[Path]) -> tuple[TaskFile, ...]:
    files = (path for path in paths if FILE_OF_A_TASK.fullmatch(path.name))
    return tuple(sorted((_read(path) for path in files), key=lambda task: task.name))


def _read(path: Path) -> TaskFile:
    """Facts about a file; read once per version of the file."""
    stat = path.stat()
    return _facts(TaskFile(path=path, columns=_columns(path), name=task_name(path)), (stat.st_mtime_ns, stat.st_size))


@lru_cache(MAX_CACHED)  # small, and one page reads all of them
def _facts(file: TaskFile, version: tuple[int, int]) -> TaskFile:
    try:
        task = file.trial("").task()
        notes = check_task(task)
    except ColumnsNeeded as needed:
        return replace(file, problem=str(needed), header=needed.columns)
    except AnalysisError as error:
        return replace(file, problem=str(error))
    return replace(
        file,
        digest=task_sha256(task),
        n_rows=tuple(task.count(part) for part in PARTS),
        n_classes=0 if task.is_regression else len(task.classes),
        source=task.source,
        notes=notes,
    )


def _columns(path: Path) -> TableColumns:
    try:
        return typed_json(path.with_name(COLUMNS).read_bytes(), TableColumns)
    except (OSError, ValueError):
        return TableColumns()


def _about(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        tasks = parse_json(path.read_text(encoding="utf-8"))["tasks"]
        return {str(task["name"]): {name: task.get(name, "") for name in ("definition", "source")} for task in tasks}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
