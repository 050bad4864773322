"""Runs: long work in a folder, which is watched, stopped and gone on with by whatever program.

The folder of a run holds `progress.jsonl`, a report per line, what is kept of each piece that is done, and, while
somebody asks it to stop, a file named `stop`. A kill at any byte loses at most the piece that is being done.
"""

import errno
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import psutil
from safetensors import SafetensorError

from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.json_values import json_lines
from attention_sieve.core.pauses import interruptible, pausing

State = Literal["running", "finished", "stopped", "failed", "left"]
"""`left`: the process ended without a report."""
PROGRESS: Final = "progress.jsonl"
STOP: Final = "stop"
PIECES: Final = "pieces"
SAVED: Final = re.compile(r"checkpoint-(\d{1,15})", re.ASCII)
LARGEST_COUNT: Final = 1 << 53
GO_ON: Final = "Run the same command again to continue."
NEEDED: Final[dict[str, frozenset[str]]] = {
    "start": frozenset({"step"}),
    "piece": frozenset({"piece"}),
    "part": frozenset({"n_done", "n_all"}),
    "failed": frozenset({"piece", "why"}),
    "loss": frozenset({"step", "loss"}),
    "held out": frozenset({"step", "loss", "accuracy", "correlation"}),
    "validation": frozenset({"n_texts", "majority", "mean_loss"}),
    "note": frozenset({"note"}),
}
"""Required values of the report of each event."""
NEEDED_AT_ALL: Final = frozenset({"state", "pid", "created", "step", "steps", "message", "checkpoint"})
SAME_START: Final = 5.0
"""Tolerance in seconds for the start time of a process; processes that reuse a process id differ by far more."""
LAST_BYTES: Final = 20_000
"""Bytes at the end of a journal that hold its last report, where that is no longer than a long message."""
EVERY: Final = 0.5
"""Minimum number of seconds between two reports of how far a piece is."""


@dataclass(frozen=True)
class ValidationResult:
    """Performance of a checkpoint on the validation texts."""

    step: int
    loss: float
    accuracy: float | None
    """Share of texts classified correctly; None for a regression."""
    correlation: float | None
    """Pearson's r with the labels; None for classes, and if predictions or labels are constant."""


@dataclass(frozen=True)
class Validation:
    """The validation texts of a run, and the result of giving the same answer for all of them."""

    n_texts: int
    majority: float | None
    """Share of the texts in their most frequent class; None for a regression."""
    mean_loss: float | None
    """Mean squared error of the mean label of the training texts; None for classes."""


@dataclass(frozen=True)
class FailedPiece:
    """A piece of a run that could not be done."""

    piece: str
    why: str


@dataclass(frozen=True)
class Progress:
    """Progress of a run. A training is counted in steps, another run in pieces."""

    state: State
    step: int = 0
    """Number of steps or pieces that are done, in this run or before."""
    steps: int = 0
    """Their total number; 0 while unknown."""
    seconds_left: float | None = None
    losses: tuple[tuple[int, float], ...] = ()
    """Step and training loss."""
    held_out: tuple[ValidationResult, ...] = ()
    saved: tuple[int, ...] = ()
    """Steps with a saved checkpoint."""
    message: str = ""
    """Why the run failed, or what it is doing; empty while it trains."""
    checkpoint: str = ""
    """Name of the checkpoint that the run is about, of a training the one that is fine-tuned; empty without one."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, such as how many texts were truncated."""
    validation: Validation | None = None
    """None until it is known, and for a run of an earlier version."""
    piece: str = ""
    """Name of the piece that is being done."""
    n_done: int = 0
    """How much of it is done, such as texts, out of `n_all`."""
    n_all: int = 0
    failed: tuple[FailedPiece, ...] = ()

    @property
    def share(self) -> float:
        """Of the steps or pieces that are done, 0 to 1; 0 while their number is unknown."""
        return min(self.step / self.steps, 1.0) if self.steps else 0.0


def read_progress(folder: Path) -> Progress | None:
    """Read the progress of the run in a folder; None if there is no run, or none that can be read.

    Incomplete and invalid lines are ignored.
    """
    try:
        written = (folder / PROGRESS).stat()
    except OSError:
        return None
    return _reports(folder, written.st_ino, written.st_size, written.st_mtime_ns).progress(folder)


@lru_cache(maxsize=64)
def _reports(folder: Path, *_written: int) -> "_Reports":
    """What the file of reports in a folder says, read once for each state in which it was written."""
    reports = _Reports()
    for line in json_lines(folder / PROGRESS):
        reports.add(line)
    return reports


