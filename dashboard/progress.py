"""Long work under a progress bar that can be stopped, and the place where a page says that it works."""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache.serving.requests import Report, Status
from cache.serving.run import Run
from dashboard import wording

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")
LOOK_SECONDS: Final = 0.2
"""Longest time until a run ends whose reader does something else while it waits."""


def in_its_place(work: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """Let whatever a function shows while it works stand in one place, which is there on every run.

    Without it, the next run, which has nothing to wait for, would draw everything that follows one place higher:
    Streamlit's front end would build all of it anew, and lose an upload that is under way.
    """

    @wraps(work)
    def placed(*args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        with st.container():
            return work(*args, **kwargs)

    return placed


def let_leave(work: Callable[[], Answer]) -> Answer:
    """What long work gives that neither draws nor reports.

    It is done in a thread of its own. Where the reader does something else meanwhile, the run of the page ends here, as
    it does wherever it draws, and the work goes on by itself.

    Raises: what the work raises.
    """
    run: Run[None, Answer] = Run(lambda _, keep: keep(work()), None, name="long work", patience=None)
    while run.is_on:
        run.wait(LOOK_SECONDS)
        st.session_state.get("page")  # Streamlit ends a run only where something is asked of it
    if run.results is None:
        raise run.error or RuntimeError("Long work gave nothing.")
    return run.results


def with_progress(question: object, work: Callable[[Report], Answer], doing: str = wording.SCORING) -> Answer | None:
    """Do long work under a progress bar, unless the reader has stopped it; what is finished is kept by the work itself.

    Streamlit ends a run when the reader does something, so the click on Stop arrives as the next run.

    Args:
        question: what the work is about; hashable. Stopping holds for this question only.
        work: takes the callback that reports progress.
        doing: what the bar says is done to the texts.

    Returns: what the work gives; None when it is stopped.
    """
    place = st.empty()
    with place.container():
        if st.session_state.get("stopped") == hash(question):
            st.info(wording.STOPPED)
            st.button(wording.GO_ON, icon=":material/play_circle:", on_click=_remember_stopped, args=(None,))
            return None
        bar = st.progress(0.0, wording.BEGUN if doing == wording.SCORING else f"{doing} ...")
        st.button(
            wording.STOP,
            key=f"stop {hash(question)}",
            icon=":material/stop_circle:",
            on_click=_remember_stopped,
            args=(hash(question),),
        )
    try:
        return work(_shown_on(bar, doing))
    finally:
        place.empty()


def _remember_stopped(question: int | None) -> None:
    st.session_state["stopped"] = question


def _shown_on(bar: DeltaGenerator, doing: str) -> Report:
    """Progress as a bar with an estimate."""

    def show(status: Status) -> None:
        said = wording.scoring(status.done, status.total, status.seconds_left, status.n_waiting_before, doing)
        bar.progress(status.done / max(status.total, 1), said)

    return show
