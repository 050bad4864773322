"""Lessons: the list of lessons, what each term means, and the desk of the teacher."""

from contextlib import suppress
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.figures.miniatures import image
from attention_sieve.dashboard.languages import LANGUAGE, language, languages, read_language, say
from attention_sieve.dashboard.link import quoted
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons import course, tally
from attention_sieve.dashboard.views.lessons.desk import desk, is_open
from attention_sieve.dashboard.views.lessons.plans import is_translated, offered, words_of
from attention_sieve.dashboard.views.lessons.terms import listed, pictures_of_terms
from attention_sieve.dashboard.views.lessons.thumbnails import DRAWN

TYPED_CODE: Final = "code of the class"
_UNKNOWN: Final = "unknown code"


def show() -> None:
    read_language()
    in_words = language()
    frame.head(say(in_words, "page"), about=say(in_words, "page_see"), settings=lambda: None)
    if len(languages()) > 1:
        st.selectbox(
            say(in_words, "language"),
            languages(),
            format_func=lambda name: say(name, "language_name"),
            key=LANGUAGE,
            persist_state="session",
            width=180,
        )
    _i_have_a_code()
    is_taught, first = is_open(), st.container()
    places = {lesson: _lesson(lesson) for lesson in offered()}
    with st.expander(say(in_words, "terms")):
        terms = st.html(listed(in_words))
    visit = _visit()
    with first if is_taught else st.container(), st.expander(say(in_words, "teach"), expanded=is_taught):
        desk(visit)
    if visit:
        for lesson, place in places.items():
            with suppress(AnalysisError):  # a checkpoint that cannot be loaded, or cannot read the sentence of a lesson
                place.html(image(DRAWN[lesson - 1](visit)), width="content")
        with suppress(AnalysisError):
            terms.html(listed(in_words, pictures_of_terms(visit)))


def _visit() -> Visit | None:
    """What the sheets are made with; None while the checkpoint cannot be found, which other pages say."""
    try:
        return frame.without_corpus()
    except AnalysisError:
        return None


def _lesson(lesson: int) -> DeltaGenerator:
    """Offer a lesson; returns the place of its thumbnail."""
    words, in_words = words_of(lesson, language()), language()
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"lesson {lesson}"):
        with st.container(horizontal=True, vertical_alignment="center", key=f"title of lesson {lesson}"):
            place = st.html(image(""), width="content")  # never an empty element, without which a row is lower
            note = "" if is_translated(lesson, in_words) else f" :gray[{say(in_words, 'not_translated')}]"
            st.markdown(f"**{lesson}. {words.title}**{note}", help=words.claim, width="stretch")
        reached = st.session_state.get(course.REACHED, {}).get(lesson, 0)
        if reached:
            st.button(
                say(in_words, "goes_on", step=reached + 1),
                key=f"go on {lesson}",
                type="tertiary",
                on_click=course.enter,
                args=(lesson, reached),
            )
        st.button(
            say(in_words, "begin"),
            key=f"begin {lesson}",
            icon=":material/play_arrow:",
            on_click=course.enter,
            args=(lesson, 0),
        )
    return place


def _i_have_a_code() -> None:
    in_words = language()
    with st.form("code", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            say(in_words, "have_code"), key=TYPED_CODE, max_chars=4 * tally.LENGTH, autocomplete="off", width=180
        )
        st.form_submit_button(say(in_words, "join"), key="join class", on_click=_join)
    if unknown := st.session_state.pop(_UNKNOWN, ""):
        st.warning(say(in_words, "unknown_code", code=quoted(unknown), hours=tally.HOURS))
    elif code := tally.code_now():
        st.markdown(say(in_words, "in_class", code=code))


def _join() -> None:
    written = st.session_state.get(TYPED_CODE, "")  # a form that is sent by hand may lack its field
    if written.strip() and not tally.join_class(written):
        st.session_state[_UNKNOWN] = written
