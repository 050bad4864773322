"""The typed text on screen, shared by Inspect and Compare, and two fields for a pair of texts."""

import re
from typing import Final

import streamlit as st

from attention_sieve.core.texts.text import PAIR_MARK, Text, write_typed
from attention_sieve.dashboard import link, wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.samples import EXAMPLE, PAIR
from attention_sieve.dashboard.views.text import wording as page_wording

EXAMPLE_TYPED: Final = write_typed([EXAMPLE])
PAIR_TYPED: Final = write_typed([PAIR])
"""The text on screen at first where a decoder needs a source and a target."""
NUMBER: Final = "number"
"""Query parameter of the text on screen, counted from 1."""
SEGMENTS: Final = ("first segment", "second segment")


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


def pair_fields() -> None:
    """Draw a button that unfolds two fields; what is typed there becomes the text on screen."""
    with (
        st.popover(page_wording.PAIR, icon=":material/splitscreen:", help=page_wording.PAIR_HELP, key="pair"),
        st.form("pair of texts", border=False),
    ):
        for key, label in zip(SEGMENTS, (page_wording.FIRST_TEXT, page_wording.SECOND_TEXT)):
            st.text_input(label, key=key)
        st.form_submit_button(page_wording.LOOK_AT_PAIR, on_click=_put_pair)


def _put_pair() -> None:
    segments = [st.session_state[key].strip() for key in SEGMENTS]
    if any(segments):
        st.session_state["text"] = PAIR_MARK.join(filter(None, segments))
