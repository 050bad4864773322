"""The writing side of a run's folder: what was asked, one line a report, and what must agree when a run goes on."""

import errno
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from safetensors import SafetensorError

from core.checkpoints import CheckpointFiles
from core.errors import AnalysisError
from core.training import PROGRESS, STOP, HeldOut, State, TrainingSettings, read_progress
from core.training_data import TrainingData

RECORD: Final = "training.json"
PACKAGES: Final = ("torch", "transformers", "accelerate", "safetensors", "tokenizers", "numpy")
MUST_AGREE: Final = {
    "fingerprint": "the checkpoint's files",
    "data_sha256": "the data",
    "held_out_sha256": "the texts held out",
    "text_columns": "the text columns",
    "label_column": "the label column",
    "task": "the task",
}
"""Fields of a plan and what they are called; names of checkpoint and data may change."""


@dataclass(frozen=True)
class Plan:
    """What a run does."""

    checkpoint: str
    """Name of the checkpoint that is fine-tuned."""
    fingerprint: str
    data: str
    """Name of the file with the texts."""
    data_sha256: str
    held_out_sha256: str | None
    """Of the file with the texts held out; None where they are a share of the data."""
    text_columns: tuple[str, ...]
    label_column: str
    task: str
    classes: tuple[str, ...]
    settings: TrainingSettings


def plan_of(
    files: CheckpointFiles, data: TrainingData, held_out: TrainingData | None, settings: TrainingSettings
) -> Plan:
    """What a run does with a checkpoint, its data, other data held out where there are such, and its settings."""
    return Plan(
        checkpoint=files.name,
        fingerprint=files.fingerprint,
        data=data.name,
        data_sha256=data.sha256,
        held_out_sha256=held_out.sha256 if held_out else None,
        text_columns=data.text_columns,
        label_column=data.label_column,
        task=data.task,
        classes=data.classes,
        settings=settings,
    )


