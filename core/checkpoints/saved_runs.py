"""Runs of training on disk, of fine-tuning and of the laboratory: their progress and their saved checkpoints.

A run's folder contains `training.json` (checkpoint, data, settings, versions, result), `progress.jsonl` (one report
per line), `checkpoint-N/` for each saved step, and at the end the fine-tuned checkpoint itself. A file named `stop`
requests the run to stop.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import psutil

from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.errors import AnalysisError, CheckpointError
from attention_sieve.core.json_values import json_lines

State = Literal["running", "finished", "stopped", "failed", "left"]
"""`left`: the training process ended without a report."""
PROGRESS: Final = "progress.jsonl"
STOP: Final = "stop"
SAVED: Final = re.compile(r"checkpoint-(\d{1,15})", re.ASCII)
LARGEST_COUNT: Final = 1 << 53
NEEDED: Final[dict[str, frozenset[str]]] = {
    "start": frozenset({"step"}),
    "loss": frozenset({"step", "loss"}),
    "held out": frozenset({"step", "loss", "accuracy", "correlation"}),
    "validation": frozenset({"n_texts", "majority", "mean_loss"}),
    "note": frozenset({"note"}),
}
"""Required values of the report of each event."""
NEEDED_AT_ALL: Final = frozenset({"state", "pid", "created", "step", "steps", "message", "checkpoint"})
SAME_START: Final = 5.0
"""Tolerance in seconds for the start time of a process; processes that reuse a process id differ by far more."""


@dataclass(frozen=True)
class ValidationResult:
    """Performance of a checkpoint on the validation texts."""

    step: int
    loss: float
    accuracy: float | None
    """Share of texts classified correctly; None for a regression."""
    correlation: float | None
    """Pearson's r with the labels; None for classes, and if predictions or labels are constant."""


@dataclass(frozen=True)
class Validation:
    """The validation texts of a run, and the result of giving the same answer for all of them."""

    n_texts: int
    majority: float | None
    """Share of the texts in their most frequent class; None for a regression."""
    mean_loss: float | None
    """Mean squared error of the mean label of the training texts; None for classes."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    state: State
    step: int
    steps: int
    """Total number of steps; 0 while unknown."""
    seconds_left: float | None
    losses: tuple[tuple[int, float], ...]
    """Step and training loss."""
    held_out: tuple[ValidationResult, ...]
    saved: tuple[int, ...]
    """Steps with a saved checkpoint."""
    message: str
    """Why the run failed, or what it is doing before training begins; otherwise empty."""
    checkpoint: str = ""
    """Name of the checkpoint that is fine-tuned; empty for a model that is trained from random weights."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, such as how many texts were truncated."""
    validation: Validation | None = None
    """None until it is known, and for a run of an earlier version."""

    @property
    def share(self) -> float:
        """Of the steps that are done, 0 to 1; 0 while their number is unknown."""
        return min(self.step / self.steps, 1.0) if self.steps else 0.0


