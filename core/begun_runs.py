"""Runs that commands have begun, in whatever folder: what each was asked, for a list that shows and continues them."""

import json
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.folders import make_private, program_folder
from attention_sieve.core.json_values import typed_json

LIST: Final = "run list"
"""Folder in the program's folder, with a file for each run."""


@dataclass(frozen=True, kw_only=True)
class BegunRun:
    """A run as its command was given."""

    folder: Path
    command: tuple[str, ...]
    """As given to `python -m attention_sieve`, its name first."""
    working_folder: Path
    """On which relative paths in the command depend."""


def remember_run(folder: Path, command: tuple[str, ...]) -> None:
    """Put a run on the list, in the place of an earlier one in its folder, and take off those whose folder is gone.

    Does nothing if the list cannot be written: the run is not worse for it.
    """
    run = BegunRun(folder=Path(os.path.abspath(folder)), command=command, working_folder=Path.cwd())
    values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(run).items()}
    listed = program_folder() / LIST
    name = f"{sha256(str(run.folder).encode()).hexdigest()}.json"
    try:
        make_private(program_folder())
        listed.mkdir(exist_ok=True)
        (listed / name).with_suffix(".part").write_text(json.dumps(values), encoding="utf-8")
        (listed / name).with_suffix(".part").replace(listed / name)
        for path in listed.glob("*.json"):
            if path.name != name and ((other := _read(path)) is None or not other.folder.exists()):
                path.unlink(missing_ok=True)
    except OSError:
        return


def begun_runs() -> tuple[BegunRun, ...]:
    """The runs on the list that can be read; one that ended before its first report has no folder, or an empty one."""
    return tuple(run for path in sorted((program_folder() / LIST).glob("*.json")) if (run := _read(path)) is not None)


def _read(path: Path) -> BegunRun | None:
    try:
        return typed_json(path.read_bytes(), BegunRun)
    except (OSError, ValueError):
        return None
