"""What Streamlit knows of a session, of its link and of a run, but tells in no public way."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

BEGUN_BY: Final[ContextVar[str | None]] = ContextVar("begun by", default=None)
"""Id of the session that began the work of a thread."""


def session_id() -> str | None:
    """Id of the session whose script runs in this thread; None outside of one."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


def visitor() -> str | None:
    """Id of the session that this thread works for: its own, or the one that began its work; None for neither."""
    return session_id() or BEGUN_BY.get()


def has_stepped_back() -> bool:
    """Whether the browser's Back or Forward led to this run; False where Streamlit does not tell."""
    return getattr(get_script_run_ctx(), "is_history_navigation", False)


def restore_parameters() -> None:
    """Restore all parameters of the page that Back leads to.

    Streamlit drops those bound to a widget of the previous page, such as the test settings, which both pages have.
    """
    context = get_script_run_ctx()
    if context is None:
        return
    missing = {name: values for name, values in parse_qs(context.query_string).items() if name not in st.query_params}
    if missing:
        st.query_params.update(missing)
        with context.session_state.query_params() as parameters:
            parameters.set_initial_query_params(context.query_string)


def unbound_parameters() -> dict[str, list[str]]:
    """The parameters in the address bar that no widget holds; Streamlit lets nothing else set those of a widget."""
    context = get_script_run_ctx()
    assert context is not None, "pages run in a session"
    with context.session_state.query_params() as parameters:
        return {name: parameters.get_all(name) for name in parameters if not parameters.is_bound(name)}


@contextmanager
def unseen() -> Iterator[None]:
    """What is drawn inside is not sent, and its keys may be those of other parts of the page.

    Streamlit has no such mode: for this long its context of the run sends nothing, and knows of no other elements. A
    widget has its value of the session, and is forgotten with the run, like that of a closed tab.
    """
    context = get_script_run_ctx()
    assert context is not None, "pages run in a session"
    send, shared = context._enqueue, context.shared
    context._enqueue, context.shared = lambda _: None, type(shared)()
    try:
        yield
    finally:
        context._enqueue, context.shared = send, shared