@dataclass(frozen=True)
class SavedRun:
    """A run in a folder of runs."""

    name: str
    """Name of its folder; also the name of its checkpoint if it is in `checkpoints_folder()`."""
    folder: Path
    progress: Progress

    @property
    def is_fine_tuning(self) -> bool:
        """Whether it began with a checkpoint, and not in the laboratory, with random weights."""
        return bool(self.progress.checkpoint)

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of its checkpoints: saved steps in order, then, once finished, its own name.

        The finished checkpoint equals that of the last step.
        """
        saved = tuple(f"{self.name}/{path.name}" for path in saved_checkpoints(self.folder))
        return (*saved, self.name) if self.progress.state == "finished" else saved


def read_progress(folder: Path) -> Progress | None:
    """Read the progress of the run in a folder; None if there is no run, or none that can be read.

    Incomplete and invalid lines are ignored.
    """
    latest: dict[str, Any] = {}
    losses: dict[int, float] = {}
    held_out: dict[int, ValidationResult] = {}
    notes: list[str] = []
    validation = None
    for line in filter(_is_report, json_lines(folder / PROGRESS)):
        match line.pop("event"):
            case "start":  # a resumed run repeats the steps after its last saved one
                latest = {"state": None}
                losses = {step: loss for step, loss in losses.items() if step <= line["step"]}
                held_out = {step: measured for step, measured in held_out.items() if step <= line["step"]}
                notes = []
            case "loss":
                losses[line["step"]] = line["loss"]
            case "held out":
                held_out[line["step"]] = ValidationResult(**{name: line[name] for name in NEEDED["held out"]})
            case "validation":
                validation = Validation(**{name: line[name] for name in NEEDED["validation"]})
            case "note":
                notes.append(line["note"])
        latest |= line
    if not latest.keys() >= NEEDED_AT_ALL:
        return None
    return Progress(
        state=latest["state"] or ("running" if is_running(latest["pid"], latest["created"]) else "left"),
        step=latest["step"],
        steps=latest["steps"],
        seconds_left=latest.get("seconds_left"),
        losses=tuple(losses.items()),
        held_out=tuple(held_out.values()),
        saved=tuple(_step(path) for path in saved_checkpoints(folder)),
        message=latest["message"],
        checkpoint=latest["checkpoint"],
        notes=tuple(notes),
        validation=validation,
    )


def _is_report(line: object) -> bool:
    """Whether a line has the values that its event needs, each of the right type."""
    if not isinstance(line, dict) or not isinstance(line.get("event"), str):
        return False
    has_all = NEEDED.get(line["event"], frozenset()) <= line.keys()
    return has_all and all(KINDS[name](value) for name, value in line.items() if name in KINDS)


def is_count(value: object) -> bool:
    """Whether it is a whole number from 0 that a float holds exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def _is_number(value: object) -> bool:
    """Whether it is a number that fits a float; a loss may be infinite or NaN."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST_COUNT)


KINDS: Final[dict[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("step", "steps", "pid", "n_texts"), is_count),
    **dict.fromkeys(("loss", "created"), _is_number),
    **dict.fromkeys(
        ("accuracy", "correlation", "seconds_left", "majority", "mean_loss"),
        lambda value: value is None or _is_number(value),
    ),
    **dict.fromkeys(("message", "checkpoint", "note"), lambda value: isinstance(value, str)),
    "state": lambda value: value is None or value in get_args(State),
}
"""Type check of each value of a report."""


def ask_to_stop(folder: Path) -> None:
    """Request a run to stop after its current step, which it saves.

    Raises: AnalysisError if no run is in progress, or its folder cannot be written.
    """
    progress = read_progress(folder)
    if progress is None or progress.state != "running":
        raise AnalysisError(f"No run is in progress in {folder}, so there is nothing to stop.")
    try:
        (folder / STOP).touch()
    except OSError as error:
        raise AnalysisError(
            f"The run in {folder} cannot be stopped ({error.strerror or error}). Check the free space there, and try "
            "again."
        ) from None


def delete_run(name: str) -> None:
    """Delete a run in `checkpoints_folder()` with all of its checkpoints. Its folder must be directly in that folder
    and contain a run's report.

    Raises: AnalysisError if there is no such run, it is in progress, or its folder cannot be removed.
    """
    run = next((run for run in list_runs() if run.name == name and not run.folder.is_symlink()), None)
    if run is None:
        raise AnalysisError(f"{name!r} is not a run that was trained here, so nothing was deleted.")
    if run.progress.state == "running":
        raise AnalysisError(f"{name} is being trained now, so it cannot be deleted. Stop it first.")
    try:
        shutil.rmtree(run.folder)
    except OSError as error:
        raise AnalysisError(
            f"{run.folder} cannot be deleted ({error.strerror or error}). Remove the folder by hand."
        ) from None


def saved_checkpoints(folder: Path) -> tuple[Path, ...]:
    """Folders of a run's saved checkpoints, sorted by step."""
    steps = (path for path in folder.glob("checkpoint-*") if SAVED.fullmatch(path.name))
    return tuple(sorted((path for path in steps if (path / "config.json").is_file()), key=_step))


