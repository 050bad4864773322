"""Scrolls to a place of the page, once, where what a reader asked for elsewhere on the page is drawn."""

from typing import Final

import streamlit as st

from attention_sieve.dashboard.components.source import Source, joined

_ASKED: Final = "place to scroll to"
_mount: Final = Source(name="into_view", js=joined("into_view/into_view.js")).registered()


def scroll_to(place: str) -> None:
    """Have the next run scroll to a place; a callback, or part of one."""
    st.session_state[_ASKED] = place


def mark_place(place: str) -> None:
    """Call it where the place begins."""
    with st.container(height="content", gap=None):  # keeps the places of what follows, whether or not it is empty
        if st.session_state.get(_ASKED) == place:
            del st.session_state[_ASKED]
            _mount(key=f"scrolled to {place}", height="content")
