"""Training of gates in a program of its own: one sweep at a time, penalty after penalty; its folders say how far."""

import atexit
import subprocess
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Final

from core.checkpoints.saved_runs import STOP, Progress, State, ask_to_stop
from core.errors import AnalysisError
from core.importance.gates.settings import GateSettings
from dashboard.views.finetune import programs
from dashboard.views.finetune import runs as training_runs
from dashboard.views.finetune.programs import Program
from dashboard.views.finetune.runs import ENDS_WITHIN
from dashboard.views.importance.gates import wording
from dashboard.views.importance.gates.sweeps import Sweep, all_sweeps, joined, keep

SETTINGS: Final = tuple(
    field.name for field in fields(GateSettings) if field.name not in ("penalty", "kind", "with_weights")
)
_lock = Lock()
_programs: Final[dict[Path, Program]] = {}
"""The programs that were begun here, by the folder of their sweep."""


@dataclass(frozen=True)
class Now:
    """How far a sweep is."""

    state: State
    penalty: float | None
    """Of the run that is on, or that the sweep ended in; None where none has begun."""
    number: int
    """Of this run, from 1."""
    progress: Progress | None
    """Of this run."""
    message: str = ""
    """Why the sweep failed."""


def start(sweep: Sweep, device: str = "auto") -> Sweep:
    """Train what a sweep has not finished, and go on with what it has begun.

    Returns: the sweep with the penalties that it had before.
    Raises: AnalysisError where some training is on already, or nothing can be written or begun.
    """
    with _lock:
        if (other := training_runs.running()) is not None:
            raise AnalysisError(wording.finetuning_is_on(other.name))
        if running() is not None:
            raise AnalysisError(wording.ONE_AT_A_TIME)
        whole = joined(sweep)
        keep(whole)
        if (before := _programs.pop(whole.folder, None)) is not None:
            before.errors.close()
        _programs[whole.folder] = programs.begin(("gates", *_options(whole, device)))
        return whole


def stop(sweep: Sweep) -> None:
    """Let a sweep end after its present step, which it saves; one that has trained nothing yet ends at once."""
    penalty = look(sweep).penalty
    try:
        if penalty is None:
            raise AnalysisError(wording.ONE_AT_A_TIME)
        ask_to_stop(sweep.run_folder(penalty))
    except AnalysisError:
        if sweep.folder in _programs:
            _programs[sweep.folder].process.terminate()


def is_stopping(sweep: Sweep) -> bool:
    """Whether a sweep was asked to stop."""
    return any((sweep.run_folder(penalty) / STOP).exists() for penalty in sweep.penalties)


def running() -> Sweep | None:
    """The sweep that is on, whichever program began it."""
    return next((sweep for sweep in all_sweeps() if look(sweep).state == "running"), None)


def look(sweep: Sweep) -> Now:
    """How far a sweep is, as its folders and, where it was begun here, its program say."""
    begun = {penalty: said for penalty in sweep.penalties if (said := sweep.progress(penalty)) is not None}
    unfinished = {penalty: said for penalty, said in begun.items() if said.state != "finished"}
    on = [penalty for penalty, said in unfinished.items() if said.state == "running"]
    penalty = next(iter((*on, *unfinished, *reversed(begun))), None)
    progress = None if penalty is None else begun[penalty]
    state = _state(sweep, progress, len(begun) - len(unfinished))
    number = 1 if penalty is None else sweep.penalties.index(penalty) + 1
    message = progress.message if progress is not None and state == "failed" else ""
    found = Now(state, penalty, number, progress, message)
    program = _programs.get(sweep.folder)
    code = 0 if program is None else program.process.poll()
    if code is None:
        # Until a resumed run writes its first line, the last is that of the run before.
        return replace(found, state="running", progress=progress if on else None, message="")
    if program is not None and code > 0:
        return replace(found, state="failed", message=program.reason(code))
    return found


def _state(sweep: Sweep, progress: Progress | None, n_finished: int) -> State:
    if n_finished == len(sweep.penalties):
        return "finished"
    # Between two runs a program that ended leaves one finished and the next not begun.
    return "left" if progress is None or progress.state == "finished" else progress.state


def _options(sweep: Sweep, device: str) -> list[str]:
    """As `python -m core gates` takes them; a value is joined to its option, so that none is taken for another."""
    settings = sweep.settings
    given: dict[str, object] = {
        "checkpoint": sweep.checkpoint,
        "data": sweep.data,
        "text-columns": ",".join(sweep.text_columns),
        "label-column": sweep.label_column,
        "task": sweep.task,
        "output": sweep.folder,
        "penalty": ",".join(f"{penalty:g}" for penalty in sweep.penalties),
        "attention": settings.kind,
        "device": device,
        **{name.replace("_", "-"): getattr(settings, name) for name in SETTINGS},
    }
    options = [f"--{option}={value}" for option, value in given.items() if value is not None]
    return [*options, *(["--with-weights"] if settings.with_weights else []), "--resume"]


@atexit.register
def _end() -> None:
    """Ask every sweep that was begun here to save its step and end; end it if it does not."""
    for sweep in all_sweeps() if _programs else ():
        if sweep.folder in _programs and _programs[sweep.folder].process.poll() is None:
            stop(sweep)
    while _programs:
        _, program = _programs.popitem()
        try:
            program.process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            program.process.terminate()
            program.process.wait(ENDS_WITHIN)
        program.errors.close()
