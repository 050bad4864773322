"""Trainings on this machine, one at a time, each in a folder named like the checkpoint that it makes."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.checkpoints.saved_runs import list_runs
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.running import Progress
from attention_sieve.dashboard import runs, wording

_lock: Final = Lock()


def folder(name: str) -> Path:
    return checkpoints_folder() / name


def start(name: str, command: Sequence[str]) -> str:
    """Begin a command that trains the checkpoint of this name; returns the name.

    Raises: AnalysisError if a training is on already, or its process cannot be started.
    """
    with _lock:
        if (current := running()) is not None:
            raise AnalysisError(wording.one_at_a_time(current))
        runs.begin(folder(name), command)
    return name


def start_sample() -> str:
    """Start downloading the movie reviews and fine-tuning the bundled checkpoint on them; raises as `start`."""
    return start(SAMPLE_FINE_TUNING, ("sample-checkpoint",))


def running() -> str | None:
    """The training that is on, whichever program began it."""
    begun_here = (path.name for path in runs.begun_here() if path.parent == checkpoints_folder())
    elsewhere = (saved.name for saved in list_runs() if saved.progress.state == "running")
    return next((name for names in (begun_here, elsewhere) for name in names), None)


def look(name: str) -> Progress | None:
    """Progress of a training; None where there is none of this name."""
    return runs.look(folder(name))
