"""A trial as plain values: which checkpoint is probed for which task, and how."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, get_args

from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, Kind
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import LARGEST_SEED, find_checkpoint, randomly_initialised
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.files.folders import read_tasks, task_name
from attention_sieve.core.knowledge.files.labelled import LABEL_COLUMN, TaskColumns
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import POOLINGS, Pooling
from attention_sieve.core.texts.tokens import TooLong

FORMAT: Final = 1
"""Version of the row format; rows of other versions are recomputed."""
SUFFIX: Final = ".parquet"
ALLOWED_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "pooling": POOLINGS,
    "attention": (*ONE_STACK, *TWO_STACKS),
    "too_long": get_args(TooLong),
}
WHOLE_NUMBER: Final = re.compile("[0-9]{1,19}")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Checkpoint, task and settings: plain values that a line of a table can hold and another process can use."""

    checkpoint: str
    """Hugging Face model id, folder, or `bundled`."""
    data: str
    """File of the task, in SentEval's format or a labelled table."""
    pooling: Pooling | None = None
    """Where vectors are read; None for the pooling that the paper uses for such a checkpoint."""
    seed: int = 0
    """Seed of the control task and of the order of rows in the code."""
    attention: Kind | None = None
    """Kind of attention of an encoder-decoder; None for its first."""
    random_weights: int | None = None
    """Seed of random weights that replace the checkpoint's; None for its own."""
    text_columns: str | None = None
    """For a table: one column, or two as a,b."""
    label_column: str = LABEL_COLUMN
    part_column: str | None = None
    is_regression: bool | None = None
    """None: decided by the labels."""
    too_long: TooLong = "error"
    """How to treat texts with more tokens than the maximum length of the checkpoint."""

    def files(self) -> CheckpointFiles:
        """Files of the checkpoint.

        Raises: CheckpointError.
        """
        files = find_checkpoint(self.checkpoint)
        return files if self.random_weights is None else randomly_initialised(files, self.random_weights)

    def task(self) -> Task:
        """The task, read from its file.

        Raises: TextError; AnalysisError where the file is not one task.
        """
        path = Path(self.data)
        if os.path.isdir(path):  # returns False for too long a name, where Path raises
            raise AnalysisError(f"{self.data} is a folder, and a trial is about one task. Choose one of its files.")
        columns = TaskColumns.named(self.text_columns, self.label_column, self.part_column)
        (task,) = read_tasks(path, columns, is_regression=self.is_regression)
        return task


def name_of(trial: Trial) -> str:
    """Name of a trial in messages: its task and its checkpoint."""
    random = "" if trial.random_weights is None else f", random weights, seed {trial.random_weights}"
    return f"{task_name(trial.data)}, {trial.checkpoint}{random}"


def n_texts_of(table: Sequence[Trial]) -> list[int]:
    """Number of examples of the task of each trial, read once for all trials of a task; 0 if it cannot be read."""
    counts: dict[Trial, int] = {}
    tasks = [
        replace(trial, checkpoint="", pooling=None, seed=0, attention=None, random_weights=None) for trial in table
    ]
    for task in tasks:
        if task not in counts:
            try:
                counts[task] = len(task.task().examples)
            except AnalysisError:
                counts[task] = 0
    return [counts[task] for task in tasks]


def row_path(folder: Path, trial: Trial, files: CheckpointFiles, digest: str, dtype: str) -> Path:
    """File of a trial's row, named by a SHA-256 of everything that the result depends on, but not of file names.

    Args:
        digest: of its task, by `task_sha256`.
    """
    kind = trial.attention or files.kinds[0]
    content = json.dumps([FORMAT, files.fingerprint, dtype, kind, trial.pooling, trial.seed, trial.too_long, digest])
    return folder / f"{hashlib.sha256(content.encode()).hexdigest()}{SUFFIX}"


def task_sha256(task: Task) -> str:
    """Digest of the examples of a task and of whether it is a regression; not of its name."""
    digest = hashlib.sha256(json.dumps(task.is_regression).encode())
    for example in task.examples:
        digest.update(json.dumps([example.text.segments, example.label, example.part]).encode())
    return digest.hexdigest()


def trial_of(values: dict[str, Any]) -> Trial:
    """A trial from the values of a line of a table; empty values get their defaults.

    Raises: AnalysisError for an unknown column or a value that is not allowed.
    """
    known = {field.name for field in fields(Trial)}
    if unknown := [name for name in values if name not in known]:
        raise AnalysisError(f"A trial has no column {unknown[0][:40]!r}. Choose from {', '.join(sorted(known))}.")
    filled = {name: value for name, value in values.items() if value not in ("", None)}
    if missing := [name for name in ("checkpoint", "data") if name not in filled]:
        raise AnalysisError(f"A trial needs a {missing[0]}. Add this column, with a value in each line.")
    for name, allowed in ALLOWED_VALUES.items():
        if name in filled and filled[name] not in allowed:
            raise AnalysisError(f"There is no {name} {str(filled[name])[:40]!r}. Choose from {', '.join(allowed)}.")
    return Trial(**{name: _value(name, value) for name, value in filled.items()})


def lines_of(trials: Iterable[Trial]) -> list[str]:
    """The lines of a table of trials, as files of JSON lines have them: values that differ from their defaults."""
    defaults = {field.name: field.default for field in fields(Trial)}
    return [
        json.dumps({name: value for name, value in asdict(trial).items() if value != defaults[name]})
        for trial in trials
    ]


def _value(name: str, value: Any) -> Any:
    if name in ("seed", "random_weights"):
        if not WHOLE_NUMBER.fullmatch(str(value)) or int(value) > LARGEST_SEED:
            raise AnalysisError(f"{name} is {str(value)[:40]!r}. Write a whole number from 0 to {LARGEST_SEED}.")
        return int(value)
    if name == "is_regression":
        if str(value).lower() not in ("true", "false"):
            raise AnalysisError(f"is_regression is {str(value)[:40]!r}. Write true or false.")
        return str(value).lower() == "true"
    return str(value)
