"""Long work under a progress bar that can be stopped, and a fixed container for what is shown meanwhile."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import wraps
from threading import Condition, Thread
from typing import Final, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.dashboard import wording

Done = TypeVar("Done")
Arguments = ParamSpec("Arguments")
LOOK_SECONDS: Final = 0.2
"""Maximum delay until a waiting run ends after its reader does something else."""


def in_its_place(work: Callable[Arguments, Done]) -> Callable[Arguments, Done]:
    """Decorator: draw what a function shows while it works in a container that exists on every run.

    Without it, the next run, which does not wait, would draw all that follows one position higher: Streamlit's front
    end would rebuild it, and lose an upload in progress.
    """

    @wraps(work)
    def placed(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Done:
        with st.container():
            return work(*args, **kwargs)

    return placed


def let_leave(work: Callable[[], Done]) -> Done:
    """Run long work that neither draws nor reports progress, and return its result.

    The work runs in a separate thread. If the reader does something else meanwhile, the run of the page ends here, as
    it does wherever it draws, and the work continues.

    Raises: what the work raises.
    """
    future = Future[Done]()

    def do() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    Thread(target=do, name="long work", daemon=True).start()  # an executor's thread would keep the program from ending
    while not future.done():
        wait([future], LOOK_SECONDS)
        st.session_state.get("page")  # Streamlit ends a run only when it is called
    return future.result()


def with_progress(question: object, work: Callable[[Report], Done], doing: str = wording.SCORING) -> Done | None:
    """Do long work under a progress bar, unless the reader has stopped it; the work itself stores finished parts.

    Streamlit ends a run when the reader does something, so a click on Stop arrives as the next run.

    Args:
        question: what the work is about; hashable. Stopping holds for this question only.
        work: takes the callback that reports progress.

    Returns: the result of the work; None if it is stopped.
    """
    placeholder = st.empty()
    with placeholder.container():
        if st.session_state.get("stopped") == hash(question):
            st.info(wording.STOPPED)
            st.button(wording.GO_ON, icon=":material/play_circle:", on_click=_remember_stopped, args=(None,))
            return None
        with st.container(horizontal=True, vertical_alignment="center", key=f"progress {hash(question)}"):
            bar = st.progress(0.0, wording.BEGUN if doing == wording.SCORING else f"{doing} ...")
            st.button(
                wording.STOP,
                key=f"stop {hash(question)}",
                icon=":material/stop_circle:",
                on_click=_remember_stopped,
                args=(hash(question),),
            )
    try:
        return work(_report_on(bar, doing))
    finally:
        placeholder.empty()


class Turns:
    """Lets a bounded number of threads work at once; whoever comes later waits, in the order of arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tickets: list[object] = []
        self._changed = Condition()

    @contextmanager
    def turn(self, waiting: Callable[[int], None]) -> Iterator[None]:
        """Wait for a turn, and hold it.

        Args:
            waiting: called while waiting with the number of turns before this one; if it raises, waiting ends.
        """
        ticket = object()
        with self._changed:
            self._tickets.append(ticket)
        try:
            while (n_before := self._tickets.index(ticket) + 1 - self._most) > 0:
                waiting(n_before)
                with self._changed:
                    self._changed.wait(LOOK_SECONDS)
            yield
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()


def stop_button(key: str, stop: Callable[[], None], help: str, stopping: str = "") -> None:
    """A button that stops a run, or in its place the sentence that it is stopping."""
    if stopping:
        st.markdown(stopping)
    else:
        st.button(wording.STOP, key=key, icon=":material/stop_circle:", help=help, on_click=stop)


def _remember_stopped(question: int | None) -> None:
    st.session_state["stopped"] = question


def _report_on(bar: DeltaGenerator, doing: str) -> Report:
    """A callback that shows progress in a bar, with an estimate of the time left."""

    def show(status: Status) -> None:
        is_doing = wording.PARSING if status.is_parsing else doing
        text = wording.scoring(status.done, status.total, status.seconds_left, status.n_waiting_before, is_doing)
        bar.progress(status.done / max(status.total, 1), text)

    return show
