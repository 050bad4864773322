"""What was fine-tuned here, the data it learned from, and the names that new checkpoints can have."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from core.checkpoints.find import BUNDLED
from core.checkpoints.folders import checkpoints_folder, program_folder
from core.checkpoints.saved_runs import Progress, SavedRun, list_runs
from core.errors import AnalysisError
from core.finetuning.data import NAME_OF_A_TABLE, Task
from core.finetuning.journal import RECORD
from core.finetuning.settings import TrainingSettings
from core.json_values import parse_json
from dashboard.public import check_not_public
from dashboard.views.finetune import wording

LONGEST_NAME: Final = 80
SHA_CHARACTERS: Final = 12
"""Of the data's SHA-256: names the folder in which it is kept."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Asked:
    """What a run is asked to do."""

    name: str
    """Of the new checkpoint."""
    checkpoint: str
    """The one to start from."""
    data: Path
    text_columns: tuple[str, ...]
    label_column: str
    task: Task | None
    """None decides by the labels."""
    settings: TrainingSettings


@dataclass(frozen=True)
class Made:
    """A checkpoint that was fine-tuned here, or that is to be."""

    name: str
    checkpoint: str
    """The one it was made from."""
    progress: Progress
    n_bytes: int
    """On disk, with its saved steps."""
    task: Task | None
    """None, as all that follows, where its program did not come so far as to write it."""
    data_name: str | None
    n_texts: int | None
    """Learned from and held out; known at the end."""
    asked: Asked | None
    """What to ask again to go on; None also where its data is not kept here."""


def made_here() -> tuple[Made, ...]:
    """All that was fine-tuned here, by name."""
    return tuple(_made(run) for run in list_runs())


def keep_data(name: str, content: bytes) -> Path:
    """Write an uploaded table where a run finds it, also when it is gone on with.

    Args:
        name: of the file as it was uploaded; only its harmless signs are kept.
        content: its bytes.

    Returns: its path; the folder is named by the content, so that equal files are kept once.
    Raises: AnalysisError where it cannot be written.
    """
    return keep_file(data_folder(sha256(content).hexdigest()) / "".join(_safe(name)), content)


def keep_file(path: Path, content: bytes) -> Path:
    """Write a file that gets its name when it is whole; one that is there stays as it is.

    Returns: its path.
    Raises: AnalysisError where it cannot be written, and on a public server.
    """
    check_not_public()
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as half:
                half.write(content)
            os.replace(half.name, path)
    except OSError as error:
        raise AnalysisError(wording.not_written(str(folder), error.strerror or str(error))) from None
    return path


def free_name(file_name: str) -> str:
    """A name for the checkpoint of a file that no other has yet."""
    name, _ = _safe(file_name)
    number, free = 1, name
    while _is_taken(free):
        number += 1
        free = f"{name}-{number}"
    return free


def check_name(name: str) -> None:
    """Refuse a name that a new checkpoint cannot have.

    Raises: AnalysisError.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise AnalysisError(wording.bad_name(name, LONGEST_NAME))
    if _is_taken(name):
        raise AnalysisError(wording.name_taken(name, str(checkpoints_folder())))


def _is_taken(name: str) -> bool:
    return name == BUNDLED or (checkpoints_folder() / name).exists()


def _safe(file_name: str) -> tuple[str, str]:
    """Name and suffix of a table, without folders and without signs that mean something to a system."""
    suffix = NAME_OF_A_TABLE.search(file_name)
    return safe_name(file_name[: suffix.start() if suffix else None]), suffix[0].lower() if suffix else ""


def safe_name(written: str) -> str:
    """A file's name without folders and without signs that mean something to a system."""
    name = PurePosixPath(written.replace("\\", "/")).name
    return _NOT_IN_NAMES.sub("-", name).strip("-.")[: LONGEST_NAME // 2] or "table"


def data_folder(sha: str) -> Path:
    """Where a table is kept, by the SHA-256 of its content."""
    return program_folder() / "data" / sha[:SHA_CHARACTERS]


def _made(run: SavedRun) -> Made:
    record = _record(run.folder)
    result = record.get("result") or {}
    return Made(
        name=run.name,
        checkpoint=run.progress.checkpoint,
        progress=run.progress,
        n_bytes=sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file()),
        task=record.get("task"),
        data_name=record.get("data"),
        n_texts=result["texts"] + result["texts_held_out"] if "texts" in result else None,
        asked=_asked(run.name, record),
    )


def _record(folder: Path) -> dict[str, Any]:
    """What a run wrote about itself; nothing where it did not come so far, or somebody spoilt it."""
    try:
        record = parse_json((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _asked(name: str, record: Mapping[str, Any]) -> Asked | None:
    try:
        asked = Asked(
            name=name,
            checkpoint=record["checkpoint"],
            data=data_folder(record["data_sha256"]) / record["data"],
            text_columns=tuple(record["text_columns"]),
            label_column=record["label_column"],
            task=record["task"],
            settings=TrainingSettings(**record["settings"]),
        )
    except (KeyError, TypeError, AnalysisError):
        return None  # written by another version, or spoilt: there is nothing to go on with
    return asked if asked.data.is_file() else None
