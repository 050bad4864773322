"""Fine-tuning in a program of its own: begun here, one at a time, and ended with this one; the folder says how far."""

import atexit
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock
from typing import IO, Final

from core.errors import AnalysisError
from core.folders import checkpoints_folder
from core.training import STOP, Progress, ask_to_stop, list_runs, read_progress
from core.training_commands import SAMPLE
from dashboard import finetune_wording as wording
from dashboard.training_folders import Asked, Made

ROOT: Final = Path(__file__).parents[1]
ENDS_WITHIN: Final = 5.0
"""Seconds that a run has to save its step when this program ends."""
LAST_BYTES: Final = 4_000
"""Of what a run wrote to standard error: enough for its last line."""


@dataclass(frozen=True, eq=False)
class Background:
    """A run that is on, or that this program began."""

    name: str
    process: subprocess.Popen[bytes] | None = None
    """None where another program began it."""
    errors: IO[bytes] | None = None
    """What it wrote to standard error."""
    stop_asked: Event = field(default_factory=Event)
    """Set once a reader asked it to stop."""

    @property
    def folder(self) -> Path:
        """Where it writes."""
        return checkpoints_folder() / self.name

    @property
    def is_on(self) -> bool:
        """Whether this program began it and it has not ended."""
        return self.process is not None and self.process.poll() is None


_lock = Lock()
_last: Background | None = None
_NOTHING_YET: Final = Progress("running", 0, 0, None, (), (), (), "")


def start(asked: Asked, device: str = "auto", *, resume: bool = False) -> Background:
    """Begin a run behind the page.

    Args:
        asked: what to do; its name is that of a free folder, or with `resume` of an unfinished run.
        device: auto, cuda, mps or cpu.
        resume: go on from the last saved step.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return _begin(asked.name, ("finetune", *_options(asked, device), *(("--resume",) if resume else ())))


def start_sample() -> Background:
    """Begin to make the sample pair: fetch the movie reviews and fine-tune the bundled checkpoint on them.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return _begin(SAMPLE, ("sample-checkpoint",))


def can_resume(made: Made) -> bool:
    """Whether this program can go on with a run."""
    return made.progress.state in ("stopped", "left", "failed") and (made.asked is not None or made.name == SAMPLE)


def resume(made: Made, device: str = "auto") -> Background:
    """Go on with a run from its last saved step.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return start_sample() if made.asked is None else start(made.asked, device, resume=True)


def running() -> Background | None:
    """The run that is on, whichever program began it."""
    if _last is not None and _last.is_on:
        return _last
    others = (run.name for run in list_runs() if run.progress.state == "running")
    return next((Background(name) for name in others if _last is None or name != _last.name), None)


def progress(run: Background) -> Progress:
    """How far a run is, as its program and its folder say."""
    code = None if run.process is None else run.process.poll()
    read = read_progress(run.folder) or _NOTHING_YET
    if run.process is None or code == 0:
        return read
    if code is None:
        # Until a resumed run writes its first line, the last is that of the run before.
        return read if read.state == "running" else replace(read, state="running", message="", seconds_left=None)
    if code > 0:
        return replace(read, state="failed", message=_reason(run, code))
    if read.state in ("running", "left"):
        return replace(read, state="stopped" if run.stop_asked.is_set() else "left")
    return read


def stop(run: Background) -> None:
    """Let a run save its present step and end; one that has written nothing yet ends at once."""
    run.stop_asked.set()
    try:
        ask_to_stop(run.folder)
    except AnalysisError:
        if run.process is not None and run.is_on:
            run.process.terminate()


def is_stopping(run: Background) -> bool:
    """Whether a run was asked to stop."""
    return run.stop_asked.is_set() or (run.folder / STOP).exists()


def _options(asked: Asked, device: str) -> list[str]:
    """As `python -m core finetune` takes them; a value is joined to its option, so that none is taken for another."""
    settings = asked.settings
    given: dict[str, object] = {
        "checkpoint": asked.checkpoint,
        "data": asked.data,
        "text-columns": ",".join(asked.text_columns),
        "label-column": asked.label_column,
        "output": checkpoints_folder() / asked.name,
        "epochs": settings.epochs,
        "learning-rate": settings.learning_rate,
        "batch-size": settings.batch_size,
        "max-length": settings.max_length,
        "seed": settings.seed,
        "save-steps": settings.save_steps,
        "held-out": settings.held_out,
        "task": asked.task,
        "device": device,
    }
    return [f"--{option}={value}" for option, value in given.items() if value is not None]


def _begin(name: str, command: Sequence[str]) -> Background:
    global _last
    with _lock:
        if (other := running()) is not None:
            raise AnalysisError(wording.one_at_a_time(other.name))
        # A file takes what nobody reads without blocking, and is gone once nobody has it open.
        errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "core", *command],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # or Ctrl+C would end the run before it is asked to save its step
            )
        except OSError as error:
            errors.close()
            raise AnalysisError(wording.not_started(error.strerror or str(error))) from None
        _last = Background(name, process, errors)
        weakref.finalize(_last, errors.close)
        return _last


def _environment() -> dict[str, str]:
    """This program's, with the project found from any working folder: a path means the same to both programs."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _reason(run: Background, code: int) -> str:
    """The sentence on standard error; with the exit status where it is none of ours."""
    last = next((line for line in reversed(_written(run).splitlines()) if line.strip()), "").strip()
    return last if code == 2 and last else wording.ended_badly(code, last)


def _written(run: Background) -> str:
    """The end of standard error, read without moving the place at which the run writes."""
    if run.errors is None:
        return ""
    number = run.errors.fileno()
    start = max(0, os.fstat(number).st_size - LAST_BYTES)
    return os.pread(number, LAST_BYTES, start).decode(errors="replace")


@atexit.register
def _end() -> None:
    """Ask the run to save its step and end; end it if it does not."""
    if _last is None or _last.process is None or not _last.is_on:
        return
    stop(_last)
    with suppress(subprocess.TimeoutExpired):
        _last.process.wait(ENDS_WITHIN)
        return
    _last.process.terminate()
    _last.process.wait(ENDS_WITHIN)
