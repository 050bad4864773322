"""Probing, erasing and making the sample tasks: each in a separate process, and one of each at a time."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.trials.result import TrialStage
from attention_sieve.core.knowledge.trials.trial import Trial, lines_of
from attention_sieve.core.running import PROGRESS
from attention_sieve.dashboard import runs
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.views.knowledge import wording

TABLE: Final = "trials.jsonl"
"""The trials of the latest run, in its folder."""
_lock: Final = Lock()


def _begin(folder: Path, command: Sequence[str]) -> None:
    """Begin a run that needs nothing of the reports of the last one.

    Raises: AnalysisError if these cannot be removed, or its process cannot be started.
    """
    try:
        (folder / PROGRESS).unlink(missing_ok=True)
    except OSError as error:
        raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Check its permissions.") from None
    runs.begin(folder, command)


def start(trials: Sequence[Trial], stages: Sequence[TrialStage], device: str, dtype: str) -> None:
    """Run a table of trials; finished results are not computed again.

    Raises: AnalysisError if a run is in progress already, or if it cannot be written or started.
    """
    folder = KINDS["trials"].folder()
    with _lock:
        if runs.is_on(folder):
            raise AnalysisError(wording.ONE_AT_A_TIME)
        _begin(folder, trials_command(folder, trials, stages, device=device, dtype=dtype))


def trials_command(
    folder: Path, trials: Sequence[Trial], stages: Sequence[TrialStage], **options: object
) -> tuple[str, ...]:
    """The command that runs a table of trials, which is written to the folder of the run.

    Raises: AnalysisError if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TABLE).write_text("\n".join([*lines_of(trials), ""]), encoding="utf-8")
    except OSError as error:
        raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Make room there.") from None
    given = {"table": folder / TABLE, "stages": ",".join(stages), **options, "journal": folder}
    return ("trials", *runs.options_of(given))


def was_about(trials: Sequence[Trial]) -> bool:
    """Whether the latest run was about some of these trials."""
    try:
        lines = (KINDS["trials"].folder() / TABLE).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return not set(lines_of(trials)).isdisjoint(lines)


def make_sample() -> None:
    folder = KINDS["sample-tasks"].folder()
    with _lock:
        if not runs.is_on(folder):
            _begin(folder, ("sample-tasks", *runs.options_of({"journal": folder})))


def erase(options: Sequence[str]) -> None:
    """Erase a concept from some heads; `options` are those of `python -m attention_sieve erase`.

    Raises: AnalysisError if an erasure is in progress, or if the process cannot be started.
    """
    folder = KINDS["erase"].folder()
    with _lock:
        if runs.is_on(folder):
            raise AnalysisError(wording.ONE_ERASURE)
        _begin(folder, ("erase", *options, *runs.options_of({"journal": folder})))
