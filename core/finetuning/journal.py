"""Writes a run's folder: its plan, progress reports, and checks before resuming."""

import errno
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import psutil
from safetensors import SafetensorError

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.saved_runs import (
    PROGRESS,
    STOP,
    Progress,
    State,
    Validation,
    ValidationResult,
    read_progress,
)
from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.finetuning.data import TrainingData
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.json_values import parse_json

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
"""Fields of a plan that must be unchanged when a run is resumed -> description; names of files may change."""


class AnyPlan(Protocol):
    """Plan of a run of any kind: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def checkpoint(self) -> str:
        """Name of the checkpoint that the run begins with; empty if it begins with random weights."""

    @property
    def settings(self) -> Any:
        """Settings of the run, a dataclass."""


@dataclass(frozen=True)
class Plan:
    """Plan of a fine-tuning run."""

    checkpoint: str
    """Name of the checkpoint that is fine-tuned."""
    fingerprint: str
    data: str
    """Name of the file with the texts."""
    data_sha256: str
    held_out_sha256: str | None
    """Digest of the validation file; None for a validation split of the data."""
    text_columns: tuple[str, ...]
    label_column: str
    task: str
    classes: tuple[str, ...]
    settings: TrainingSettings


def plan_of(
    files: CheckpointFiles, data: TrainingData, held_out: TrainingData | None, settings: TrainingSettings
) -> Plan:
    """Plan of a run from checkpoint, training data, optional validation data, and settings."""
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


@dataclass(frozen=True)
class WrongText:
    """A validation text, with its label and the predicted one."""

    segments: tuple[str, ...]
    label: str
    predicted: str


@contextmanager
def saving_in(folder: Path) -> Iterator[None]:
    """Context for writing to a run's folder.

    Raises: AnalysisError if writing fails.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise AnalysisError(f"Nothing can be saved in {folder} ({why}). Free some space on the disk.") from error


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, whole or not at all; a line that was left incomplete before is ended first.

    Raises: OSError.
    """
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        content = (b"" if file.read(1) in (b"", b"\n") else b"\n") + line.encode() + b"\n"
        if file.write(content) < len(content):
            file.truncate(end)  # otherwise the next line would be appended to this one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Journal:
    """Writes a run's reports, each line atomically.

    As a context manager it records runs that end by an AnalysisError or from the keyboard. Each report raises
    AnalysisError if it cannot be written.

    Attributes:
        folder: folder of the run.
        step: the last reported step; initially the step from which the run starts.
    """

    def __init__(self, folder: Path, checkpoint: str, step: int = 0, message: str = "") -> None:
        """Start reporting, in a folder that is created if necessary.

        Args:
            checkpoint: name of the checkpoint that is fine-tuned.
            step: the saved step from which the run is resumed, or 0.
            message: first activity.

        Raises: AnalysisError for a folder that cannot be written.
        """
        self.folder, self.step = folder, step
        self._path = folder / PROGRESS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / STOP).unlink(missing_ok=True)
        except OSError as error:
            raise AnalysisError(
                f"{shortened(str(folder))} cannot be written ({error.strerror}). Choose another folder."
            ) from None
        process = {"pid": os.getpid(), "created": psutil.Process().create_time()}
        self._write("start", step=step, steps=0, checkpoint=checkpoint, message=message, **process)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        with suppress(AnalysisError):  # a full disk: the original error still reaches the reader
            if isinstance(error, AnalysisError):
                self.end("failed", str(error))
            elif isinstance(error, KeyboardInterrupt):
                self.end("stopped")

    def doing(self, message: str) -> None:
        """Report an activity before training."""
        self._write("message", message=message)

    def note(self, note: str) -> None:
        """Report a remark for the user."""
        self._write("note", note=note)

    def validation(self, validation: Validation) -> None:
        """Report the validation texts."""
        self._write("validation", **asdict(validation))

    def training(self, steps: int) -> None:
        """Report the start of training, from which the remaining time is estimated."""
        self._steps, self._from, self._began = steps, self.step, time.monotonic()
        self._write("steps", steps=steps, message="")

    def loss(self, step: int, loss: float) -> None:
        """Report the mean training loss since the last report."""
        self.step = step
        per_step = (time.monotonic() - self._began) / max(step - self._from, 1)
        self._write("loss", step=step, loss=loss, seconds_left=round(per_step * (self._steps - step), 1))

    def held_out(self, measured: ValidationResult) -> None:
        """Report the validation performance."""
        self._write("held out", **asdict(measured))

    def end(self, state: State, message: str = "") -> None:
        """Report the end of the run."""
        self._write("end", state=state, message=message, seconds_left=None)

    def progress(self) -> Progress:
        """What was reported so far.

        Raises: AnalysisError if the reports were deleted.
        """
        progress = read_progress(self.folder)
        if progress is None:
            raise AnalysisError(f"The reports in {self.folder} were deleted. Start again in another folder.")
        return progress

    def stop_asked(self) -> bool:
        """Whether a stop was requested; resets the request."""
        is_requested = (self.folder / STOP).exists()
        (self.folder / STOP).unlink(missing_ok=True)
        return is_requested

    def _write(self, event: str, **values: object) -> None:
        with saving_in(self.folder):
            append_line(self._path, json.dumps({"event": event} | values))


def open_run(folder: Path, plan: AnyPlan, *, resume: bool) -> Journal:
    """Start a run in a new folder, or resume the run in it from its last saved step.

    Raises: see saved_step and check_agrees.
    """
    step = saved_step(folder, resume=resume)
    if step:
        check_agrees(folder, plan)
    message = "Loading the checkpoint." if plan.checkpoint else "Loading the programs that train."
    journal = Journal(folder, plan.checkpoint, step, message=message)
    if not step:
        record(folder, plan)
    return journal


def saved_step(folder: Path, *, resume: bool) -> int:
    """The step from which a run starts: its last saved step, or 0 for a new run or one without saved steps.

    Raises: AnalysisError for a folder with other contents, a run in progress, a finished run, or a run with saved steps
    without `resume`.
    """
    progress = read_progress(folder)
    if progress is None:
        if resume:
            raise AnalysisError(f"There is no run in {folder} to resume. Start one without --resume.")
        if os.path.exists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise AnalysisError(
                f"{folder} contains something other than a run. Choose a folder that does not exist yet."
            )
        return 0
    if progress.state == "running":
        raise AnalysisError(f"The run in {folder} is in progress. Wait for its end, or stop it.")
    if progress.state == "finished":
        raise AnalysisError(f"The run in {folder} finished with step {progress.step:,}. Choose another folder.")
    if progress.saved and not resume:
        raise AnalysisError(
            f"The run in {folder} has saved step {progress.saved[-1]:,}. Add --resume to continue, or choose another "
            "folder."
        )
    return max(progress.saved, default=0)


def check_agrees(folder: Path, plan: AnyPlan) -> None:
    """Raise if a run in a folder has a different plan.

    Raises: AnalysisError with the first difference.
    """
    recorded, planned = read_record(folder), json.loads(json.dumps(asdict(plan)))
    for field, description in MUST_AGREE.items():
        if recorded.get(field) != planned.get(field):
            raise AnalysisError(
                f"The run in {folder} began with other values for {description}: {recorded.get(field)!r}, now "
                f"{planned.get(field)!r}. Use the same, or choose another folder."
            )
    for field, value in planned["settings"].items():
        recorded_value = recorded.get("settings", {}).get(field)
        if recorded_value != value:
            raise AnalysisError(
                f"The run in {folder} began with {field} {recorded_value} and cannot continue with {value}. Use the "
                "same, or choose another folder."
            )


def record(folder: Path, plan: AnyPlan) -> None:
    """Write a run's plan and package versions to its training.json."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()}
    _write_record(folder, asdict(plan) | {"versions": versions})


