"""Runs as pages begin, watch and stop them: a command of this project in a process of its own, or work in a thread.

The folder of a run says how far it is (attention_sieve.core.running), whichever program began it. A run that this
program began ends with it, and goes on from what it kept.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from threading import Lock, Thread
from typing import IO, Final

import streamlit as st

from attention_sieve import ROOT
from attention_sieve.cache.serving.requests import log_and_release
from attention_sieve.core.begun_runs import remember_run
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.running import (
    PROGRESS,
    STOP,
    Journal,
    Progress,
    State,
    Stopped,
    ask_to_stop,
    read_progress,
    saving_in,
)
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.progress import stop_button
from attention_sieve.dashboard.public import check_not_public, is_public
from attention_sieve.dashboard.run_kinds import KINDS, RunKind
from attention_sieve.dashboard.web.session import BEGUN_BY, session_id, visitor

LAST_BYTES: Final = 4_000
"""Bytes read from the end of standard error: enough for the last line."""
LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a run that is on."""
ENDS_WITHIN: Final = 5.0
"""Seconds for a run to keep its step when this program ends."""
UNWATCHED_SECONDS: Final = 300.0
"""Work of this program that nobody has looked at for so long ends, as if it was asked to stop."""
ADDRESS: Final = "address.json"
"""File with the query parameters of the page that began a run."""
DIGITS: Final = 16
"""Of the digest in the name of a run's folder."""


