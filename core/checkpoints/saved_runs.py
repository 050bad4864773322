"""Runs of training on disk, of fine-tuning and of the laboratory, and their saved checkpoints.

The folder of such a run (`attention_sieve.core.running`) contains `training.json` (checkpoint, data, settings,
versions, result), `checkpoint-N/` for each saved step, and at the end the trained checkpoint itself.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.errors import AnalysisError, CheckpointError
from attention_sieve.core.running import PROGRESS, SAVED, Progress, read_progress, saved_checkpoints, step_of


@dataclass(frozen=True)
class SavedRun:
    """A run in a folder of runs."""

    name: str
    """Name of its folder; also the name of its checkpoint if it is in `checkpoints_folder()`."""
    folder: Path
    progress: Progress

    @property
    def is_fine_tuning(self) -> bool:
        """Whether it began with a checkpoint, and not in the laboratory, with random weights."""
        return bool(self.progress.checkpoint)

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of its checkpoints: saved steps in order, then, once finished, its own name.

        The finished checkpoint equals that of the last step.
        """
        saved = tuple(f"{self.name}/{path.name}" for path in saved_checkpoints(self.folder))
        return (*saved, self.name) if self.progress.state == "finished" else saved


def delete_run(name: str) -> None:
    """Delete a run in `checkpoints_folder()` with all of its checkpoints. Its folder must be directly in that folder
    and contain a run's report.

    Raises: AnalysisError if there is no such run, it is in progress, or its folder cannot be removed.
    """
    run = next((run for run in list_runs() if run.name == name and not run.folder.is_symlink()), None)
    if run is None:
        raise AnalysisError(f"{name!r} is not a run that was trained here, so nothing was deleted.")
    if run.progress.state == "running":
        raise AnalysisError(f"{name} is being trained now, so it cannot be deleted. Stop it first.")
    try:
        shutil.rmtree(run.folder)
    except OSError as error:
        raise AnalysisError(
            f"{run.folder} cannot be deleted ({error.strerror or error}). Remove the folder by hand."
        ) from None


def check_is_saved(name: str) -> None:
    """Raise if a name refers to a run in `checkpoints_folder()`, or to one of its steps, without a checkpoint. No
    checkpoint was found there under this name.

    Raises: CheckpointError with the saved steps.
    """
    run, _, step = name.partition("/")
    folder = checkpoints_folder() / run
    if not os.path.isfile(folder / PROGRESS) or not (step == "" or SAVED.fullmatch(step)):
        return
    problem = f"{run} has no {step}" if step else f"{run} is not finished"
    saved = [step_of(path) for path in saved_checkpoints(folder)]
    if not saved:
        raise CheckpointError(f"{problem}, and none of its steps is saved. Continue the run first.")
    steps = f"steps are {', '.join(map(str, saved))}" if len(saved) > 1 else f"step is {saved[0]}"
    raise CheckpointError(f"{problem}; its saved {steps}. Name one, as {run}/checkpoint-{saved[-1]}.")


def run_and_step(name: str) -> tuple[str, int | None]:
    """The run that the name of a checkpoint names, and the step; None for the finished run itself.

    The name need not be that of a run: `bundled` gives `bundled`.
    """
    run, _, saved = name.rpartition("/")
    return (run, int(saved.removeprefix("checkpoint-"))) if run and SAVED.fullmatch(saved) else (name, None)


def steps_of_one_run(names: Sequence[str], runs: Sequence[SavedRun]) -> list[int] | None:
    """Training steps of checkpoints that follow each other in one run; None for any other checkpoints. They are at
    least two; the one that a run began with is its step 0, a finished run its last step."""
    for run in runs:
        steps = [_step_in(run, name) for name in names]
        known = [step for step in steps if step is not None]
        if len(known) == len(names) > 1 and known == sorted(set(known)):
            return known
    return None


def _step_in(run: SavedRun, name: str) -> int | None:
    """Step of a checkpoint in a run; None if it is not of that run."""
    if name == run.progress.checkpoint:
        return 0
    name_of_run, step = run_and_step(name)
    is_last = step is None and run.progress.state == "finished"
    return None if name_of_run != run.name else run.progress.step if is_last else step


def may_be_a_run(name: str) -> bool:
    """Whether a name has the form of that of a run (`movie-reviews`) or of one of its steps
    (`movie-reviews/checkpoint-94`); some ids of the hub have it, too.
    """
    _, slash, step = name.partition("/")
    return not slash or SAVED.fullmatch(step) is not None


def list_runs(folder: Path | None = None) -> tuple[SavedRun, ...]:
    """All runs in a folder, sorted by name. By default those in `checkpoints_folder()`; the folder may not exist."""
    folder = checkpoints_folder() if folder is None else folder
    runs = ((path, read_progress(path)) for path in sorted(folder.glob("*")))
    return tuple(SavedRun(path.name, path, progress) for path, progress in runs if progress is not None)


def find_run(name: str) -> SavedRun:
    """A run by its folder, or by its name in `checkpoints_folder()`.

    Raises: AnalysisError if there is none.
    """
    for folder in (Path(os.path.expanduser(name)), checkpoints_folder() / name):
        progress = read_progress(folder)
        if progress is not None:
            return SavedRun(folder.resolve().name, folder.resolve(), progress)
    raise AnalysisError(
        f"{name} is not a fine-tuning run: there is no {PROGRESS} in it. Name the folder that `finetune` wrote, or a "
        f"run in {checkpoints_folder()}."
    )
