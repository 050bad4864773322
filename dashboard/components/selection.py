"""When Python, not the reader, decides what a hand-made view has selected.

A view's data must stay the same, byte for byte, while only its selection changes; otherwise every click sends the whole
view again. So the selection travels from the browser alone, and Python's own wish travels beside a counter that moves
only when the view is mounted anew or its `reset` token changes.
"""

from collections.abc import Hashable
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

    Returns: How often a selection has been pushed, from 1, and the selection that was pushed last.
    """
    memory = f"{key}:pushed"
    count, pushed, last = st.session_state.get(memory, (0, None, None))
    mounted = key in st.session_state
    if not count or not mounted or last != reset:
        count, pushed = count + 1, wanted
        st.session_state[memory] = (count, pushed, reset)
        if mounted:
            st.session_state[key] = {field: wanted}
    return count, pushed
