"""Checkpoints of the hub: downloaded only after the reader confirms, as a link may name any of them."""

from collections.abc import Sequence
from typing import Final

import streamlit as st

from attention_sieve.core.checkpoints.hub import bytes_to_fetch, has_copy, is_offline
from attention_sieve.core.errors import FetchNeeded
from attention_sieve.dashboard import wording

_CONFIRMED: Final = "hub ids to fetch"
_IS_SILENT: Final = "hub does not answer"


def check_confirmed(name: str) -> None:
    """Raise unless a hub id is on this machine, or the reader has confirmed its download in this session.

    Raises: FetchNeeded for any other; CheckpointError if the hub reports an error.
    """
    if name not in st.session_state.get(_CONFIRMED, ()) and (n_bytes := _bytes_to_fetch(name)):
        raise FetchNeeded(name, n_bytes)


def note_silence() -> None:
    """Remember that the hub does not respond."""
    st.session_state[_IS_SILENT] = True


def out_of_reach(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """Hub ids that can neither be downloaded nor read from a local copy, and why. Makes no request to the hub.

    Returns: the reason and the ids; None if all may be available.
    """
    reason = wording.OFFLINE if is_offline() else wording.NO_ANSWER if st.session_state.get(_IS_SILENT) else None
    missing = [name for name in names if not has_copy(name)] if reason else []
    return (reason, missing) if reason and missing else None


def ask_to_fetch(error: FetchNeeded) -> None:
    """Draw the button that confirms a download."""
    st.button(
        wording.FETCH, key=f"fetch {error.name}", icon=":material/download:", on_click=_confirm, args=(error.name,)
    )


def _confirm(name: str) -> None:
    st.session_state[_CONFIRMED] = {*st.session_state.get(_CONFIRMED, ()), name}


@st.cache_resource(ttl=60, max_entries=64, show_spinner=False)
def _bytes_to_fetch(name: str) -> int:
    """Ask the hub at most once a minute, not on every click."""
    return bytes_to_fetch(name)
