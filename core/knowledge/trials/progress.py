"""Progress of a table of trials, in a file that pages read, and requests to stop it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from attention_sieve.core.checkpoints.saved_runs import STOP, State, is_running
from attention_sieve.core.commands import write_whole
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import typed_json

PROGRESS: Final = "progress.json"
EVERY: Final = 0.2
"""Minimum number of seconds between two reports of the same stage."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A trial that could not be run."""

    trial: str
    why: str


@dataclass(frozen=True, kw_only=True)
class TrialsProgress:
    """Progress of a table of trials. A unit is a stage of a trial."""

    state: State = "running"
    done: int = 0
    """Number of units that are done, in this run or before."""
    total: int = 0
    trial: str = ""
    """Name of the current trial: its task and its checkpoint."""
    doing: str = ""
    n_texts: int = 0
    """Number of its texts that are read, out of `n_all_texts`."""
    n_all_texts: int = 0
    seconds_left: float | None = None
    message: str = ""
    """Why the whole run failed."""
    failed: tuple[Failed, ...] = ()

    @property
    def share(self) -> float:
        """Of the units that are done, 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0


@dataclass(frozen=True, kw_only=True)
class _Process:
    pid: int
    created: float
    """Its start time, in seconds since 1970."""


class Stopped(Exception):
    """Raised to end trials between two batches of texts, or between two steps of fitting probes."""


class Reporter:
    """Writes the progress of a table of trials to a folder, and ends the run when a file named `stop` appears there.

    Raises: AnalysisError if the folder cannot be written; None writes none.
    """

    def __init__(self, folder: Path | None, total: int) -> None:
        self.progress = TrialsProgress(total=total)
        self._folder, self._written = folder, 0.0
        self._process = _Process(pid=os.getpid(), created=psutil.Process().create_time())
        self._texts_of_unit, self._texts_left, self._texts_computed = 0, 0, 0
        self._began = time.monotonic()
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / STOP).unlink(missing_ok=True)
            except OSError as error:
                raise AnalysisError(f"{folder} cannot be written ({error.strerror}). Choose another folder.") from None
        self._write()

    def expect(self, n_texts: int) -> None:
        """Set how many texts all units have together, by which the remaining time is estimated."""
        self._texts_left = n_texts

    def begin(self, trial: str, n_texts: int) -> None:
        """Report the current trial, and the number of texts of each of its units."""
        self._texts_of_unit = n_texts
        self.progress = replace(self.progress, trial=trial, doing="", n_texts=0, n_all_texts=0)
        self._write()

    def tell(self, doing: str, n_texts: int, n_all_texts: int) -> None:
        """Report the current work.

        Raises: Stopped if a stop was requested.
        """
        self.check()
        is_new = doing != self.progress.doing
        self.progress = replace(self.progress, doing=doing, n_texts=n_texts, n_all_texts=n_all_texts)
        if is_new or time.monotonic() - self._written > EVERY:
            self._write()

    def check(self) -> None:
        """Raise Stopped if a stop was requested; any thread may call it."""
        if self._folder is not None and (self._folder / STOP).exists():
            raise Stopped

    def done(self, *, was_kept: bool) -> None:
        """Report that a unit is done; the remaining time is estimated from the texts of the units computed so far."""
        self._texts_left -= self._texts_of_unit
        self._texts_computed += 0 if was_kept else self._texts_of_unit
        seconds = time.monotonic() - self._began
        seconds_left = seconds / self._texts_computed * self._texts_left if self._texts_computed else None
        self.progress = replace(self.progress, done=self.progress.done + 1, seconds_left=seconds_left)
        self._write()

    def failed(self, trial: str, why: str) -> None:
        """Report a trial that could not be run."""
        if all(failure.trial != trial for failure in self.progress.failed):
            self.progress = replace(self.progress, failed=(*self.progress.failed, Failed(trial=trial, why=why)))

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """Context of the run, which reports how it ends; a stop that was requested ends it without an error."""
        try:
            yield
        except Stopped:
            self.end("stopped")
        except KeyboardInterrupt:
            self.end("stopped")
            raise
        except BaseException as error:
            self.end("failed", f"{type(error).__name__}: {error}")
            raise
        else:
            self.end("finished")

    def end(self, state: State, message: str = "") -> None:
        """Report the end."""
        self.progress = replace(self.progress, state=state, message=message, seconds_left=None, trial="", doing="")
        self._write()
        if self._folder is not None:
            (self._folder / STOP).unlink(missing_ok=True)

    def _write(self) -> None:
        self._written = time.monotonic()
        if self._folder is None:
            return
        content = json.dumps(asdict(self.progress) | asdict(self._process))
        with _writing_to(self._folder):
            write_whole(self._folder / PROGRESS, partial(Path.write_text, data=content, encoding="utf-8"))


def read_trials_progress(folder: Path) -> TrialsProgress | None:
    """Read the progress in a folder; None if there is none or it is damaged. A run whose process has died is `left`."""
    try:
        content = (folder / PROGRESS).read_bytes()
        progress, process = typed_json(content, TrialsProgress), typed_json(content, _Process)
    except (OSError, ValueError):
        return None
    if progress.state == "running" and not is_running(process.pid, process.created):
        return replace(progress, state="left")
    return progress


def stop_trials(folder: Path) -> None:
    """Request a stop of the trials whose progress is in a folder.

    Raises: AnalysisError if none are running, or the folder cannot be written.
    """
    progress = read_trials_progress(folder)
    if progress is None or progress.state != "running":
        raise AnalysisError("No probes are running, so there is nothing to stop.")
    with _writing_to(folder):
        (folder / STOP).touch()


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AnalysisError(
            f"{folder} cannot be written ({error.strerror}). Check the free space and the permissions there."
        ) from None