def check_is_saved(name: str) -> None:
    """Raise if a name refers to a run in `checkpoints_folder()`, or to one of its steps, without a checkpoint. No
    checkpoint was found there under this name.

    Raises: CheckpointError with the saved steps.
    """
    run, _, step = name.partition("/")
    folder = checkpoints_folder() / run
    if not os.path.isfile(folder / PROGRESS) or not (step == "" or SAVED.fullmatch(step)):
        return
    problem = f"{run} has no {step}" if step else f"{run} is not finished"
    saved = [_step(path) for path in saved_checkpoints(folder)]
    if not saved:
        raise CheckpointError(f"{problem}, and none of its steps is saved. Continue the run first.")
    steps = f"steps are {', '.join(map(str, saved))}" if len(saved) > 1 else f"step is {saved[0]}"
    raise CheckpointError(f"{problem}; its saved {steps}. Name one, as {run}/checkpoint-{saved[-1]}.")


def run_and_step(name: str) -> tuple[str, int | None]:
    """The run that the name of a checkpoint names, and the step; None for the finished run itself.

    The name need not be that of a run: `bundled` gives `bundled`.
    """
    run, _, saved = name.rpartition("/")
    return (run, int(saved.removeprefix("checkpoint-"))) if run and SAVED.fullmatch(saved) else (name, None)


def steps_of_one_run(names: Sequence[str], runs: Sequence[SavedRun]) -> list[int] | None:
    """Training steps of checkpoints that follow each other in one run; None for any other checkpoints. They are at
    least two; the one that a run began with is its step 0, a finished run its last step."""
    for run in runs:
        steps = [_step_in(run, name) for name in names]
        known = [step for step in steps if step is not None]
        if len(known) == len(names) > 1 and known == sorted(set(known)):
            return known
    return None


def _step_in(run: SavedRun, name: str) -> int | None:
    """Step of a checkpoint in a run; None if it is not of that run."""
    if name == run.progress.checkpoint:
        return 0
    name_of_run, step = run_and_step(name)
    is_last = step is None and run.progress.state == "finished"
    return None if name_of_run != run.name else run.progress.step if is_last else step


def may_be_a_run(name: str) -> bool:
    """Whether a name has the form of that of a run (`movie-reviews`) or of one of its steps
    (`movie-reviews/checkpoint-94`); some ids of the hub have it, too.
    """
    _, slash, step = name.partition("/")
    return not slash or SAVED.fullmatch(step) is not None


def list_runs(folder: Path | None = None) -> tuple[SavedRun, ...]:
    """All runs in a folder, sorted by name. By default those in `checkpoints_folder()`; the folder may not exist."""
    folder = checkpoints_folder() if folder is None else folder
    runs = ((path, read_progress(path)) for path in sorted(folder.glob("*")))
    return tuple(SavedRun(path.name, path, progress) for path, progress in runs if progress is not None)


def find_run(name: str) -> SavedRun:
    """A run by its folder, or by its name in `checkpoints_folder()`.

    Raises: AnalysisError if there is none.
    """
    for folder in (Path(os.path.expanduser(name)), checkpoints_folder() / name):
        progress = read_progress(folder)
        if progress is not None:
            return SavedRun(folder.resolve().name, folder.resolve(), progress)
    raise AnalysisError(
        f"{name} is not a fine-tuning run: there is no {PROGRESS} in it. Name the folder that `finetune` wrote, or a "
        f"run in {checkpoints_folder()}."
    )


def _step(saved: Path) -> int:
    return int(saved.name.removeprefix("checkpoint-"))


def is_running(pid: int, created: float) -> bool:
    """Whether a process is still running, and not a later one with the same process id. It was created so many seconds
    after 1970."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - created) < SAME_START
    except (psutil.NoSuchProcess, psutil.AccessDenied, ValueError, OverflowError):
        return False
