"""Fine-tuning runs of this machine, their data, and names of new checkpoints."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from attention_sieve.core.checkpoints.find import BUNDLED
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.checkpoints.saved_runs import SavedRun, list_runs
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import NAME_OF_A_TABLE, Task
from attention_sieve.core.finetuning.journal import WrongText, read_record, wrong_texts
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.running import Progress
from attention_sieve.dashboard.public import check_not_public
from attention_sieve.dashboard.views.training import wording

LONGEST_NAME: Final = 80
SHA_CHARACTERS: Final = 12
"""Characters of the SHA-256 of the data that name its folder."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class RunRequest:
    name: str
    checkpoint: str
    data: Path
    text_columns: tuple[str, ...]
    label_column: str
    task: Task | None
    """None to decide by the labels."""
    settings: TrainingSettings


@dataclass(frozen=True)
class RunSummary:
    """A finished, running or interrupted fine-tuning run of this machine."""

    name: str
    checkpoint: str
    progress: Progress
    n_bytes: int
    """Size on disk, with its saved steps."""
    task: Task | None
    """None, like all fields below, if its program ended before writing it."""
    data_name: str | None
    n_texts: int | None
    """Number of training and validation texts, known at the end."""
    wrong: tuple[WrongText, ...]
    """The surest wrong answers on its validation texts."""
    request: RunRequest | None
    """Request with which to resume it; None also if its data is missing."""


def made_here() -> tuple[RunSummary, ...]:
    return tuple(_summary(run) for run in list_runs() if run.is_fine_tuning)


def keep_data(name: str, content: bytes) -> Path:
    """Store an uploaded table where a run can read it, also when resumed.

    Args:
        name: of the uploaded file; only safe characters are kept.

    Returns: its path; the folder is named after the content, so that equal files are stored once.
    Raises: AnalysisError if it cannot be written.
    """
    return keep_file(data_folder(sha256(content).hexdigest()) / "".join(_safe(name)), content)


def keep_file(path: Path, content: bytes) -> Path:
    """Write a file atomically; an existing file is not changed.

    Returns: its path.
    Raises: AnalysisError if it cannot be written, and on a public server.
    """
    check_not_public()
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as temporary:
                temporary.write(content)
            os.replace(temporary.name, path)
    except OSError as error:
        raise AnalysisError(wording.not_written(str(folder), error.strerror or str(error))) from None
    return path


def free_name(file_name: str) -> str:
    name, _ = _safe(file_name)
    number, candidate = 1, name
    while _is_taken(candidate):
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def check_name(name: str) -> None:
    """Check the name of a new checkpoint.

    Raises: AnalysisError for an invalid or existing name.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise AnalysisError(wording.bad_name(name, LONGEST_NAME))
    if _is_taken(name):
        raise AnalysisError(wording.name_taken(name, str(checkpoints_folder())))


def _is_taken(name: str) -> bool:
    return name == BUNDLED or (checkpoints_folder() / name).exists()


def _safe(file_name: str) -> tuple[str, str]:
    """Name and suffix of a table, without folders and unsafe characters."""
    suffix = NAME_OF_A_TABLE.search(file_name)
    return safe_name(file_name[: suffix.start() if suffix else None]), suffix[0].lower() if suffix else ""


def safe_name(file_name: str) -> str:
    """A file name without folders and unsafe characters."""
    name = PurePosixPath(file_name.replace("\\", "/")).name
    return _NOT_IN_NAMES.sub("-", name).strip("-.")[: LONGEST_NAME // 2] or "table"


def data_folder(sha: str) -> Path:
    return program_folder() / "data" / sha[:SHA_CHARACTERS]


def _summary(run: SavedRun) -> RunSummary:
    record = _record(run.folder)
    result = record.get("result") or {}
    return RunSummary(
        name=run.name,
        checkpoint=run.progress.checkpoint,
        progress=run.progress,
        n_bytes=sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file()),
        task=record.get("task"),
        data_name=record.get("data"),
        n_texts=result["texts"] + result["texts_held_out"] if "texts" in result else None,
        wrong=wrong_texts(record),
        request=_request(run.name, record),
    )


def _record(folder: Path) -> dict[str, Any]:
    """The record that a run wrote about itself; empty if missing or invalid."""
    try:
        return read_record(folder)
    except AnalysisError:
        return {}


def _request(name: str, record: Mapping[str, Any]) -> RunRequest | None:
    try:
        request = RunRequest(
            name=name,
            checkpoint=record["checkpoint"],
            data=data_folder(record["data_sha256"]) / record["data"],
            text_columns=tuple(record["text_columns"]),
            label_column=record["label_column"],
            task=record["task"],
            settings=TrainingSettings(**record["settings"]),
        )
    except (KeyError, TypeError, AnalysisError):
        return None  # written by another version, or invalid: it cannot be resumed
    return request if request.data.is_file() else None