@dataclass(eq=False, kw_only=True)
class _Program:
    """The process of a run."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    """File that receives its standard error."""
    was_ended: bool = False
    """Whether it was ended here before it could be asked to stop."""
    began: float = field(default_factory=time.time)
    """In seconds since 1970."""

    def has_reported(self, folder: Path) -> bool:
        """Whether the last report of the run in a folder is its own."""
        try:
            return (folder / PROGRESS).stat().st_mtime >= self.began
        except OSError:
            return False

    def end(self) -> None:
        """Wait for the process, and terminate it if that takes long."""
        try:
            self.process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(ENDS_WITHIN)
        self.errors.close()

    def last_line(self) -> str:
        """The last line on standard error that is not empty; empty if there is none."""
        number = self.errors.fileno()
        start = max(0, os.fstat(number).st_size - LAST_BYTES)
        end = os.pread(number, LAST_BYTES, start).decode(errors="replace")  # leaves the process its place in the file
        return next((line.strip() for line in reversed(end.splitlines()) if line.strip()), "")


_programs: Final[dict[Path, _Program]] = {}
"""The last process that this program began for the run in a folder."""
_threads: Final[dict[Path, Thread]] = {}
"""The last thread that this program began for the run in a folder."""
_begun_by: Final[dict[Path, str | None]] = {}
"""The visitor who began that thread."""
_looked_at: Final[dict[Path, float]] = {}
"""When the run in a folder was last looked at."""
_lock: Final = Lock()


def begin(folder: Path, command: Sequence[str], working_folder: Path | None = None) -> None:
    """Begin a command of this project whose run is in a folder.

    Args:
        working_folder: on which relative paths in the command depend; None for that of this program.

    Raises: AnalysisError if its process cannot be started, and on a public server.
    """
    check_not_public()
    remember_run(folder, tuple(command))
    # A file never blocks when unread, unlike a pipe, and is deleted when closed.
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "attention_sieve", *command],
            env=environment(),
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # else Ctrl+C would end the run before it can keep its step
        )
    except OSError as error:
        errors.close()
        raise AnalysisError(wording.not_started(error.strerror or str(error))) from None
    if (previous := _programs.pop(folder, None)) is not None:
        previous.end()  # it may have reported its end, and still be on its way out
    _programs[folder] = _Program(process=process, errors=errors)


def kind_of(folder: Path) -> RunKind | None:
    """The kind of the run in a folder where pages begin runs; None for a folder elsewhere."""
    if not folder.is_relative_to(program_folder()):
        return None
    place = folder.relative_to(program_folder())
    kind = next((kind for kind in KINDS.values() if kind.place and place.match(kind.place)), None)
    if kind is KINDS["finetune"] and (progress := read_progress(folder)) is not None and not progress.checkpoint:
        return KINDS["laboratory"]  # it begins with random weights
    return kind


def folder_of(kind: str, *depends_on: object) -> Path:
    """Folder of a run of this program, the same in every session and after a restart.

    Args:
        kind: one of KINDS.
        depends_on: everything on which its results depend: plain values, which Python writes in one way.
    """
    return program_folder() / "runs" / f"{kind}-{sha256(repr(depends_on).encode()).hexdigest()[:DIGITS]}"


def begin_here(folder: Path, work: Callable[[Journal], object], checkpoint: str = "") -> None:
    """Begin the run in a folder as work of this program, in a thread; where it is on, it goes on.

    It goes on while its readers are on other pages, and ends, as if it was asked to stop, once nobody has looked at it
    for UNWATCHED_SECONDS.

    Args:
        work: reports to the journal, whose `part` and `check` end it when it is asked to stop, and keeps what is done.

    Raises: AnalysisError for a folder that cannot be written, and on a public server while other work of the visitor is
        on.
    """
    session = visitor()
    others = (other for other, thread in _threads.items() if thread.is_alive() and other != folder)
    if is_public() and any(_begun_by[other] == session for other in others):
        raise AnalysisError(wording.ONE_RUN_EACH)
    atexit.register(end)  # once more, so that it comes before the end of the workers that the thread waits for

    def do() -> None:
        BEGUN_BY.set(session)
        try:
            with suppress(Stopped), journal:
                work(journal)
        except Exception as error:
            log_and_release(error)  # the journal says why it failed

    with _lock:
        if is_on(folder):
            return
        _looked_at[folder] = time.monotonic()
        journal = Journal(
            folder, checkpoint, is_wanted=lambda: time.monotonic() - _looked_at[folder] < UNWATCHED_SECONDS
        )
        _begun_by[folder] = session
        _keep_address(folder)
        _threads[folder] = Thread(target=do, name=folder.name, daemon=True)
        _threads[folder].start()


def _keep_address(folder: Path) -> None:
    """Keep with a run the query parameters of the page that began it, which show it."""
    if session_id() is not None:
        with saving_in(folder):
            values = {name: st.query_params.get_all(name) for name in st.query_params}
            (folder / ADDRESS).write_text(json.dumps(values), encoding="utf-8")


def address_of(folder: Path) -> list[tuple[str, str]]:
    """Those query parameters; none where they were not kept, or cannot be read."""
    try:
        values: dict[str, tuple[str, ...]] = typed_json((folder / ADDRESS).read_bytes(), dict[str, tuple[str, ...]])
    except (OSError, ValueError):
        return []
    return [(name, value) for name, of_name in values.items() for value in of_name]


def own_work() -> tuple[Path, ...]:
    """Folders of the work of this program that the visitor of this session began."""
    return tuple(folder for folder, begun_by in _begun_by.items() if begun_by == visitor())


def forget_ended(before: float) -> None:
    """Delete what is left of work of this program that ended before a time, in seconds since 1970."""
    for reports in (program_folder() / "runs").glob(f"*/{PROGRESS}"):
        with suppress(OSError):  # it has gone meanwhile
            progress = read_progress(reports.parent)
            if reports.stat().st_mtime < before and (progress is None or progress.state != "running"):
                rmtree(reports.parent)


def begin_button(folder: Path, key: str, label: str, work: Callable[[Journal], object], checkpoint: str = "") -> None:
    """A button that begins work of this program, as of `begin_here`."""
    if st.button(label, key=key, icon=":material/play_circle:"):
        with errors_shown():
            begin_here(folder, work, checkpoint)
            st.rerun()


def options_of(values: Mapping[str, object]) -> list[str]:
    """Options with their values, as `--option=value`, so that no value is taken for an option; None has no option."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]


