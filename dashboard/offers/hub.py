"""Checkpoints of the hub: downloaded only after the reader confirms, since a link may name any of them."""

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.checkpoints.hub import bytes_to_fetch, has_copy, is_offline
from core.errors import FetchNeeded
from dashboard import wording

_CONFIRMED: Final = "hub ids to fetch"
_IS_SILENT: Final = "hub does not answer"


def check_confirmed(name: str) -> None:
    """Raise unless a hub id is on this machine, or the reader has confirmed its download in this session.

    Raises: FetchNeeded for any other; CheckpointError where the hub says what is wrong with it.
    """
    if name not in st.session_state.get(_CONFIRMED, ()) and (n_bytes := _bytes_to_fetch(name)):
        raise FetchNeeded(name, n_bytes)


def note_silence() -> None:
    """Remember that the hub does not answer."""
    st.session_state[_IS_SILENT] = True


def out_of_reach(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """Which hub ids can neither be fetched nor read from a copy, and why; never asks the hub.

    Returns: the reason and the ids; None where each may be reached, as far as is known.
    """
    why = wording.OFFLINE if is_offline() else wording.NO_ANSWER if st.session_state.get(_IS_SILENT) else None
    missing = [name for name in names if not has_copy(name)] if why else []
    return (why, missing) if why and missing else None


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
