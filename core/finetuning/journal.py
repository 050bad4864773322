"""What a training was planned with and what came of it, and the checks before one is resumed."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import TrainingData
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.json_values import parse_json
from attention_sieve.core.running import Journal, check_ended, read_progress, saving_in

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


def open_run(folder: Path, plan: AnyPlan, *, resume: bool, is_wanted: Callable[[], bool] = lambda: True) -> Journal:
    """Start a run in a new folder, or resume the run in it from its last saved step; `is_wanted` as of Journal.

    Raises: see saved_step and check_agrees.
    """
    step = saved_step(folder, resume=resume)
    if step:
        check_agrees(folder, plan)
    message = "Loading the checkpoint." if plan.checkpoint else "Loading the programs that train."
    journal = Journal(folder, plan.checkpoint, step, message=message, is_wanted=is_wanted)
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
    check_ended(folder)
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
