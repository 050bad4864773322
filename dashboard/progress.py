"""Long work under a progress bar that can be stopped, and the place where a page says that it works."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache.serving.requests import Report, Status
from dashboard import wording

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")


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
