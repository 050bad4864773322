"""Fine-tuning in a program of its own: begun here, one at a time, and ended with this one; the folder says how far."""

import atexit
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from cache.serving.run import Run
from core.checkpoints.folders import checkpoints_folder
from core.checkpoints.saved_runs import STOP, Progress, ask_to_stop, list_runs, read_progress
from core.errors import AnalysisError
from core.finetuning.command import SAMPLE
from dashboard.views.finetune import programs, wording
from dashboard.views.finetune.folders import Asked, Made
from dashboard.views.finetune.programs import Program

if TYPE_CHECKING:
    import subprocess

ENDS_WITHIN: Final = 5.0
"""Seconds that a run has to save its step when this program ends."""
LOOK_AGAIN: Final = 0.2
"""Seconds between two looks at a run."""

FineTuning = Run[Progress, Progress]
"""Named like its folder; its progress while it is on, and at its end, as its results, how it ended."""

_lock = Lock()
_last: FineTuning | None = None
"""The run that this program began last."""
_process: "subprocess.Popen[bytes] | None" = None
"""Of that run."""
_elsewhere: Final[dict[str, FineTuning]] = {}
"""Runs that other programs began, by name."""
_NOTHING_YET: Final = Progress(
    state="running", step=0, steps=0, seconds_left=None, losses=(), held_out=(), saved=(), message=""
)


def folder(run: FineTuning) -> Path:
    """Where a run writes."""
    return checkpoints_folder() / run.name


def start(asked: Asked, device: str = "auto", *, resume: bool = False) -> FineTuning:
    """Begin a run behind the page.

    Args:
        asked: what to do; its name is that of a free folder, or with `resume` of an unfinished run.
        device: auto, cuda, mps or cpu.
        resume: go on from the last saved step.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return _begin(asked.name, ("finetune", *_options(asked, device), *(("--resume",) if resume else ())))


def start_sample() -> FineTuning:
    """Begin to make the sample pair: fetch the movie reviews and fine-tune the bundled checkpoint on them.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return _begin(SAMPLE, ("sample-checkpoint",))


def can_resume(made: Made) -> bool:
    """Whether this program can go on with a run."""
    return made.progress.state in ("stopped", "left", "failed") and (made.asked is not None or made.name == SAMPLE)


def resume(made: Made, device: str = "auto") -> FineTuning:
    """Go on with a run from its last saved step.

    Raises: AnalysisError where a run is on already, or its program cannot be started.
    """
    return start_sample() if made.asked is None else start(made.asked, device, resume=True)


def running() -> FineTuning | None:
    """The run that is on, whichever program began it."""
    if _last is not None and _last.is_on:
        return _last
    names = (saved.name for saved in list_runs() if saved.progress.state == "running")
    return next((_of_another_program(name) for name in names if _last is None or name != _last.name), None)


def progress(run: FineTuning) -> Progress:
    """How far a run is, or how it ended."""
    if run.error is not None:
        raise run.error
    return run.watch() if run.results is None else run.results


def is_stopping(run: FineTuning) -> bool:
    """Whether a run was asked to stop."""
    return run.is_stopping or (folder(run) / STOP).exists()


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


def _begin(name: str, command: Sequence[str]) -> FineTuning:
    global _last, _process
    with _lock:
        if (other := running()) is not None:
            raise AnalysisError(wording.one_at_a_time(other.name))
        program = programs.begin(command)
        process = program.process
        where = checkpoints_folder() / name
        follow = _follow(
            is_on=lambda: process.poll() is None,
            now=lambda was_stopped: _said(program, where, was_stopped),
            stop=lambda: _stop(process, where),
        )

        def work(tell: Callable[[Progress], None], keep: Callable[[Progress], None]) -> None:
            with program.errors:
                follow(tell, keep)

        _last, _process = Run(work, _NOTHING_YET, name=name, patience=None), process
        return _last


def _of_another_program(name: str) -> FineTuning:
    """The run in a folder that another program writes to."""
    known = _elsewhere.get(name)
    if known is not None and known.is_on:
        return known
    where = checkpoints_folder() / name

    def now(was_stopped: bool = False) -> Progress:
        return read_progress(where) or _NOTHING_YET

    def is_on() -> bool:
        read = read_progress(where)
        return read is not None and read.state == "running"

    work = _follow(is_on=is_on, now=now, stop=lambda: ask_to_stop(where))
    _elsewhere[name] = Run(work, now(), name=name, patience=None)
    return _elsewhere[name]


def _follow(
    is_on: Callable[[], bool], now: Callable[[bool], Progress], stop: Callable[[], None]
) -> Callable[[Callable[[Progress], None], Callable[[Progress], None]], None]:
    """The work of a `Run` that is done by another process: to tell its progress, ask it to stop, and wait for its end.

    Args:
        is_on: whether the process works.
        now: its progress; the argument says whether it was asked to stop.
        stop: asks it to stop.
    """

    def work(tell: Callable[[Progress], None], keep: Callable[[Progress], None]) -> None:
        was_stopped = True
        try:
            while is_on():
                tell(now(False))
                time.sleep(LOOK_AGAIN)
            was_stopped = False
        finally:  # tell() raises once a reader wants it to stop
            if was_stopped:
                stop()
            while is_on():
                time.sleep(LOOK_AGAIN)
            keep(now(was_stopped))

    return work


def _said(program: Program, where: Path, was_stopped: bool) -> Progress:
    """How far a run is, as its process and its folder say."""
    code = program.process.poll()
    read = read_progress(where) or _NOTHING_YET
    if code == 0:
        return read
    if code is None:
        # Until a resumed run writes its first line, the last is that of the run before.
        return read if read.state == "running" else replace(read, state="running", message="", seconds_left=None)
    if code > 0:
        return replace(read, state="failed", message=program.reason(code))
    return replace(read, state="stopped" if was_stopped else "left") if read.state in ("running", "left") else read


def _stop(process: "subprocess.Popen[bytes]", where: Path) -> None:
    """Let a run save its current step and end; one that has written nothing yet ends at once."""
    try:
        ask_to_stop(where)
    except AnalysisError:
        process.terminate()


@atexit.register
def _end() -> None:
    """Ask the run to save its step and end; end it if it does not."""
    if _last is None or _process is None or not _last.is_on:
        return
    _last.stop()
    _last.wait(ENDS_WITHIN)
    if _process.poll() is None:
        _process.terminate()
        _last.wait(ENDS_WITHIN)
