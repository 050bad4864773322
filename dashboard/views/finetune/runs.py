"""Training in a separate process: started here, one run at a time, and ended with this one."""

import atexit
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from attention_sieve.cache.serving.run import Run
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.checkpoints.saved_runs import STOP, Progress, ask_to_stop, list_runs, read_progress
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.command import SAMPLE
from attention_sieve.core.laboratory.settings import LaboratorySettings
from attention_sieve.dashboard.views.finetune import programs, wording
from attention_sieve.dashboard.views.finetune.folders import RunRequest, RunSummary
from attention_sieve.dashboard.views.finetune.programs import ENDS_WITHIN, Program, options_of

if TYPE_CHECKING:
    import subprocess

LOOK_AGAIN: Final = 0.2
"""Seconds between two checks of a run."""

FineTuning = Run[Progress, Progress]
"""Named like its folder; reports its progress, and as result its final progress."""

_lock = Lock()
_last: FineTuning | None = None
"""The last run started by this program."""
_process: "subprocess.Popen[bytes] | None" = None
"""Process of that run."""
_elsewhere: Final[dict[str, FineTuning]] = {}
"""Runs started by other programs, by name."""
_NOTHING_YET: Final = Progress(
    state="running", step=0, steps=0, seconds_left=None, losses=(), held_out=(), saved=(), message=""
)


def folder(run: FineTuning) -> Path:
    return checkpoints_folder() / run.name


def start(request: RunRequest, device: str = "auto", *, resume: bool = False) -> FineTuning:
    """Start a run in the background.

    Args:
        request: what to do; its name is that of a new folder, or with `resume` of an unfinished run.
        device: auto, cuda, mps or cpu.
        resume: continue from the last saved step.

    Raises: AnalysisError if a run is active already, or its process cannot be started.
    """
    values: dict[str, object] = {
        "checkpoint": request.checkpoint,
        "data": request.data,
        "text_columns": ",".join(request.text_columns),
        "label_column": request.label_column,
        "output": checkpoints_folder() / request.name,
        **asdict(request.settings),
        "task": request.task,
        "device": device,
    }
    return _begin(request.name, ("finetune", *options_of(values), *(("--resume",) if resume else ())))


def start_sample() -> FineTuning:
    """Start downloading the movie reviews and fine-tuning the bundled checkpoint on them; raises as `start`."""
    return _begin(SAMPLE, ("sample-checkpoint",))


def start_laboratory(name: str, settings: LaboratorySettings, *, resume: bool = False) -> FineTuning:
    values = {"output": checkpoints_folder() / name, **asdict(settings)}
    return _begin(name, ("laboratory", *options_of(values), *(("--resume",) if resume else ())))


def can_resume(summary: RunSummary) -> bool:
    return summary.progress.state in ("stopped", "left", "failed") and (
        summary.request is not None or summary.name == SAMPLE
    )


def resume(summary: RunSummary, device: str = "auto") -> FineTuning:
    return start_sample() if summary.request is None else start(summary.request, device, resume=True)


def running() -> FineTuning | None:
    """The active run, whichever program started it."""
    if _last is not None and _last.is_on:
        return _last
    names = (saved.name for saved in list_runs() if saved.progress.state == "running")
    return next((_of_another_program(name) for name in names if _last is None or name != _last.name), None)


def progress(run: FineTuning) -> Progress:
    """Progress of a run, or how it ended."""
    if run.error is not None:
        raise run.error
    return run.watch() if run.results is None else run.results


def is_stopping(run: FineTuning) -> bool:
    return run.is_stopping or (folder(run) / STOP).exists()


def _begin(name: str, command: Sequence[str]) -> FineTuning:
    global _last, _process
    with _lock:
        if (current := running()) is not None:
            raise AnalysisError(wording.one_at_a_time(current.name))
        program = programs.begin(command)
        process = program.process
        path = checkpoints_folder() / name
        follow = _follow(
            is_on=lambda: process.poll() is None,
            get_progress=lambda was_stopped: _progress_of_process(program, path, was_stopped),
            stop=lambda: _stop(process, path),
        )

        def work(report: Callable[[Progress], None], keep: Callable[[Progress], None]) -> None:
            with program.errors:
                follow(report, keep)

        _last, _process = Run(work, _NOTHING_YET, name=name, patience=None), process
        return _last


def _of_another_program(name: str) -> FineTuning:
    """The run of a folder that another program writes to."""
    run = _elsewhere.get(name)
    if run is not None and run.is_on:
        return run
    path = checkpoints_folder() / name

    def get_progress(was_stopped: bool = False) -> Progress:
        return read_progress(path) or _NOTHING_YET

    def is_on() -> bool:
        saved = read_progress(path)
        return saved is not None and saved.state == "running"

    work = _follow(is_on=is_on, get_progress=get_progress, stop=lambda: ask_to_stop(path))
    _elsewhere[name] = Run(work, get_progress(), name=name, patience=None)
    return _elsewhere[name]


def _follow(
    is_on: Callable[[], bool], get_progress: Callable[[bool], Progress], stop: Callable[[], None]
) -> Callable[[Callable[[Progress], None], Callable[[Progress], None]], None]:
    """The work of a `Run` whose process is another one: report its progress, stop it on request, await its end.

    Args:
        is_on: whether the process is running.
        get_progress: returns its progress; the argument says whether it was asked to stop.
        stop: asks it to stop.
    """

    def work(report: Callable[[Progress], None], keep: Callable[[Progress], None]) -> None:
        was_stopped = True
        try:
            while is_on():
                report(get_progress(False))
                time.sleep(LOOK_AGAIN)
            was_stopped = False
        finally:  # report() raises once a reader wants it to stop
            if was_stopped:
                stop()
            while is_on():
                time.sleep(LOOK_AGAIN)
            keep(get_progress(was_stopped))

    return work


def _progress_of_process(program: Program, path: Path, was_stopped: bool) -> Progress:
    code = program.process.poll()
    saved = read_progress(path) or _NOTHING_YET
    if code == 0:
        return saved
    if code is None:
        # Until a resumed run writes its first line, the last line is that of the previous run.
        return saved if saved.state == "running" else replace(saved, state="running", message="", seconds_left=None)
    if code > 0:
        return replace(saved, state="failed", message=program.reason(code))
    return replace(saved, state="stopped" if was_stopped else "left") if saved.state in ("running", "left") else saved


def _stop(process: "subprocess.Popen[bytes]", path: Path) -> None:
    """Ask a run to save its current step and end; one that has written nothing yet is terminated."""
    try:
        ask_to_stop(path)
    except AnalysisError:
        process.terminate()


@atexit.register
def end() -> None:
    """Ask the run to save its step and end, terminate it if it does not, and forget it."""
    global _last
    run, process, _last = _last, _process, None
    if run is None or process is None or not run.is_on:
        return
    run.stop()
    run.wait(ENDS_WITHIN)
    if process.poll() is None:
        process.terminate()
        run.wait(ENDS_WITHIN)