def _state_of(folder: Path, recorded: State | None) -> tuple[State | None, str]:
    """The state of the run in a folder, and why it failed where only its process knows.

    Args:
        recorded: what the folder says; None where it says nothing.
    """
    thread, program = _threads.get(folder), _programs.get(folder)
    if recorded == "running" and thread is not None and not thread.is_alive():
        return "left", ""  # there was no room to report its end
    code = 0 if program is None else program.process.poll()
    if program is not None and code is None and not program.has_reported(folder):
        return "running", ""  # the folder says how the run before it ended
    if program is None or not code or recorded in ("finished", "stopped", "failed"):
        return recorded, ""
    if code > 0:
        # Status 2 comes with a sentence of ours.
        line = program.last_line()
        return "failed", line if code == 2 and line else wording.ended_badly(code, line)
    return "stopped" if program.was_ended else recorded, ""


def look(folder: Path) -> Progress | None:
    """Progress of the run in a folder, whichever program began it; None where there is none."""
    _looked_at[folder] = time.monotonic()
    return peek(folder)


def peek(folder: Path) -> Progress | None:
    """The same, but work of this program is none the more looked at."""
    progress = read_progress(folder)
    state, why = _state_of(folder, None if progress is None else progress.state)
    if state is None or (progress is not None and progress.state == state):
        return progress
    return replace(progress or Progress(state), state=state, message=why, seconds_left=None)


def is_on(folder: Path) -> bool:
    progress = look(folder)
    return progress is not None and progress.state == "running"


def is_stopping(folder: Path) -> bool:
    return (folder / STOP).exists()


def stop(folder: Path) -> None:
    """Ask the run in a folder to stop after its current step, which it keeps; one that has written nothing yet is ended
    at once."""
    try:
        ask_to_stop(folder)
    except AnalysisError:
        if folder in _programs:
            _programs[folder].was_ended = True
            _programs[folder].process.terminate()


def is_recent(folder: Path) -> bool:
    """Whether the run in a folder is on, or was begun since this program began."""
    return folder in _programs or is_on(folder)


def begun_here() -> tuple[Path, ...]:
    """Folders of the runs that this program began and that are on; not of one that has ended, and whose process is on
    its way out."""
    return tuple(
        folder
        for folder, program in list(_programs.items())
        if program.process.poll() is None and (progress := peek(folder)) is not None and progress.state == "running"
    )


def panel(
    folder: Path,
    key: str,
    say: Callable[[Progress], str],
    *,
    kind: RunKind | None = None,
    changes: Callable[[Progress], object] = lambda progress: progress.step,
) -> None:
    """The panel of a run that is on: how far it is, and a button that stops it.

    Args:
        say: one sentence on what it does; a reader's words in it are escaped here.
        kind: of the run; None for that of its folder.
        changes: what the rest of the page shows of the run; the page is drawn again when it is another.
    """
    before = look(folder)

    @st.fragment(run_every=LOOK_SECONDS)
    def refreshed() -> None:
        progress = look(folder)
        if progress is None or progress.state != "running" or before is None or changes(progress) != changes(before):
            st.rerun()
        st.progress(progress.share, plain(say(progress)))
        stop_of(f"stop {key}", folder, kind)

    with st.container(border=True, key=key):
        refreshed()


def stop_of(key: str, folder: Path, kind: RunKind | None = None) -> None:
    """A button that stops the run in a folder, of a kind, or of that of its folder; or that it is stopping."""
    of_kind = kind or kind_of(folder)
    if of_kind is None:
        raise ValueError(f"No kind of run is kept in {folder}.")
    stop_button(key, partial(stop, folder), of_kind.stop_help, of_kind.stopping if is_stopping(folder) else "")


@atexit.register
def end() -> None:
    """Ask the runs that this program began to keep their step and end; terminate those that do not, and forget all."""
    for folder in begun_here():
        stop(folder)
    for folder, thread in _threads.items():
        if thread.is_alive():
            with suppress(AnalysisError):  # it has ended meanwhile
                ask_to_stop(folder)
    while _threads:
        _threads.popitem()[1].join(ENDS_WITHIN)
    while _programs:
        _, program = _programs.popitem()
        program.end()


def environment() -> dict[str, str]:
    """Environment of this process, with the project on the path, so that the working folder can stay the same."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
