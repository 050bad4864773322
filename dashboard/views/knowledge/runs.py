"""Probing, erasing and making the sample tasks: each in a separate process, and one of each at a time."""

import atexit
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.checkpoints.saved_runs import STOP
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.trials.progress import (
    PROGRESS,
    TrialsProgress,
    read_trials_progress,
    stop_trials,
)
from attention_sieve.core.knowledge.trials.result import TrialStage
from attention_sieve.core.knowledge.trials.trial import Trial, lines_of
from attention_sieve.dashboard.views.finetune import programs
from attention_sieve.dashboard.views.finetune.programs import Program
from attention_sieve.dashboard.views.knowledge import wording

TABLE: Final = "trials.jsonl"
"""The trials of the latest run, in its folder."""
PROBING: Final = "probing"
SAMPLE: Final = "sample tasks"
ERASURE: Final = "erasure"
_lock = Lock()
_programs: Final[dict[str, Program]] = {}


def run_folder() -> Path:
    return program_folder() / "probing"


def start(trials: Sequence[Trial], stages: Sequence[TrialStage], device: str, dtype: str) -> None:
    """Run a table of trials; finished results are not computed again.

    Raises: AnalysisError if a run is in progress already, or if it cannot be written or started.
    """
    with _lock:
        if is_on(look()):
            raise AnalysisError(wording.ONE_AT_A_TIME)
        folder = run_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PROGRESS).unlink(missing_ok=True)
            (folder / TABLE).write_text("\n".join([*lines_of(trials), ""]), encoding="utf-8")
        except OSError as error:
            raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Make room there.") from None
        options = {"table": folder / TABLE, "stages": ",".join(stages), "device": device, "dtype": dtype}
        _begin(PROBING, ("trials", *programs.options_of({**options, "journal": folder})))


def stop() -> None:
    """Stop the run within its current step, which is lost; the results before it are kept.

    A run that has not recorded any progress yet is terminated at once.
    """
    try:
        stop_trials(run_folder())
    except AnalysisError:
        if PROBING in _programs:
            _programs[PROBING].process.terminate()


def is_stopping() -> bool:
    return (run_folder() / STOP).exists()


def look() -> TrialsProgress | None:
    """Progress of the latest run, from its folder and, if this program started it, its process; None without a run."""
    progress, program = read_trials_progress(run_folder()), _programs.get(PROBING)
    if program is None:
        return progress
    code = program.process.poll()
    if code is None:
        return progress if is_on(progress) else TrialsProgress()  # it has not written its first line yet
    if code > 0 and (progress is None or progress.state in ("running", "left")):
        return replace(progress or TrialsProgress(), state="failed", message=program.reason(code))
    return progress


def was_about(trials: Sequence[Trial]) -> bool:
    try:
        lines = (run_folder() / TABLE).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return not set(lines_of(trials)).isdisjoint(lines)


def is_on(progress: TrialsProgress | None) -> bool:
    return progress is not None and progress.state == "running"


def make_sample() -> None:
    with _lock:
        if not is_running(SAMPLE):
            _begin(SAMPLE, ("sample-tasks",))


def erase(options: Sequence[str]) -> None:
    """Erase a concept from some heads; `options` are those of `python -m attention_sieve erase`.

    Raises: AnalysisError if an erasure is in progress, or if the process cannot be started.
    """
    with _lock:
        if is_running(ERASURE):
            raise AnalysisError(wording.ONE_ERASURE)
        _begin(ERASURE, ("erase", *options))


def is_running(job: str) -> bool:
    return job in _programs and _programs[job].process.poll() is None


def how_far(job: str) -> tuple[float, str]:
    """Seconds since a running job began, and the last line that it wrote on its progress; empty before the first."""
    program = _programs[job]
    return time.monotonic() - program.began, program.last_line()


def failure(job: str) -> str:
    """Why the last process of a job failed; empty if it did not."""
    program = _programs.get(job)
    code = None if program is None else program.process.poll()
    return program.reason(code) if program is not None and code else ""


def _begin(job: str, command: Sequence[str]) -> None:
    if (previous := _programs.pop(job, None)) is not None:
        previous.errors.close()
    _programs[job] = programs.begin(command)


@atexit.register
def _end() -> None:
    """Ask the run that this program started to end; terminate every process that does not end."""
    if PROBING in _programs and _programs[PROBING].process.poll() is None:
        stop()
    while _programs:
        job, program = _programs.popitem()
        if job != PROBING:
            program.process.terminate()
        programs.end(program)