def record_result(folder: Path, **result: object) -> None:
    """Add the result to a run's training.json."""
    _write_record(folder, read_record(folder) | {"result": result})


def read_record(folder: Path) -> dict[str, Any]:
    """A run's training.json.

    Raises: AnalysisError if it cannot be read.
    """
    try:
        record = parse_json((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{folder / RECORD} cannot be read ({error}). Choose another folder.") from None
    if not isinstance(record, dict):
        raise AnalysisError(f"{folder / RECORD} does not describe a run. Choose another folder.")
    return record


def wrong_texts(record: Mapping[str, Any]) -> tuple[WrongText, ...]:
    """The wrong answers in the result of a run; none for a run of an earlier version, or where they are invalid."""
    try:
        entries = record["result"]["wrong"]
        wrong = tuple(WrongText(tuple(entry["segments"]), entry["label"], entry["predicted"]) for entry in entries)
    except (KeyError, TypeError):
        return ()
    strings = [text for entry in wrong for text in (*entry.segments, entry.label, entry.predicted)]
    is_valid = {len(entry.segments) for entry in wrong} in ({1}, {2}) and all(isinstance(text, str) for text in strings)
    return wrong if is_valid else ()


def _write_record(folder: Path, content: dict[str, Any]) -> None:
    temporary = folder / f"{RECORD}.part"
    with saving_in(folder):
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(folder / RECORD)
