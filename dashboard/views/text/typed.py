"""The typed texts, and the one of them on screen; Inspect and Compare share both."""

from typing import Final

import streamlit as st

from core.texts.text import Text, write_typed
from dashboard import provenance, wording
from dashboard.samples import EXAMPLE

EXAMPLE_TYPED: Final = write_typed([EXAMPLE])


def text_on_screen(texts: tuple[Text, ...]) -> Text:
    """The one text, or the one of several that the reader picks; the link holds its number."""
    if len(texts) == 1:
        return texts[0]
    linked = st.query_params.get("number", "1")
    number = st.session_state.get("number", int(linked) - 1 if linked.isascii() and linked.isdigit() else 0)
    st.session_state["number"] = min(max(number, 0), len(texts) - 1)
    picked = st.selectbox(
        wording.ON_SCREEN,
        range(len(texts)),
        format_func=lambda i: f"{i + 1}: {provenance.shortened(' ||| '.join(texts[i].segments))}",
        key="number",
        persist_state="session",
    )
    st.query_params["number"] = str(picked + 1)
    return texts[picked]
