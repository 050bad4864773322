"""Presenting: large type and no sidebar, for a projector."""

from pathlib import Path
from typing import Final

import streamlit as st

from dashboard import state
from dashboard.views.lessons.content import say
from dashboard.views.lessons.course import language

_STYLE: Final = Path(__file__).with_name("present.css")


def lay_out() -> None:
    """Apply the layout for a projector while presenting."""
    if state.is_presenting():
        st.html(f"<style>{_STYLE.read_text('utf-8')}</style>")


def button() -> None:
    """Draw the button that starts or ends presenting."""
    is_on = state.is_presenting()
    st.button(
        say(language(), "stop_presenting" if is_on else "present"),
        key="switch presenting",
        icon=":material/close_fullscreen:" if is_on else ":material/present_to_all:",
        type="tertiary",
        help=say(language(), "present_help"),
        on_click=lambda: st.session_state.update({state.PRESENT: not is_on}),
    )
