"""Draws a part of a page that no browser shows, for what it computes."""

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.runtime.scriptrunner import get_script_run_ctx


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
