"""Presenting, for a projector: the button, and the code of the class. `dashboard/web/present.css` lays it out."""

from html import escape
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from attention_sieve.dashboard import state
from attention_sieve.dashboard.languages import ENGLISH, LANGUAGE, language, say
from attention_sieve.dashboard.views.lessons import course, tally
from attention_sieve.dashboard.views.lessons.plans import steps_of


def class_code() -> None:
    """Draw the code of the class while presenting, large, and a QR code of the link to this step in it."""
    code = tally.code_now()
    if not state.is_presenting() or not code:
        return
    lesson, index = course.now() or (1, 0)
    picture = segno.make(link_of_class(code, lesson, index), micro=False, error="l")
    drawn = picture.svg_data_uri(scale=4, border=2, dark="#000", light="#fff")
    # Where there is little room, the answer has it: its step is no longer one to join at.
    with st.container(key="class code at an answer" if steps_of(lesson)[index].reveals else "class code"):
        st.html(f'<img alt="QR" src="{drawn}"><b>{escape(code)}</b>')


def link_of_class(code: str, lesson: int, index: int) -> str:
    """Link to a step of a lesson in a class, under the address that the reader used for this server."""
    url = urlsplit(st.context.url or "")
    page = steps_of(lesson)[index].page
    folder, address = url.path.rpartition("/")[0], "" if page == "inspect" else page
    in_words = {} if language() == ENGLISH else {LANGUAGE: language()}
    parameters = urlencode({state.LESSON: lesson, course.STEP: index + 1, state.CLASS: code, **in_words})
    return f"{url.scheme}://{url.netloc}{folder}/{address}?{parameters}"


def button() -> None:
    is_on = state.is_presenting()
    st.button(
        say(language(), "stop_presenting" if is_on else "present"),
        key="switch presenting",
        icon=":material/close_fullscreen:" if is_on else ":material/present_to_all:",
        type="tertiary",
        help=say(language(), "present_help"),
        on_click=lambda: st.session_state.update({state.PRESENT: not is_on}),
    )
