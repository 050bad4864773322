"""What components share: their files and data for the browser, with Streamlit or not, and selections that Python sets.

The data of a component must stay the same, byte for byte, while only its selection changes; otherwise every click sends
all of it again. So the selection comes from the browser, and a selection set by Python is sent with a counter that
changes only when the component is mounted or its `reset` value changes.
Of several linked components, the browser still sends the old selection of those that Python has just changed. So each
reports with its selection the number of the last push it has received, and reports for earlier pushes are ignored;
unless the reader made the selection while the push was on its way, which the time of it tells.
"""

import base64
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import streamlit as st
from jaxtyping import Float, UInt8

from attention_sieve.dashboard.figures.appearance import RoleLook

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Source:
    """Markup, styles and one script, whose default export takes data and an element as Streamlit gives them."""

    name: str
    html: str = ""
    css: str = ""
    js: str

    def registered(self) -> Any:
        """The function by which Streamlit mounts it."""
        return st.components.v2.component(
            f"attention_sieve.{self.name}", html=self.html or None, css=self.css or None, js=self.js
        )


def joined(*paths: str) -> str:
    """Files of this folder in this order, as one: a component takes a single script, and a single style sheet."""
    return "\n".join((_FOLDER / path).read_text("utf-8") for path in paths)


def quantised(attention: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes"]:
    """Square roots in 256 steps: errors of 0.004 near a weight of 1 and 0.000004 near 0, at one byte a weight."""
    return np.rint(np.sqrt(np.clip(attention, 0, 1)) * 255).astype(np.uint8)


def base64_of(array: np.ndarray) -> str:
    """The bytes of an array, in C order, as text that JSON can hold; `bytesOf` in `page.js` reads them."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def look_data(look: RoleLook) -> dict[str, str]:
    """How a role is drawn in a view."""
    return {"label": look.label, "letter": look.letter, "color": look.color, "ink": look.ink}


def as_text(data: Mapping[str, Any]) -> dict[str, str]:
    """Data of the first screen as JSON text, which `dataOf` in `page.js` reads.

    Streamlit searches every list and dict passed to a component for tables, and imports pandas to do so, which would
    delay the first grid by half a second or more. It passes text on unchanged.
    """
    return {"text": json.dumps(data)}


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


def push(key: str, field: str, selection: Any, reset: Hashable, *, again: bool = False) -> tuple[int, Any]:
    """The counter and the selection for the data of a view, updated when the view is new or `reset` has changed.

    Call it before the view is mounted.

    Args:
        field: The name of the view's selection in its state.
        selection: The initial selection, also taken whenever `reset` changes. JSON data.
        again: Whether it is pushed also to a view that has it: one that drops its selection with the text on which it
            was made.

    Returns: How often a selection has been pushed, from 1, and the last one pushed. Nothing is pushed to a view that
        has `selection` already, because the reader made it there.
    """
    memory = f"{key}:pushed"
    count, pushed, last = st.session_state.get(memory, (0, None, None))
    mounted = key in st.session_state
    if count and mounted and last != reset and not again and _current(key, field, count, pushed) == selection:
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