def has_ended(folder: Path) -> bool:
    """Whether the last report of the run in a folder is that of its end; reads no other."""
    try:
        with (folder / PROGRESS).open("rb") as file:
            file.seek(-min(file.seek(0, os.SEEK_END), LAST_BYTES), os.SEEK_END)
            last = json.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(last, dict) and last.get("event") == "end"


class _Reports:
    """What the reports of a run say together."""

    def __init__(self) -> None:
        self._latest: dict[str, Any] = {}
        self._losses: dict[int, float] = {}
        self._held_out: dict[int, ValidationResult] = {}
        self._notes: list[str] = []
        self._failed: dict[str, str] = {}
        self._validation: Validation | None = None

    def add(self, report: object) -> None:
        """Take a report into account; one that is incomplete or invalid changes nothing."""
        if not isinstance(report, dict) or not _is_report(report):
            return
        line = dict(report)
        match line.pop("event"):
            case "start":  # a resumed run repeats the steps after its last saved one
                self._latest = {"state": None}
                self._losses = {step: loss for step, loss in self._losses.items() if step <= line["step"]}
                self._held_out = {step: score for step, score in self._held_out.items() if step <= line["step"]}
                self._notes, self._failed = [], {}
            case "piece":
                line |= {"n_done": 0, "n_all": 0}
            case "failed":
                self._failed.setdefault(line["piece"], line["why"])
            case "loss":
                self._losses[line["step"]] = line["loss"]
            case "held out":
                self._held_out[line["step"]] = ValidationResult(**{name: line[name] for name in NEEDED["held out"]})
            case "validation":
                self._validation = Validation(**{name: line[name] for name in NEEDED["validation"]})
            case "note":
                self._notes.append(line["note"])
        self._latest |= line

    def progress(self, folder: Path | None) -> Progress | None:
        """Progress of the run in a folder; None if nothing says how it began."""
        latest = self._latest
        if not latest.keys() >= NEEDED_AT_ALL:
            return None
        return Progress(
            state=latest["state"] or ("running" if is_running(latest["pid"], latest["created"]) else "left"),
            step=latest["step"],
            steps=latest["steps"],
            seconds_left=latest.get("seconds_left"),
            losses=tuple(self._losses.items()),
            held_out=tuple(self._held_out.values()),
            saved=() if folder is None else tuple(step_of(path) for path in saved_checkpoints(folder)),
            message=latest["message"],
            checkpoint=latest["checkpoint"],
            notes=tuple(self._notes),
            validation=self._validation,
            piece=latest.get("piece", ""),
            n_done=latest.get("n_done", 0),
            n_all=latest.get("n_all", 0),
            failed=tuple(FailedPiece(piece, why) for piece, why in self._failed.items()),
        )


def _is_report(line: dict[str, Any]) -> bool:
    """Whether a line has the values that its event needs, each of the right type."""
    if not isinstance(line.get("event"), str):
        return False
    has_all = NEEDED.get(line["event"], frozenset()) <= line.keys()
    return has_all and all(KINDS[name](value) for name, value in line.items() if name in KINDS)


def is_count(value: object) -> bool:
    """Whether it is a whole number from 0 that a float holds exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def _is_number(value: object) -> bool:
    """Whether it is a number that fits a float; a loss may be infinite or NaN."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST_COUNT)


KINDS: Final[dict[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("step", "steps", "pid", "n_texts", "n_done", "n_all"), is_count),
    **dict.fromkeys(("loss", "created"), _is_number),
    **dict.fromkeys(
        ("accuracy", "correlation", "seconds_left", "majority", "mean_loss"),
        lambda value: value is None or _is_number(value),
    ),
    **dict.fromkeys(
        ("message", "checkpoint", "note", "piece", "why"),
        lambda value: isinstance(value, str),
    ),
    "state": lambda value: value is None or value in get_args(State),
}
"""Type check of each value of a report."""


def ask_to_stop(folder: Path) -> None:
    """Request a run to stop after its current step, which it keeps.

    Raises: AnalysisError if no run is in progress, or its folder cannot be written.
    """
    progress = read_progress(folder)
    if progress is None or progress.state != "running":
        raise AnalysisError(f"No run is in progress in {folder}, so there is nothing to stop.")
    try:
        (folder / STOP).touch()
    except OSError as error:
        raise AnalysisError(
            f"The run in {folder} cannot be stopped ({error.strerror or error}). Check the free space there, and try "
            "again."
        ) from None


def check_ended(folder: Path | None) -> None:
    """Raise AnalysisError if a run is in progress in a folder; in none there is no run."""
    progress = None if folder is None else read_progress(folder)
    if progress is not None and progress.state == "running":
        raise AnalysisError(f"The run in {folder} is in progress. Wait for its end, or stop it.")


