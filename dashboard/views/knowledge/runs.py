"""Probing, erasing and the making of the sample tasks, each in a program of its own and one at a time."""

import atexit
import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final

from core.checkpoints.folders import program_folder
from core.checkpoints.saved_runs import STOP
from core.errors import AnalysisError
from core.probing_tasks.trials.progress import PROGRESS, TrialsProgress, read_trials_progress, stop_trials
from core.probing_tasks.trials.result import Stage
from core.probing_tasks.trials.trial import Trial, values_of
from dashboard.views.finetune import programs
from dashboard.views.finetune.programs import Program
from dashboard.views.finetune.runs import ENDS_WITHIN
from dashboard.views.knowledge import wording

TABLE: Final = "trials.jsonl"
"""The trials of the latest run, in its folder."""
PROBING: Final = "probing"
SAMPLE: Final = "sample tasks"
ERASURE: Final = "erasure"
_lock = Lock()
_programs: Final[dict[str, Program]] = {}
"""The programs that were begun here, by what they do."""


def run_folder() -> Path:
    """Where the latest run says how far it is."""
    return program_folder() / "probing"


def start(trials: Sequence[Trial], stages: Sequence[Stage], device: str, dtype: str) -> None:
    """Probe a table of trials; what is known already is not computed again.

    Raises: AnalysisError where a run is on already, or nothing can be written or begun.
    """
    with _lock:
        if is_on(look()):
            raise AnalysisError(wording.ONE_AT_A_TIME)
        folder = run_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PROGRESS).unlink(missing_ok=True)
            lines = "".join(f"{json.dumps(values_of(trial))}\n" for trial in trials)
            (folder / TABLE).write_text(lines, encoding="utf-8")
        except OSError as error:
            raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Make room there.") from None
        options = {"table": folder / TABLE, "stages": ",".join(stages), "device": device, "dtype": dtype}
        _begin(PROBING, ("trials", *(f"--{name}={value}" for name, value in options.items()), f"--journal={folder}"))


def stop() -> None:
    """Let the run end between two steps; what it has found so far stays.

    One that has said nothing yet is ended at once.
    """
    try:
        stop_trials(run_folder())
    except AnalysisError:
        if PROBING in _programs:
            _programs[PROBING].process.terminate()


def is_stopping() -> bool:
    """Whether the run was asked to stop."""
    return (run_folder() / STOP).exists()


def look() -> TrialsProgress | None:
    """How far the latest run is, as its folder and, where it was begun here, its program say; None before the first."""
    said, program = read_trials_progress(run_folder()), _programs.get(PROBING)
    if program is None:
        return said
    code = program.process.poll()
    if code is None:
        return said if is_on(said) else TrialsProgress()  # it has not written its first line yet
    if code > 0 and (said is None or said.state in ("running", "left")):
        return replace(said or TrialsProgress(), state="failed", message=program.reason(code))
    return said


def is_on(progress: TrialsProgress | None) -> bool:
    """Whether a run goes on."""
    return progress is not None and progress.state == "running"


def make_sample() -> None:
    """Make the sample tasks.

    Raises: AnalysisError where the program cannot be started.
    """
    with _lock:
        if not sample_is_being_made():
            _begin(SAMPLE, ("sample-tasks",))


def sample_is_being_made() -> bool:
    """Whether the sample tasks are on the way."""
    return _runs(SAMPLE)


def why_no_sample() -> str:
    """Why the sample tasks could not be made; empty where nothing went wrong."""
    return _why(SAMPLE)


def erase(options: Sequence[str]) -> None:
    """Erase a concept from some heads; `options` as `python -m core erase` takes them.

    Raises: AnalysisError where an erasure is on, or the program cannot be started.
    """
    with _lock:
        if is_erasing():
            raise AnalysisError(wording.ONE_ERASURE)
        _begin(ERASURE, ("erase", *options))


def is_erasing() -> bool:
    """Whether an erasure is on."""
    return _runs(ERASURE)


def why_not_erased() -> str:
    """Why the last erasure failed; empty where it did not."""
    return _why(ERASURE)


def _runs(doing: str) -> bool:
    return doing in _programs and _programs[doing].process.poll() is None


def _why(doing: str) -> str:
    program = _programs.get(doing)
    code = None if program is None else program.process.poll()
    return program.reason(code) if program is not None and code else ""


def _begin(doing: str, command: Sequence[str]) -> None:
    if (before := _programs.pop(doing, None)) is not None:
        before.errors.close()
    _programs[doing] = programs.begin(command)


@atexit.register
def _end() -> None:
    """Ask the run that was begun here to end, and end what does not."""
    if PROBING in _programs and _programs[PROBING].process.poll() is None:
        stop()
    while _programs:
        doing, program = _programs.popitem()
        try:
            if doing != PROBING:
                program.process.terminate()
            program.process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            program.process.terminate()
            program.process.wait(ENDS_WITHIN)
        program.errors.close()
