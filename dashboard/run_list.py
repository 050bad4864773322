"""The list of runs, which a quiet button on every page opens: what each is, how far, and what can be done with it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.core.begun_runs import BegunRun, begun_runs
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.running import PROGRESS, has_ended
from attention_sieve.dashboard import runs, wording
from attention_sieve.dashboard.offers import offered_results
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.run_kinds import KINDS, RunKind

MOST: Final = 30
"""Runs that are listed, the newest first."""
REFUSED: Final = "run that could not go on"
"""Key of why not."""
GOES_ON: Final = ("stopped", "failed", "left")


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    folder: Path
    kind: RunKind
    heard: float
    """When it last reported, in seconds since 1970."""
    begun: BegunRun | None
    """How its command was given; None where it is work of this program, or of an earlier version."""

    @property
    def name(self) -> str:
        """Of its folder, where a user has named it."""
        is_named = self.folder.parent == checkpoints_folder() or runs.kind_of(self.folder) is None
        return self.folder.name if is_named else ""

    @property
    def key(self) -> str:
        return f"run {self.folder}"


def button() -> None:
    """The quiet button with the number of runs that are on."""
    n_on = sum(_is_on(run.folder) for run in listed())
    if st.button(
        wording.runs_on(n_on), key="runs", icon=":material/checklist:", type="tertiary", help=wording.RUNS_HELP
    ):
        st.session_state.pop(REFUSED, None)
        _dialog()


def listed() -> list[ListedRun]:
    """Runs of whatever kind that whichever program began, the newest first; for a visitor of a public server those that
    the visitor began."""
    found: dict[Path, ListedRun] = {}
    for folder, kind, begun in _folders():
        try:
            heard = (folder / PROGRESS).stat().st_mtime
        except FileNotFoundError:
            if folder not in runs.begun_here():
                continue  # it has not begun
            heard = time.time()
        except OSError:
            heard = 0.0  # the row says that it cannot be read
        found.setdefault(folder, ListedRun(folder=folder, kind=kind, heard=heard, begun=begun))
    return sorted(found.values(), key=lambda run: -run.heard)[:MOST]


def _folders() -> Iterator[tuple[Path, RunKind, BegunRun | None]]:
    """Folders that may hold a run, first those whose command is known."""
    if is_public():
        yield from ((folder, kind, None) for folder in runs.own_work() if (kind := runs.kind_of(folder)) is not None)
        return
    known = {run.folder: run for run in begun_runs() if run.command and run.command[0] in KINDS}
    yield from ((folder, KINDS[run.command[0]], run) for folder, run in known.items())
    for place in filter(None, (kind.place for kind in KINDS.values())):
        for folder in program_folder().glob(place):
            if folder not in known and (kind := runs.kind_of(folder)) is not None:
                yield folder, kind, None
    yield from ((folder, KINDS["corpus"], None) for folder in offered_results().values() if folder not in known)


def _is_on(folder: Path) -> bool:
    if has_ended(folder) and folder not in runs.begun_here():  # reads no other report of it
        return False
    progress = runs.peek(folder)
    return progress is not None and progress.state == "running"


@st.dialog(wording.RUNS, width="large")
def _dialog() -> None:
    @st.fragment(run_every=runs.LOOK_SECONDS)
    def rows() -> None:
        shown = listed()
        if refused := st.session_state.get(REFUSED):
            st.error(plain(refused), icon=":material/error:")
        if not shown:
            st.markdown(wording.NO_RUNS)
        for run in shown:
            with st.container(border=True, key=run.key, gap="xsmall"):
                _row(run)

    rows()


def _row(run: ListedRun) -> None:
    progress = runs.look(run.folder)
    of = "" if progress is None else progress.checkpoint
    st.markdown(wording.run_head(run.kind.title, plain(run.name), plain(of)))
    if progress is None:
        st.markdown(wording.run_unreadable(plain(shortened(str(run.folder)))))
        return
    line = plain(wording.run_state(progress))
    if progress.state == "running":
        st.progress(progress.share, line)
    else:
        st.markdown(line)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if progress.state == "running":
            runs.stop_of(f"stop {run.key}", run.folder, run.kind)
        elif run.begun is not None and progress.state in GOES_ON:
            key = f"go on {run.key}"
            st.button(wording.GO_ON, key=key, icon=":material/play_circle:", on_click=_go_on, args=(run, run.begun))
        pages = st.session_state["pages"]
        if run.kind.page in pages:
            st.page_link(
                pages[run.kind.page],
                label=wording.OPEN,
                icon=":material/open_in_new:",
                query_params=dict(runs.address_of(run.folder) or run.kind.parameters(run.folder, progress)),
            )
        st.caption(wording.heard(time.time() - run.heard))


def _go_on(run: ListedRun, begun: BegunRun) -> None:
    st.session_state.pop(REFUSED, None)
    others = (other for other in listed() if other.kind.is_training and _is_on(other.folder))
    try:
        if run.kind.is_training and (other := next(others, None)) is not None:
            raise AnalysisError(wording.one_at_a_time(other.folder.name))
        more = [option for option in run.kind.resume if option not in begun.command]
        runs.begin(run.folder, (*begun.command, *more), begun.working_folder)
    except AnalysisError as error:
        st.session_state[REFUSED] = str(error)