def saved_checkpoints(folder: Path) -> tuple[Path, ...]:
    """Folders of a run's saved checkpoints, sorted by step."""
    steps = (path for path in folder.glob("checkpoint-*") if SAVED.fullmatch(path.name))
    return tuple(sorted((path for path in steps if (path / "config.json").is_file()), key=step_of))


def step_of(saved: Path) -> int:
    """Step of a saved checkpoint, from the name of its folder."""
    return int(saved.name.removeprefix("checkpoint-"))


def is_running(pid: int, created: float) -> bool:
    """Whether a process is still running, and not a later one with the same process id. It was created so many seconds
    after 1970."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - created) < SAME_START
    except (psutil.NoSuchProcess, psutil.AccessDenied, ValueError, OverflowError):
        return False


@contextmanager
def saving_in(folder: Path) -> Iterator[None]:
    """Context for writing to a run's folder.

    Raises: AnalysisError if writing fails.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise AnalysisError(f"Nothing can be saved in {folder} ({why}). Free some space on the disk.") from error


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, whole or not at all; a line that was left incomplete before is ended first.

    Raises: OSError.
    """
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        content = (b"" if file.read(1) in (b"", b"\n") else b"\n") + line.encode() + b"\n"
        if file.write(content) < len(content):
            file.truncate(end)  # otherwise the next line would be appended to this one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Stopped(Exception):
    """Raised to end a run between two parts of a piece, which is lost."""


@contextmanager
def _knowing_stops() -> Iterator[None]:
    """Context of work in which a library may take a stop for an error of its own, as transformers while it imports.
    Raises: Stopped in place of that error."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, Stopped):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise Stopped from None


