"""Two fields for a pair of texts, so that nobody has to know the sign between its segments."""

from typing import Final

import streamlit as st

from attention_sieve.core.texts.text import PAIR_MARK
from attention_sieve.dashboard.views.text import wording

SEGMENTS: Final = ("first segment", "second segment")
"""Keys of the fields."""


def pair_fields() -> None:
    """Draw a button that unfolds two fields; what is typed there becomes the text on screen."""
    with (
        st.popover(wording.PAIR, icon=":material/splitscreen:", help=wording.PAIR_HELP, key="pair"),
        st.form("pair of texts", border=False),
    ):
        for key, label in zip(SEGMENTS, (wording.FIRST_TEXT, wording.SECOND_TEXT)):
            st.text_input(label, key=key)
        st.form_submit_button(wording.LOOK_AT_PAIR, on_click=_put_pair)


def _put_pair() -> None:
    segments = [st.session_state[key].strip() for key in SEGMENTS]
    if any(segments):
        st.session_state["text"] = PAIR_MARK.join(filter(None, segments))
