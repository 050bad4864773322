"""What fine-tuning is asked, and how far a run is; needs no torch.

A run's folder holds `training.json` (checkpoint, data, settings, versions, result), `progress.jsonl` (one line a
report), `checkpoint-N/` for each saved step, and at the end the fine-tuned checkpoint itself. A file `stop` in it asks
the run to stop. core.training_data reads the labelled texts, core.training_runs writes the reports.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal

import psutil

from core.errors import AnalysisError, CheckpointError
from core.folders import checkpoints_folder

State = Literal["running", "finished", "stopped", "failed", "left"]
"""`left`: the program that trained has gone without a word."""
PROGRESS: Final = "progress.jsonl"
STOP: Final = "stop"
SAVED: Final = re.compile(r"checkpoint-(\d+)", re.ASCII)
SAME_START: Final = 5.0
"""Seconds by which two readings of a process's start may differ; processes that follow each other on one number do so
by far more."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to fine-tune.

    Raises: AnalysisError for a number out of range.
    """

    epochs: float = 3.0
    learning_rate: float = 5e-5
    batch_size: int = 16
    max_length: int = 128
    """Tokens of a text; longer ones are cut, and how many is said."""
    seed: int = 0
    save_steps: int | None = None
    """Steps between two saved checkpoints; None saves the last only."""
    held_out: float = 0.1
    """Share of the texts kept back to measure accuracy on."""

    def __post_init__(self) -> None:
        _check("number of epochs", self.epochs, 0 < self.epochs <= 1000, "a number above 0, up to 1,000")
        _check("learning rate", self.learning_rate, 0 < self.learning_rate <= 1, "a number above 0, up to 1")
        _check("batch size", self.batch_size, 1 <= self.batch_size <= 4096, "1 to 4,096 texts")
        _check("maximum length", self.max_length, 4 <= self.max_length <= 1 << 20, "4 to 1,048,576 tokens")
        _check("seed", self.seed, 0 <= self.seed < 1 << 32, "a whole number from 0 to 4,294,967,295")
        if self.save_steps is not None:
            _check("number of steps between two checkpoints", self.save_steps, self.save_steps >= 1, "1 or more")
        _check("share held out", self.held_out, 0 < self.held_out < 1, "a share between 0 and 1, such as 0.1")


@dataclass(frozen=True)
class HeldOut:
    """How well a checkpoint does on the texts kept back."""

    step: int
    loss: float
    accuracy: float | None
    """Share of texts with the right class; None for a regression."""
    correlation: float | None
    """Pearson's r with the labels; None for classes, and where either does not vary."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    state: State
    step: int
    steps: int
    """Steps in all; 0 before that is known."""
    seconds_left: float | None
    losses: tuple[tuple[int, float], ...]
    """Step and training loss."""
    held_out: tuple[HeldOut, ...]
    saved: tuple[int, ...]
    """Steps whose checkpoints are kept."""
    message: str
    """Why a run failed, in a sentence; what it is doing where it is not training yet; else empty."""
    checkpoint: str = ""
    """Name of the checkpoint that is fine-tuned."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader should know, such as how many texts were cut."""


