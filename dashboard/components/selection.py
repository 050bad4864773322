"""When Python, not the reader, decides what a hand-made view has selected.

A view's data must stay the same, byte for byte, while only its selection changes; otherwise every click sends the whole
view again. So the selection travels from the browser alone, and Python's own wish travels beside a counter that moves
only when the view is mounted anew or its `reset` token changes.

Of several views that follow each other, those that were told sit in a browser that has not said so yet: with every run
it sends what they had before. So such a view says with a selection which push it knows of, and what it says of an
earlier one counts no more.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import streamlit as st


def push(key: str, field: str, wanted: Any, reset: Hashable) -> tuple[int, Any]:
    """The counter and the selection that a view's data carry, updated when the view is new or `reset` has changed.

    Call it before the view is mounted.

    Args:
        key: The view's key in the session state.
        field: The name of the view's selection in its state.
        wanted: The selection to start from, and to return to whenever `reset` changes. JSON data.
        reset: Any value; a new one makes the view take `wanted`.

    Returns: How often a selection has been pushed, from 1, and the selection that was pushed last. A view that has
        `wanted` already, because it was the one that the reader used, is pushed nothing.
    """
    memory = f"{key}:pushed"
    count, pushed, last = st.session_state.get(memory, (0, None, None))
    mounted = key in st.session_state
    if count and mounted and last != reset and _held(key, field, count, pushed) == wanted:
        st.session_state[memory] = (count, pushed, reset)
    elif not count or not mounted or last != reset:
        count, pushed = count + 1, wanted
        st.session_state[memory] = (count, pushed, reset)
        if mounted:
            st.session_state[key] = {field: wanted}
    return count, pushed


def said(state: object, field: str, count: int) -> Any:
    """What a view's state says is selected; None where it says nothing, or says it of an earlier push.

    Args:
        state: What the browser sent: the selection, or `{"rev": ..., "value": ...}` with the push it knows of.
        field: The name of the view's selection in its state.
        count: How often a selection has been pushed.
    """
    answer = state.get(field) if isinstance(state, Mapping) else None
    if isinstance(answer, Mapping) and "rev" in answer:
        return answer.get("value") if answer["rev"] == count else None
    return answer


def _held(key: str, field: str, count: int, pushed: Any) -> Any:
    answer = said(st.session_state[key], field, count)
    return pushed if answer is None else answer
