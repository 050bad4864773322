"""The typed texts, and the one of them on screen; Inspect and Compare share both."""

import re
from typing import Final

import streamlit as st

from core.texts.text import Text, write_typed
from dashboard import link, wording
from dashboard.files import provenance
from dashboard.samples import EXAMPLE

EXAMPLE_TYPED: Final = write_typed([EXAMPLE])
NUMBER: Final = "number"
"""Query parameter of the text on screen, counted from 1."""


def text_on_screen(texts: tuple[Text, ...]) -> Text:
    """The one text, or the one of several that the reader picks; the link holds its number."""
    if (linked := link.take(NUMBER)) is not None:
        number = int(linked) if re.fullmatch("[0-9]{1,6}", linked) else 1
        at = min(max(number, 1), len(texts)) - 1
        st.session_state[NUMBER] = at
        if str(at + 1) != linked:
            link.say(wording.no_such_number(link.quoted(linked), len(texts), at + 1))
    if len(texts) == 1:
        link.put([NUMBER], {})
        return texts[0]
    st.session_state[NUMBER] = min(st.session_state.get(NUMBER, 0), len(texts) - 1)
    picked = st.selectbox(
        wording.ON_SCREEN,
        range(len(texts)),
        format_func=lambda i: f"{i + 1}: {provenance.shortened(' ||| '.join(texts[i].segments))}",
        key=NUMBER,
        persist_state="session",
    )
    link.put([NUMBER], {NUMBER: str(picked + 1)} if picked else {})
    return texts[picked]