class Journal:
    """Writes a run's reports, each line atomically.

    As a context manager it records how a run ends that does not say so itself: by an error, from the keyboard, because
    it was asked to stop, or else finished. Each report raises AnalysisError if it cannot be written.

    Attributes:
        folder: folder of the run.
        step: the last reported step; initially the step from which the run starts.
    """

    def __init__(
        self,
        folder: Path | None,
        checkpoint: str = "",
        step: int = 0,
        message: str = "",
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Start reporting, in a folder that is created if necessary; None keeps the reports in memory only.

        Args:
            checkpoint: name of the checkpoint that the run is about; of a training, the one that is fine-tuned.
            step: the saved step from which the run is resumed, or 0.
            message: first activity.
            is_wanted: once it says no, the run ends as one that is asked to stop.

        Raises: AnalysisError for a folder that cannot be written.
        """
        self.step = step
        self._folder, self._reports, self._is_wanted = folder, _Reports(), is_wanted
        self._size, self._computed = 0.0, 0.0
        self._doing, self._told = "", 0.0
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / STOP).unlink(missing_ok=True)
            except OSError as error:
                raise AnalysisError(
                    f"{shortened(str(folder))} cannot be written ({error.strerror}). Choose another folder."
                ) from None
            for line in json_lines(folder / PROGRESS):
                self._reports.add(line)
        process = {"pid": os.getpid(), "created": psutil.Process().create_time()}
        self._write("start", step=step, steps=0, checkpoint=checkpoint, message=message, **process)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None and self.progress.state == "running":
            self.end("finished")
        with suppress(AnalysisError):  # a full disk: the original error still reaches the reader
            if isinstance(error, Stopped | KeyboardInterrupt):
                self.end("stopped")
            elif isinstance(error, AnalysisError):
                self.end("failed", str(error))
            elif isinstance(error, Exception):
                self.end("failed", f"{type(error).__name__}: {error}")

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        if self._folder is None:
            raise ValueError("This run has no folder.")
        return self._folder

    @property
    def progress(self) -> Progress:
        """What was reported so far."""
        progress = self._reports.progress(self._folder)
        if progress is None:
            raise ValueError("A journal begins with a report.")
        return progress

    def doing(self, message: str) -> None:
        """Report an activity before the first step."""
        self._write("message", message=message)

    def note(self, note: str) -> None:
        """Report a remark for the user."""
        self._write("note", note=note)

    def plan(self, steps: int, size: float | None = None) -> None:
        """Report the number of steps or pieces; from now on the remaining time is estimated.

        Args:
            size: of all together, in whatever takes the time, such as texts; None for their number.
        """
        self._steps, self._from, self._began = steps, self.step, time.monotonic()
        self._size, self._computed = steps if size is None else size, 0
        self._write("steps", steps=steps, message="")

    def piece(self, name: str) -> None:
        """Report the piece that is begun."""
        self._doing = ""
        self._write("piece", piece=name, message="")

    def part(self, doing: str, n_done: int = 0, n_all: int = 0, detail: str = "") -> None:
        """Report how far the piece is, at most every half a second.

        Args:
            detail: of what is done, such as the present score.

        Raises: Stopped if a stop was requested.
        """
        self.check()
        if doing != self._doing or time.monotonic() - self._told > EVERY:
            self._doing, self._told = doing, time.monotonic()
            self._write("part", message=f"{doing}{detail}", n_done=n_done, n_all=n_all)

    def done(self, size: float = 1, *, was_kept: bool = False) -> None:
        """Report that a piece is done, whose size counts for the remaining time unless it was kept from before."""
        self.step += 1
        self._size -= size
        self._computed += 0 if was_kept else size
        seconds = time.monotonic() - self._began
        seconds_left = round(seconds / self._computed * self._size, 1) if self._computed else None
        self._write("done", step=self.step, seconds_left=seconds_left)

    def failed(self, piece: str, why: str) -> None:
        """Report a piece that could not be done."""
        self._write("failed", piece=piece, why=why)

    def validation(self, validation: Validation) -> None:
        """Report the validation texts."""
        self._write("validation", **asdict(validation))

    def loss(self, step: int, loss: float) -> None:
        """Report the mean training loss since the last report."""
        self.step = step
        per_step = (time.monotonic() - self._began) / max(step - self._from, 1)
        self._write("loss", step=step, loss=loss, seconds_left=round(per_step * (self._steps - step), 1))

    def held_out(self, measured: ValidationResult) -> None:
        """Report the validation performance."""
        self._write("held out", **asdict(measured))

    def end(self, state: State, message: str = "") -> None:
        """Report the end of the run."""
        self._write("end", state=state, message=message, seconds_left=None, piece="")
        if self._folder is not None:
            (self._folder / STOP).unlink(missing_ok=True)

    def stop_asked(self) -> bool:
        """Whether a stop was requested, or nobody wants the run any more; any thread may ask."""
        return not self._is_wanted() or (self._folder is not None and (self._folder / STOP).exists())

    def check(self) -> None:
        """Raise Stopped if a stop was requested; any thread may call it."""
        if self.stop_asked():
            raise Stopped

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Context of what comes before the first step, such as importing torch and loading weights: asked to stop, the
        run ends wherever that is. Raises: Stopped."""
        with _knowing_stops(), pausing(self.check), interruptible():
            yield

    def _write(self, event: str, **values: object) -> None:
        report = {"event": event} | values
        self._reports.add(report)
        if self._folder is not None:
            with saving_in(self._folder):
                append_line(self._folder / PROGRESS, json.dumps(report))


class KeptPieces:
    """What was found in the pieces of a run: values of JSON, a file each, named by a digest of all they depend on."""

    def __init__(self, folder: Path | None) -> None:
        """Of the run in a folder; None keeps nothing."""
        self._folder = None if folder is None else folder / PIECES

    def read(self, depends_on: object) -> Any:
        """What is kept of a piece; None if there is nothing, or it cannot be read."""
        try:
            return None if self._folder is None else json.loads(self._path(self._folder, depends_on).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, depends_on: object, result: object) -> None:
        """Keep what was found in a piece, whole or not at all.

        Raises: AnalysisError if it cannot be written.
        """
        if self._folder is None:
            return
        with saving_in(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._path(self._folder, depends_on)
            path.with_suffix(".part").write_text(json.dumps(result))
            path.with_suffix(".part").replace(path)

    def _path(self, folder: Path, depends_on: object) -> Path:
        return folder / f"{hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()}.json"


@contextmanager
def carried_out(journal: Journal, then: str = "", *, at_pauses: bool = True) -> Iterator[Journal]:
    """Context of the work of a run. Asked to stop, it says so in a line on standard error, and not by an error.

    Args:
        then: a sentence that follows, on what to do next.
        at_pauses: whether it ends at any pause of its work; False for work that itself ends at a step.

    Raises: KeyboardInterrupt with the same line after Ctrl+C.
    """
    try:
        with journal, _knowing_stops(), pausing(journal.check) if at_pauses else nullcontext():
            yield journal
    except (Stopped, KeyboardInterrupt) as end:
        progress = journal.progress
        done = f" after {progress.step:,} of {progress.steps:,}" if progress.steps else ""
        line = f"Stopped{done}. {then}".strip()
        if isinstance(end, KeyboardInterrupt):
            raise KeyboardInterrupt(line) from None
        print(line, file=sys.stderr)
