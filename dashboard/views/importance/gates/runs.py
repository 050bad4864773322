"""Sweeps of penalties, in folders that hold their settings and progress, and their training in a separate process."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import Task
from attention_sieve.core.importance.gates.settings import GateHistory, GateSettings, read_history
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.running import Progress, read_progress
from attention_sieve.dashboard import runs, trainings
from attention_sieve.dashboard.views.importance.gates import wording
from attention_sieve.dashboard.views.training.folders import data_folder

RECORD: Final = "sweep.json"
KEY_CHARACTERS: Final = 12
_lock = Lock()


@dataclass(frozen=True)
class PenaltySweep:
    """Gates to be trained with several penalties."""

    checkpoint: str
    fingerprint: str
    """Fingerprint of the checkpoint's files."""
    data: Path
    """The table, as it is kept for runs; its folder is named by its content."""
    text_columns: tuple[str, ...]
    label_column: str
    task: Task
    settings: GateSettings
    """Settings of all runs; the penalty is set per run."""
    penalties: tuple[float, ...]
    """In increasing order."""

    @property
    def folder(self) -> Path:
        """Folder named by everything but the penalties, so that further penalties join the same sweep."""
        record = asdict(replace(self, penalties=(), settings=replace(self.settings, penalty=0.0)))
        identity = {**record, "checkpoint": "", "data": "/".join(self.data.parts[-2:])}
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return sweeps_folder() / digest[:KEY_CHARACTERS]

    def run_folder(self, penalty: float) -> Path:
        """Folder of the run with one penalty, named as by `python -m attention_sieve gates`."""
        return self.folder / f"penalty-{penalty:g}"

    def progress(self, penalty: float) -> Progress | None:
        """Progress of the run with one penalty; None before it has started."""
        return read_progress(self.run_folder(penalty))

    def history(self, penalty: float, removed: tuple[Head, ...]) -> GateHistory | None:
        """Gates over the steps of the run with one penalty so far; None before its first step."""
        return read_history(self.run_folder(penalty), removed)

    @property
    def finished(self) -> tuple[float, ...]:
        """Penalties whose runs have done all their steps."""
        states = {penalty: self.progress(penalty) for penalty in self.penalties}
        return tuple(
            penalty for penalty, progress in states.items() if progress is not None and progress.state == "finished"
        )

    @property
    def begun(self) -> Progress | None:
        """Progress of the run that has begun and is not finished; None where there is none."""
        all_runs = (self.progress(penalty) for penalty in self.penalties)
        return next((run for run in all_runs if run is not None and run.state != "finished"), None)

    @property
    def n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def sweeps_folder() -> Path:
    """Folder of all sweeps; it may not exist."""
    return program_folder() / "gates"


def joined(sweep: PenaltySweep) -> PenaltySweep:
    """The same sweep, with the penalties of the one in its folder, if any, added."""
    saved = _read(sweep.folder)
    penalties = {*sweep.penalties, *(saved.penalties if saved else ())}
    return replace(sweep, penalties=tuple(sorted(penalties)))


def keep(sweep: PenaltySweep) -> None:
    """Save the settings of a sweep, so that it can be resumed.

    Raises: AnalysisError if they cannot be written.
    """
    record = asdict(sweep) | {"data": str(sweep.data)}
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=sweep.folder, delete=False, encoding="utf-8") as temporary:
            json.dump(record, temporary, indent=2)
        os.replace(temporary.name, sweep.folder / RECORD)
    except OSError as error:
        raise AnalysisError(wording.not_written(str(sweep.folder), error.strerror or str(error))) from None


def delete(sweep: PenaltySweep) -> None:
    """Delete a sweep with all its runs.

    Raises: AnalysisError if a file cannot be removed.
    """
    try:
        shutil.rmtree(sweep.folder)
    except OSError as error:
        raise AnalysisError(wording.not_deleted(str(sweep.folder), error.strerror or str(error))) from None


def all_sweeps() -> Iterator[PenaltySweep]:
    """All saved sweeps, in the order of their folders' names."""
    for folder in sorted(sweeps_folder().glob("*")):
        sweep = _read(folder)
        if sweep is not None:
            yield sweep


def sweeps_of(files: CheckpointFiles, sha256: str, columns: tuple[str, ...], label: str) -> list[PenaltySweep]:
    """Sweeps of a checkpoint over a table, the latest first."""
    identity = (files.fingerprint, data_folder(sha256).name, columns, label)
    matching = [
        sweep
        for sweep in all_sweeps()
        if (sweep.fingerprint, sweep.data.parent.name, sweep.text_columns, sweep.label_column) == identity
    ]
    return sorted(matching, key=lambda sweep: -(sweep.folder / RECORD).stat().st_mtime_ns)


def _read(folder: Path) -> PenaltySweep | None:
    """The sweep saved in a folder; None if the record is damaged or from another version."""
    try:
        sweep = typed_json((folder / RECORD).read_bytes(), PenaltySweep)
    except (OSError, ValueError, AnalysisError):
        return None
    return sweep if sweep.folder == folder else None


def start(sweep: PenaltySweep, device: str = "auto") -> PenaltySweep:
    """Train the runs of a sweep that are not finished, and resume those that have started.

    Returns: the sweep, with earlier penalties of the same sweep added.
    Raises: AnalysisError if a training is running already, or if the sweep cannot be written or started.
    """
    with _lock:
        if (training := trainings.running()) is not None:
            raise AnalysisError(wording.finetuning_is_on(training))
        if running() is not None:
            raise AnalysisError(wording.ONE_AT_A_TIME)
        merged = joined(sweep)
        keep(merged)
        options = gate_options(merged, str(merged.data), str(merged.folder))
        runs.begin(merged.folder, ("gates", *options, f"--device={device}", "--resume"))
        return merged


def running() -> PenaltySweep | None:
    """The sweep that is running, whichever program started it."""
    return next((sweep for sweep in all_sweeps() if look(sweep).state == "running"), None)


def look(sweep: PenaltySweep) -> Progress:
    """Progress of a sweep, in penalties. The folder of an earlier version says it of each penalty alone."""
    progress = runs.look(sweep.folder) or sweep.begun or Progress("left")
    if progress.state != "running" and len(sweep.finished) == len(sweep.penalties):
        return replace(progress, state="finished")
    # Penalties that joined a finished sweep are still to be trained.
    return replace(progress, state="left") if progress.state == "finished" else progress


def gate_options(sweep: PenaltySweep, data: str, output: str) -> list[str]:
    """A sweep as options of `python -m attention_sieve gates`; each value is joined to its option, so that it cannot be
    read as an option."""
    values: dict[str, object] = {
        "checkpoint": sweep.checkpoint,
        "data": data,
        "text-columns": ",".join(sweep.text_columns),
        "label-column": sweep.label_column,
        "task": sweep.task,
        "output": output,
        "penalty": ",".join(f"{penalty:g}" for penalty in sweep.penalties),
        "attention": sweep.settings.kind,
    }
    return [*runs.options_of(values), *given_options(sweep.settings, GateSettings())]