@contextmanager
def saving_in(folder: Path) -> Iterator[None]:
    """Whatever is written to a run's folder.

    Raises: AnalysisError where that fails.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise AnalysisError(f"Nothing can be saved in {folder} ({why}). Make room on the disk.") from error


class Journal:
    """Writes a run's reports, each line at once, so that a reader sees it whole or not at all.

    As a context it notes how a run ends that is broken off: by an error that a reader can mend, or from the keyboard.
    Each report raises AnalysisError where it cannot be written.

    Attributes:
        folder: the run's.
        step: the last one reported; at first the one that the run goes on from.
    """

    def __init__(self, folder: Path, checkpoint: str, step: int = 0, message: str = "") -> None:
        """Begin, in a folder that is made where it is not there.

        Args:
            folder: the run's.
            checkpoint: name of the checkpoint that is fine-tuned.
            step: the one that is saved already.
            message: what is done first.

        Raises: AnalysisError for a folder that cannot be written.
        """
        self.folder, self.step = folder, step
        self._path = folder / PROGRESS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / STOP).unlink(missing_ok=True)
            if self._path.is_file() and not self._path.read_bytes().endswith(b"\n"):
                self._append("\n")  # the last line broke off
        except OSError as error:
            raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Name another folder.") from None
        process = {"pid": os.getpid(), "created": psutil.Process().create_time()}
        self._write("start", step=step, steps=0, checkpoint=checkpoint, message=message, **process)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        with suppress(AnalysisError):  # a disk without room for this line: the error itself goes on to the reader
            if isinstance(error, AnalysisError):
                self.end("failed", str(error))
            elif isinstance(error, KeyboardInterrupt):
                self.end("stopped")

    def doing(self, message: str) -> None:
        """What is done before training."""
        self._write("message", message=message)

    def note(self, note: str) -> None:
        """What a reader should know about the run."""
        self._write("note", note=note)

    def training(self, steps: int) -> None:
        """Training begins; the time left is reckoned from now on."""
        self._steps, self._from, self._began = steps, self.step, time.monotonic()
        self._write("steps", steps=steps, message="")

    def loss(self, step: int, loss: float) -> None:
        """Mean training loss since the last report."""
        self.step = step
        per_step = (time.monotonic() - self._began) / max(step - self._from, 1)
        self._write("loss", step=step, loss=loss, seconds_left=round(per_step * (self._steps - step), 1))

    def held_out(self, measured: HeldOut) -> None:
        """How well the checkpoint does now."""
        self._write("held out", **asdict(measured))

    def end(self, state: State, message: str = "") -> None:
        """The run is over, or goes on another time."""
        self._write("end", state=state, message=message, seconds_left=None)

    def stop_asked(self) -> bool:
        """Whether somebody asked to stop; answered once."""
        asked = (self.folder / STOP).exists()
        (self.folder / STOP).unlink(missing_ok=True)
        return asked

    def _write(self, event: str, **values: object) -> None:
        self._append(json.dumps({"event": event} | values) + "\n")

    def _append(self, line: str) -> None:
        content = line.encode()
        with saving_in(self.folder), self._path.open("ab", buffering=0) as file:
            before = file.tell()
            if file.write(content) < len(content):
                file.truncate(before)  # or the next line would be the end of this one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def open_run(folder: Path, plan: Plan, *, resume: bool) -> Journal:
    """Begin a run in a new folder, or go on with the one in it from its last saved step.

    Raises: see saved_step and check_agrees.
    """
    step = saved_step(folder, resume=resume)
    if step:
        check_agrees(folder, plan)
    journal = Journal(folder, plan.checkpoint, step, message="Loading the checkpoint.")
    if not step:
        record(folder, plan)
    return journal


def saved_step(folder: Path, *, resume: bool) -> int:
    """The step that a run goes on from; 0 where it begins, which a run that saved no step does again.

    Raises: AnalysisError for a folder with anything else in it, a run in progress, a finished one, and one with a saved
    step that was not asked to go on.
    """
    progress = read_progress(folder)
    if progress is None:
        if resume:
            raise AnalysisError(f"There is no run in {folder} to go on with. Begin one without --resume.")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise AnalysisError(f"{folder} holds something else than a run. Name a folder that is not there yet.")
        return 0
    if progress.state == "running":
        raise AnalysisError(f"The run in {folder} is in progress. Wait for its end, or stop it.")
    if progress.state == "finished":
        raise AnalysisError(f"The run in {folder} finished with step {progress.step:,}. Name another folder.")
    if progress.saved and not resume:
        raise AnalysisError(
            f"The run in {folder} has saved step {progress.saved[-1]:,}. Go on with --resume, or name another folder."
        )
    return max(progress.saved, default=0)


def check_agrees(folder: Path, plan: Plan) -> None:
    """Refuse to go on with a run that was asked something else.

    Raises: AnalysisError that names the first difference.
    """
    before, now = _read_record(folder), json.loads(json.dumps(asdict(plan)))
    for field, what in MUST_AGREE.items():
        if before.get(field) != now[field]:
            raise AnalysisError(
                f"The run in {folder} began with other values for {what}: {before.get(field)!r}, now {now[field]!r}. "
                "Give the same, or name another folder."
            )
    for field, value in now["settings"].items():
        began = before.get("settings", {}).get(field)
        if began != value:
            raise AnalysisError(
                f"The run in {folder} began with {field} {began} and is to go on with {value}. Give the same, or name "
                "another folder."
            )


def record(folder: Path, plan: Plan) -> None:
    """Write what a run does, and with which versions, to its training.json."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()}
    _write_record(folder, asdict(plan) | {"versions": versions})


def record_result(folder: Path, **result: object) -> None:
    """Add what came out to a run's training.json."""
    _write_record(folder, _read_record(folder) | {"result": result})


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{folder / RECORD} cannot be read ({error}). Name another folder.") from None
    if not isinstance(found, dict):
        raise AnalysisError(f"{folder / RECORD} does not tell what the run does. Name another folder.")
    return found


def _write_record(folder: Path, content: dict[str, Any]) -> None:
    part = folder / f"{RECORD}.part"
    with saving_in(folder):
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(folder / RECORD)
