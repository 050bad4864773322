"""Lessons: the list of lessons, what each term means, and tools for teachers."""

from contextlib import suppress
from functools import partial
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.miniatures import image
from attention_sieve.dashboard.link import quoted
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons import course, presenting, tally
from attention_sieve.dashboard.views.lessons.content import languages, say
from attention_sieve.dashboard.views.lessons.course import LANGUAGE, language
from attention_sieve.dashboard.views.lessons.plans import FILES, offered, words_of
from attention_sieve.dashboard.views.lessons.presenting import link_of_class
from attention_sieve.dashboard.views.lessons.sheet import material_of, sheet
from attention_sieve.dashboard.views.lessons.terms import listed, pictures_of_terms
from attention_sieve.dashboard.views.lessons.thumbnails import DRAWN

TYPED_CODE: Final = "code of the class"
_TOO_MANY: Final = "too many classes"
_UNKNOWN: Final = "unknown code"


def show() -> None:
    in_words = language()
    frame.head(say(in_words, "page"), about=say(in_words, "page_see"), settings=lambda: None)
    if len(languages()) > 1:
        st.selectbox(say(in_words, "language"), languages(), key=LANGUAGE, bind="query-params", persist_state="session")
    _i_have_a_code()
    places = {lesson: _lesson(lesson) for lesson in offered()}
    with st.expander(say(in_words, "terms")):
        terms = st.empty()
        terms.html(listed())
    with st.expander(say(in_words, "teach"), expanded=bool(tally.code_now())):
        _for_teachers()
    if visit := _visit():
        for lesson, place in places.items():
            with suppress(AnalysisError):  # a checkpoint that cannot be loaded, or cannot read the sentence of a lesson
                place.html(image(DRAWN[lesson - 1](visit)), width="content")
        with suppress(AnalysisError):
            terms.html(listed(pictures_of_terms(visit)))


def _visit() -> Visit | None:
    """What the sheets are made with; None while the checkpoint cannot be found, which other pages say."""
    try:
        return frame.without_corpus()
    except AnalysisError:
        return None


def _sheet(lesson: int, in_words: str, visit: Visit | None) -> str:
    """The sheet of a lesson, made when it is asked for; with its sentence only if the checkpoint can read it."""
    try:
        material = {} if visit is None else material_of(visit, lesson)
    except AnalysisError:
        material = {}
    return sheet(lesson, in_words, material)


def _lesson(lesson: int) -> DeltaGenerator:
    """Offer a lesson; returns the place of its thumbnail."""
    words, in_words = words_of(lesson, language()), language()
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"lesson {lesson}"):
        with st.container(horizontal=True, vertical_alignment="center", key=f"title of lesson {lesson}"):
            place = st.empty()
            place.html(image(""), width="content")
            st.markdown(f"**{lesson}. {words.title}**", help=words.claim, width="stretch")
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


def _for_teachers() -> None:
    in_words, code = language(), tally.code_now()
    st.markdown(say(in_words, "teach_text", hours=tally.HOURS))
    with st.container(horizontal=True, vertical_alignment="center"):
        if not state.is_presenting():
            presenting.button()
        st.button(say(in_words, "make_code"), key="make code", icon=":material/groups:", on_click=_make_code)
    if error := st.session_state.pop(_TOO_MANY, None):
        show_error(error)
    if code:
        st.markdown(say(in_words, "code", code=f"**{code}**"))
        st.code(link_of_class(code, 1, 0), language=None, wrap_lines=True)
    _sheets()


def _sheets() -> None:
    """A sheet to print for each lesson."""
    in_words, visit = language(), _visit()
    st.markdown(say(in_words, "sheets"))
    with st.container(horizontal=True):
        for lesson in offered():
            st.download_button(
                f"{lesson}. {words_of(lesson, in_words).title}",
                partial(_sheet, lesson, in_words, visit),
                f"{lesson}-{FILES[lesson - 1]}.html",
                "text/html",
                key=f"sheet {lesson}",
                type="tertiary",
                icon=":material/print:",
                on_click="ignore",
            )


def _make_code() -> None:
    try:
        st.session_state[state.CLASS] = tally.tally().make(tally.visitor())
    except AnalysisError as error:
        st.session_state[_TOO_MANY] = error
