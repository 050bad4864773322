"""Files of probing tasks, those of the sample and those that readers gave, and what is in each."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from cache.store.recent import Recent
from core.checkpoints.folders import program_folder
from core.errors import AnalysisError, ColumnsNeeded
from core.json_values import parse_json
from core.probing_tasks.files.folders import ABOUT, FILE_OF_A_TASK, task_name
from core.probing_tasks.files.labelled import LABEL_COLUMN
from core.probing_tasks.task import PARTS, check_task
from core.probing_tasks.tasks_command import sample_tasks_folder
from core.probing_tasks.trials.trial import Trial, task_sha256
from dashboard.views.finetune.folders import SHA_CHARACTERS, keep_file, safe_name

COLUMNS: Final = "columns.json"
"""File beside a labelled table that says what its columns are."""
KEPT: Final = 200
"""Tasks whose facts stay in memory."""
_facts: Final[Recent[tuple[object, ...], "TaskFile"]] = Recent(KEPT)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a labelled table are; the values of a trial."""

    text_columns: str | None = None
    label_column: str = LABEL_COLUMN
    part_column: str | None = None
    is_regression: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """A task as its file holds it."""

    path: Path
    columns: Columns
    name: str
    digest: str = ""
    """Of its examples, by `task_sha256`."""
    n_rows: tuple[int, ...] = ()
    """Of each part."""
    n_classes: int = 0
    """0 for a regression."""
    source: str = ""
    """Where it comes from."""
    definition: str = ""
    notes: tuple[str, ...] = ()
    """What makes its results weak."""
    problem: str = ""
    """Why it cannot be probed; empty where it can."""
    header: tuple[str, ...] = ()
    """Columns of a table whose texts have to be named first."""

    def trial(self, checkpoint: str, **settings: Any) -> Trial:
        """The trial of a checkpoint on it."""
        return Trial(checkpoint=checkpoint, data=str(self.path), **asdict(self.columns), **settings)


def sample_tasks() -> tuple[TaskFile, ...]:
    """The tasks of the sample; none before they are made."""
    folder = sample_tasks_folder()
    if not (folder / ABOUT).is_file():
        return ()
    about = _about(folder / ABOUT)
    return tuple(
        replace(task, definition=about[task.name].get("definition", ""), source=about[task.name].get("source", ""))
        if task.name in about
        else task
        for task in _described(folder.glob("*.txt"))
    )


def own_tasks() -> tuple[TaskFile, ...]:
    """The tasks that readers gave, by name; of equal names all but the first with signs of their content."""
    found: dict[str, TaskFile] = {}
    for task in _described(own_folder().glob("*/*")):
        name = f"{task.name} ({task.path.parent.name[:4]})" if task.name in found else task.name
        found[name] = replace(task, name=name)
    return tuple(found.values())


def own_folder() -> Path:
    """Folder of the tasks that readers gave; it may not exist yet."""
    return program_folder() / "tasks" / "yours"


def keep_task(name: str, content: bytes) -> Path:
    """Write a task that a reader gave where a run finds it.

    Args:
        name: of the file as it was uploaded; only its harmless signs are kept.
        content: its bytes.

    Returns: its path, in a folder that is named by the content.
    Raises: AnalysisError where it cannot be written.
    """
    stem = task_name(name)
    folder = own_folder() / sha256(content).hexdigest()[:SHA_CHARACTERS]
    return keep_file(folder / f"{safe_name(stem)}{name[len(stem) :].lower()}", content)


def keep_columns(path: Path, columns: Columns) -> None:
    """Write down what the columns of a reader's table are.

    Raises: AnalysisError where it cannot be written.
    """
    place = path.with_name(COLUMNS)
    try:
        place.write_text(json.dumps(asdict(columns)), encoding="utf-8")
    except OSError as error:
        raise AnalysisError(f"{place} cannot be written ({error.strerror}). Make room there.") from None


def forget(task: TaskFile) -> None:
    """Delete the copy of a task that a reader gave; what was found about it stays."""
    shutil.rmtree(task.path.parent, ignore_errors=True)


def _described(paths: Iterable[Path]) -> tuple[TaskFile, ...]:
    files = (path for path in paths if FILE_OF_A_TASK.fullmatch(path.name))
    return tuple(sorted((_read(path) for path in files), key=lambda task: task.name))


def _read(path: Path) -> TaskFile:
    """What is in a file; read once while it stays as it is."""
    columns, stat = _columns(path), path.stat()
    key = (path, stat.st_mtime_ns, stat.st_size, columns)
    known = _facts.get(key)
    if known is None:
        known = _facts_of(TaskFile(path=path, columns=columns, name=task_name(path)))
        _facts.put(key, known)
    return known


def _facts_of(file: TaskFile) -> TaskFile:
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


def _columns(path: Path) -> Columns:
    """The columns as they were kept; the usual ones where none were, or somebody spoilt the file."""
    try:
        return Columns(**parse_json(path.with_name(COLUMNS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Columns()


def _about(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """What the program wrote about the tasks of the sample, by their names; nothing where somebody spoilt it."""
    try:
        return {str(task["name"]): task for task in parse_json(path.read_text(encoding="utf-8"))["tasks"]}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