@dataclass(frozen=True)
class Run:
    """A run among others."""

    name: str
    """Its folder's; a checkpoint can be found by it where the folder is `checkpoints_folder()`."""
    folder: Path
    progress: Progress

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names by which its checkpoints can be found: its saved steps in order, then, once finished, its own name.

        The finished checkpoint is that of the last step under another name.
        """
        saved = tuple(f"{self.name}/{path.name}" for path in saved_checkpoints(self.folder))
        return (*saved, self.name) if self.progress.state == "finished" else saved


def read_progress(folder: Path) -> Progress | None:
    """How far the run in a folder is; None where there is none.

    A line that is not complete is being written, or was when the program was ended; it is left out.
    """
    latest: dict[str, Any] = {}
    losses: dict[int, float] = {}
    held_out: dict[int, HeldOut] = {}
    notes: list[str] = []
    for line in _lines(folder / PROGRESS):
        match line.pop("event"):
            case "start":  # what a run that goes on had done after its last saved step is done again
                latest = {"state": None}
                losses = {step: loss for step, loss in losses.items() if step <= line["step"]}
                held_out = {step: measured for step, measured in held_out.items() if step <= line["step"]}
                notes = []
            case "loss":
                losses[line["step"]] = line["loss"]
            case "held out":
                held_out[line["step"]] = HeldOut(**line)
            case "note":
                notes.append(line["note"])
        latest |= line
    if not latest:
        return None
    return Progress(
        state=latest["state"] or ("running" if _is_there(latest["pid"], latest["created"]) else "left"),
        step=latest["step"],
        steps=latest["steps"],
        seconds_left=latest.get("seconds_left"),
        losses=tuple(losses.items()),
        held_out=tuple(held_out.values()),
        saved=tuple(_step(path) for path in saved_checkpoints(folder)),
        message=latest["message"],
        checkpoint=latest["checkpoint"],
        notes=tuple(notes),
    )


def ask_to_stop(folder: Path) -> None:
    """Let a run end after its present step, which it saves.

    Raises: AnalysisError where no run is in progress, or its folder cannot be written to.
    """
    progress = read_progress(folder)
    if progress is None or progress.state != "running":
        raise AnalysisError(f"No run is in progress in {folder}, so there is nothing to stop.")
    try:
        (folder / STOP).touch()
    except OSError as error:
        raise AnalysisError(
            f"The run in {folder} cannot be asked to stop ({error.strerror or error}). Make room there, and ask again."
        ) from None


def saved_checkpoints(folder: Path) -> tuple[Path, ...]:
    """Folders of a run's saved checkpoints, in order of steps."""
    found = (path for path in folder.glob("checkpoint-*") if SAVED.fullmatch(path.name))
    return tuple(sorted((path for path in found if (path / "config.json").is_file()), key=_step))


def check_is_saved(name: str) -> None:
    """Refuse a name that is of a run in `checkpoints_folder()`, or of a step of one, and has no checkpoint.

    Args:
        name: one by which no checkpoint was found there.

    Raises: CheckpointError that names the steps that are saved.
    """
    run, _, step = name.partition("/")
    folder = checkpoints_folder() / run
    if not os.path.isfile(folder / PROGRESS) or not (step == "" or SAVED.fullmatch(step)):
        return
    found = f"{run} has no {step}" if step else f"{run} is not finished"
    saved = [_step(path) for path in saved_checkpoints(folder)]
    if not saved:
        raise CheckpointError(f"{found}, and none of its steps is saved. Go on with the run first.")
    steps = f"steps are {', '.join(map(str, saved))}" if len(saved) > 1 else f"step is {saved[0]}"
    raise CheckpointError(f"{found}; its saved {steps}. Name one, as {run}/checkpoint-{saved[-1]}.")


def list_runs(folder: Path | None = None) -> tuple[Run, ...]:
    """Runs whose folders lie in one folder, by name.

    Args:
        folder: None for `checkpoints_folder()`; it need not be there.
    """
    folder = checkpoints_folder() if folder is None else folder
    found = ((path, read_progress(path)) for path in sorted(folder.glob("*")))
    return tuple(Run(path.name, path, progress) for path, progress in found if progress is not None)


def _check(what: str, value: int | float, is_right: bool, expected: str) -> None:
    if not (is_right and isfinite(value)):
        raise AnalysisError(f"The {what} is {value:,}. Give {expected}.")


def _step(saved: Path) -> int:
    return int(saved.name.removeprefix("checkpoint-"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for written in path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else ():
        with suppress(ValueError):  # a line that broke off when the program was ended
            yield json.loads(written)


def _is_there(pid: int, created: float) -> bool:
    """Whether a process still runs, and is not another one that got the same number later."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - created) < SAME_START
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
