"""Training of gates in a separate process: one sweep at a time, penalty by penalty; its folders hold the progress."""

import atexit
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.checkpoints.saved_runs import STOP, Progress, State, ask_to_stop
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.gates.settings import GateSettings
from attention_sieve.dashboard.views.finetune import programs
from attention_sieve.dashboard.views.finetune import runs as training_runs
from attention_sieve.dashboard.views.finetune.programs import Program
from attention_sieve.dashboard.views.importance.gates import wording
from attention_sieve.dashboard.views.importance.gates.sweeps import PenaltySweep, all_sweeps, joined, keep

SETTINGS: Final = tuple(
    field.name for field in fields(GateSettings) if field.name not in ("penalty", "kind", "with_weights")
)
_lock = Lock()
_programs: Final[dict[Path, Program]] = {}
"""The processes that this program started, by the folder of their sweep."""


@dataclass(frozen=True)
class Now:
    """Progress of a sweep."""

    state: State
    penalty: float | None
    """Of the current run, or of the one that the sweep ended in; None before the first run."""
    number: int
    """Number of this run, counted from 1."""
    progress: Progress | None
    """Progress of this run."""
    message: str = ""
    """Why the sweep failed."""


def start(sweep: PenaltySweep, device: str = "auto") -> PenaltySweep:
    """Train the runs of a sweep that are not finished, and resume those that have started.

    Returns: the sweep, with earlier penalties of the same sweep added.
    Raises: AnalysisError if a training is running already, or if the sweep cannot be written or started.
    """
    with _lock:
        if (training := training_runs.running()) is not None:
            raise AnalysisError(wording.finetuning_is_on(training.name))
        if running() is not None:
            raise AnalysisError(wording.ONE_AT_A_TIME)
        merged = joined(sweep)
        keep(merged)
        if (previous := _programs.pop(merged.folder, None)) is not None:
            previous.errors.close()
        options = gate_options(merged, str(merged.data), str(merged.folder))
        _programs[merged.folder] = programs.begin(("gates", *options, f"--device={device}", "--resume"))
        return merged


def stop(sweep: PenaltySweep) -> None:
    """Stop a sweep after its current step, which is saved; one that has not trained yet ends at once."""
    penalty = look(sweep).penalty
    try:
        if penalty is None:
            raise AnalysisError(wording.ONE_AT_A_TIME)
        ask_to_stop(sweep.run_folder(penalty))
    except AnalysisError:
        if sweep.folder in _programs:
            _programs[sweep.folder].process.terminate()


def is_stopping(sweep: PenaltySweep) -> bool:
    """Whether a sweep was asked to stop."""
    return any((sweep.run_folder(penalty) / STOP).exists() for penalty in sweep.penalties)


def running() -> PenaltySweep | None:
    """The sweep that is running, whichever program started it."""
    return next((sweep for sweep in all_sweeps() if look(sweep).state == "running"), None)


def look(sweep: PenaltySweep) -> Now:
    """Progress of a sweep, from its folders and, if this program started it, from its process."""
    started = {penalty: run for penalty in sweep.penalties if (run := sweep.progress(penalty)) is not None}
    unfinished = {penalty: run for penalty, run in started.items() if run.state != "finished"}
    active = [penalty for penalty, run in unfinished.items() if run.state == "running"]
    penalty = next(iter((*active, *unfinished, *reversed(started))), None)
    progress = None if penalty is None else started[penalty]
    state = _state(sweep, progress, len(started) - len(unfinished))
    number = 1 if penalty is None else sweep.penalties.index(penalty) + 1
    message = progress.message if progress is not None and state == "failed" else ""
    status = Now(state, penalty, number, progress, message)
    program = _programs.get(sweep.folder)
    code = 0 if program is None else program.process.poll()
    if code is None:
        # Until a resumed run writes its first line, the last line is that of the run before.
        return replace(status, state="running", progress=progress if active else None, message="")
    if program is not None and code > 0:
        return replace(status, state="failed", message=program.reason(code))
    return status


def _state(sweep: PenaltySweep, progress: Progress | None, n_finished: int) -> State:
    if n_finished == len(sweep.penalties):
        return "finished"
    # A process that ended between two runs leaves one run finished and the next not started.
    return "left" if progress is None or progress.state == "finished" else progress.state


def gate_options(sweep: PenaltySweep, data: str, output: str) -> list[str]:
    """A sweep as options of `python -m attention_sieve gates`; each value is joined to its option, so that it cannot be
    read as an option.

    Args:
        sweep: what is trained.
        data: the table, as the command finds it.
        output: folder of the runs.
    """
    settings = sweep.settings
    values: dict[str, object] = {
        "checkpoint": sweep.checkpoint,
        "data": data,
        "text-columns": ",".join(sweep.text_columns),
        "label-column": sweep.label_column,
        "task": sweep.task,
        "output": output,
        "penalty": ",".join(f"{penalty:g}" for penalty in sweep.penalties),
        "attention": settings.kind,
        **{name: value for name in SETTINGS if (value := getattr(settings, name)) != getattr(GateSettings, name)},
    }
    return [*programs.options_of(values), *(["--with-weights"] if settings.with_weights else [])]


@atexit.register
def _end() -> None:
    """Ask every sweep that this program started to save its step and end; terminate it if it does not."""
    for sweep in all_sweeps() if _programs else ():
        if sweep.folder in _programs and _programs[sweep.folder].process.poll() is None:
            stop(sweep)
    while _programs:
        programs.end(_programs.popitem()[1])
