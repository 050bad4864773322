"""Checkpoints of the hub: fetched only once the reader has said so, since a link may name any."""

from typing import Final

import streamlit as st

from core.checkpoints.hub import bytes_to_fetch
from core.errors import FetchNeeded
from dashboard import wording

_CONFIRMED: Final = "hub ids to fetch"


def check_confirmed(name: str) -> None:
    """Let a hub id pass that is on this machine, or that the reader of this session wants.

    Raises: FetchNeeded for any other; CheckpointError where the hub says what is wrong with it.
    """
    if name not in st.session_state.get(_CONFIRMED, ()) and (n_bytes := _bytes_to_fetch(name)):
        raise FetchNeeded(name, n_bytes)


def ask(error: FetchNeeded) -> None:
    """Draw the button below the sentence."""
    st.button(
        wording.FETCH, key=f"fetch {error.name}", icon=":material/download:", on_click=_confirm, args=(error.name,)
    )


def _confirm(name: str) -> None:
    st.session_state[_CONFIRMED] = {*st.session_state.get(_CONFIRMED, ()), name}


@st.cache_resource(ttl=60, max_entries=64, show_spinner=False)
def _bytes_to_fetch(name: str) -> int:
    """Ask the hub only now and then, not on every click."""
    return bytes_to_fetch(name)
