"""The typed text on screen, shared by Inspect and Compare."""

import re
from typing import Final

import streamlit as st

from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import link, wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.samples import EXAMPLE, PAIR

EXAMPLE_TYPED: Final = write_typed([EXAMPLE])
PAIR_TYPED: Final = write_typed([PAIR])
"""The text on screen at first where a decoder needs a source and a target."""
NUMBER: Final = "number"
"""Query parameter of the text on screen, counted from 1."""


def text_on_screen(texts: tuple[Text, ...]) -> Text:
    """The only text, or the one that the reader selects; the link holds its number."""
    if (value := link.take(NUMBER)) is not None:
        number = int(value) if re.fullmatch("[0-9]{1,6}", value) else 1
        index = min(max(number, 1), len(texts)) - 1
        st.session_state[NUMBER] = index
        if str(index + 1) != value:
            link.say(wording.no_such_number(link.quoted(value), len(texts), index + 1))
    if len(texts) == 1:
        link.put([NUMBER], {})
        return texts[0]
    st.session_state[NUMBER] = min(st.session_state.get(NUMBER, 0), len(texts) - 1)
    selected = st.selectbox(
        wording.ON_SCREEN,
        range(len(texts)),
        format_func=lambda i: f"{i + 1}: {provenance.shortened(' ||| '.join(texts[i].segments))}",
        key=NUMBER,
        persist_state="session",
    )
    link.put([NUMBER], {NUMBER: str(selected + 1)} if selected else {})
    return texts[selected]
