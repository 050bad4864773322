"""Lets Python set the selection of a component.

The data of a component must stay the same, byte for byte, while only its selection changes; otherwise every click sends
all of it again. So the selection comes from the browser, and a selection set by Python is sent with a counter that
changes only when the component is mounted or its `reset` value changes.

Of several linked components, the browser still sends the old selection of those that Python has just changed. So each
reports with its selection the number of the last push it has received, and reports for earlier pushes are ignored;
unless the reader made the selection while the push was on its way, which the time of it tells.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import streamlit as st

Selected = TypeVar("Selected")
_OVERTAKEN: Final = object()
"""Differs from every `reset`."""


@dataclass(frozen=True)
class Selection(Generic[Selected]):
    key: str
    initial: Selected
    """Selected at first, and again whenever `reset` changes; ignored on every other run."""
    reset: Hashable = None
    """Any value; a new one makes the view take `initial`."""
    on_change: Callable[[Selected], None] | None = None
    """Called with the selection before the run that follows a click."""


def push(key: str, field: str, selection: Any, reset: Hashable) -> tuple[int, Any]:
    """The counter and the selection for the data of a view, updated when the view is new or `reset` has changed.

    Call it before the view is mounted.

    Args:
        field: The name of the view's selection in its state.
        selection: The initial selection, also taken whenever `reset` changes. JSON data.

    Returns: How often a selection has been pushed, from 1, and the last one pushed. Nothing is pushed to a view that
        has `selection` already, because the reader made it there.
    """
    memory = f"{key}:pushed"
    count, pushed, last = st.session_state.get(memory, (0, None, None))
    mounted = key in st.session_state
    if count and mounted and last != reset and _current(key, field, count, pushed) == selection:
        st.session_state[memory] = (count, pushed, reset)
    elif not count or not mounted or last != reset:
        count, pushed = count + 1, selection
        st.session_state[memory] = (count, pushed, reset)
        if mounted:
            st.session_state[key] = {field: selection}
    return count, pushed


def selected(state: object, field: str, count: int) -> Any:
    """The selection in the state of a view; None if there is none, or if it belongs to an earlier push than `count`.

    Args:
        state: What the browser sent: the selection, or `{"rev": ..., "value": ...}` with the push it knows of.
    """
    value = state.get(field) if isinstance(state, Mapping) else None
    if isinstance(value, Mapping) and "rev" in value:
        return value.get("value") if value["rev"] == count else None
    return value


def late_choice(key: str, field: str, count: int) -> Any:
    """What the reader has just selected in a view that did not know of the last push; None if there is nothing.

    Whatever Python selects next is pushed, as the view will have taken the last push in place of it. Call it once for
    every report, as it remembers the time of the last one.

    A report is `{"rev": ..., "value": ..., "at": milliseconds}`.
    """
    state = st.session_state.get(key)
    report = state.get(field) if isinstance(state, Mapping) else None
    if not isinstance(report, Mapping):
        return None
    at = report.get("at")
    if not isinstance(at, int) or at <= st.session_state.get(f"{key}:at", 0):
        return None
    st.session_state[f"{key}:at"] = at
    if report.get("rev") == count:
        return None
    memory = f"{key}:pushed"
    _, pushed, _ = st.session_state[memory]
    st.session_state[memory] = (count, pushed, _OVERTAKEN)
    return report.get("value")


def _current(key: str, field: str, count: int, pushed: Any) -> Any:
    value = selected(st.session_state[key], field, count)
    return pushed if value is None else value
