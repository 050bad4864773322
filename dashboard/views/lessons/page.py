"""Lessons: the list of lessons, what each term means, and tools for teachers."""

from typing import Final
from urllib.parse import urlsplit

import streamlit as st

from core.errors import AnalysisError
from dashboard import state
from dashboard.glossary import TERMS
from dashboard.plain import show_error
from dashboard.views import frame
from dashboard.views.lessons import course, presenting, tally
from dashboard.views.lessons.content import languages, say
from dashboard.views.lessons.course import LANGUAGE, language
from dashboard.views.lessons.plans import FILES, LESSONS, words_of
from dashboard.views.lessons.sheet import sheet

_TOO_MANY: Final = "too many classes"


def show() -> None:
    """Draw the page."""
    in_words = language()
    frame.head(say(in_words, "page"), settings=lambda: None)
    st.markdown(say(in_words, "page_see"))
    if len(languages()) > 1:
        st.selectbox(say(in_words, "language"), languages(), key=LANGUAGE, bind="query-params", persist_state="session")
    for lesson in range(1, len(LESSONS) + 1):
        _lesson(lesson)
    with st.expander(say(in_words, "terms")):
        terms = sorted(TERMS.items(), key=lambda entry: entry[0].lower())
        st.markdown("\n".join(f"- **{term}**: {means}" for term, means in terms))
    _for_teachers()


def _lesson(lesson: int) -> None:
    words, in_words = words_of(lesson, language()), language()
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"lesson {lesson}"):
        st.markdown(f"**{lesson}. {words.title}**\\\n{words.claim}", width="stretch")
        reached = st.session_state.get(course.REACHED, {}).get(lesson, 0)
        if reached:
            st.button(
                say(in_words, "goes_on", step=reached + 1),
                key=f"go on {lesson}",
                type="tertiary",
                on_click=course.enter,
                args=(lesson, reached),
            )
        st.download_button(
            say(in_words, "sheet"),
            sheet(lesson, in_words),
            f"{lesson}-{FILES[lesson - 1]}.html",
            "text/html",
            key=f"sheet {lesson}",
            type="tertiary",
            icon=":material/print:",
            on_click="ignore",
        )
        st.button(
            say(in_words, "begin"),
            key=f"begin {lesson}",
            icon=":material/play_arrow:",
            on_click=course.enter,
            args=(lesson, 0),
        )


def _for_teachers() -> None:
    """Presenting, and the code of a class whose predictions are counted."""
    in_words, code = language(), tally.code_now()
    st.subheader(say(in_words, "teach"), anchor=False)
    st.markdown(say(in_words, "teach_text", hours=tally.HOURS))
    with st.container(horizontal=True, vertical_alignment="center"):
        if not state.is_presenting():
            presenting.button()
        st.button(say(in_words, "make_code"), key="make code", icon=":material/groups:", on_click=_make_code)
    if error := st.session_state.pop(_TOO_MANY, None):
        show_error(error)
    if code:
        st.markdown(say(in_words, "code", code=f"**{code}**"))
        st.code(_link_of(code), language=None)


def _make_code() -> None:
    try:
        st.session_state[state.CLASS] = tally.tally().make(tally.visitor())
    except AnalysisError as error:
        st.session_state[_TOO_MANY] = error


def _link_of(code: str) -> str:
    """Link to the first lesson in this class, under the address that the teacher used for this server."""
    url = urlsplit(st.context.url or "")
    folder = url.path.rpartition("/")[0]
    return f"{url.scheme}://{url.netloc}{folder}/?{state.LESSON}=1&{course.STEP}=1&{state.CLASS}={code}"
