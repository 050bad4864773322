"""The panel of a lesson: what the step says, its prediction and its answer, above the page that the step drives."""

from collections.abc import Sequence
from operator import lt
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention.settings import Head, head_name
from core.errors import AnalysisError
from dashboard import state
from dashboard.plain import plain, show_error
from dashboard.views.arcs.look import LOOK, look_now
from dashboard.views.lessons import course, presenting, tally
from dashboard.views.lessons.answers import Found, Guess, Seen
from dashboard.views.lessons.content import CHECK, WITHOUT, say
from dashboard.views.lessons.course import SENTENCE_TO_ADD, language
from dashboard.views.lessons.plans import LESSONS, Step, steps_of, words_of
from dashboard.views.text.stories import SENTENCE

EVERY: Final = 3
"""Seconds after which the counts of a class are drawn anew."""
MOST_BARS: Final = 6
_STYLE: Final = Path(__file__).with_name("lesson.css")
NUMBER: Final = "guessed number"
_KEYS: Final = {"back": "PageUp", "next": "PageDown", "next_lesson": "PageDown"}
"""While presenting: those of a remote control."""
_UNCHOSEN: Final = "guess is missing"


def panel(place: DeltaGenerator, seen: Seen) -> None:
    """Draw the panel of the step at hand.

    Args:
        place: where it belongs on the page.
        seen: what the step may compute from.
    """
    with place.container(key="lesson", border=True):
        st.html(f"<style>{_STYLE.read_text('utf-8')}</style>")
        _panel(seen)


def _panel(seen: Seen) -> None:
    lesson, place = course.now() or (1, 0)
    steps = steps_of(lesson)
    step = steps[place]
    _head(lesson, place)
    if step.name == CHECK:
        _check(lesson)
        return
    if step.page == "inspect" and seen.looked is None:
        return  # the page says why the text cannot be shown
    if step.is_about_sentence and seen.typed != SENTENCE:
        st.markdown(say(language(), "other_text"))
        st.button(say(language(), "put_back"), key="put sentence back", on_click=course.put_sentence)
        return
    try:
        with st.container(), st.spinner(say(language(), "computing"), show_time=True):
            found = step.finds(seen)
    except AnalysisError as error:
        show_error(error)
        return
    section = step.name + (WITHOUT if found.section and step.may_lack else "")
    said = (
        words_of(lesson, language())
        .sections[section]
        .substitute({name: plain(value) for name, value in found.values.items()})
    )
    if step.reveals:
        guess = _guess_here(steps[place - 1], course.guess_of(lesson, place - 1), seen)
        said = f"{_verdict(found, guess)}\n\n{said}"
        if step.shows:
            course.show_heads(_both(found, guess), seen.visit.engine.files.fingerprint)
    elif step.shows:
        course.show_heads(found.heads, seen.visit.engine.files.fingerprint)
    if place == 0:
        said = f"**{words_of(lesson, language()).claim}**\n\n{said}"
    st.markdown(said)
    if step.takes_sentences:
        st.text_input(say(language(), "add_sentence"), key=SENTENCE_TO_ADD, on_change=course.add_sentence)
    if step.reveals and tally.code_now():
        _class_said((lesson, place - 1))
    if step.asks and not found.section:
        _ask(step, found, seen)


def elsewhere() -> None:
    """A line on pages where no step happens: the way back to the lesson and out of it, or out of presenting."""
    current = course.now()
    if state.lesson_is_on(st.session_state["page"] or "inspect"):
        return
    if current is None:
        if state.is_presenting():
            presenting.button()
        return
    with st.container(horizontal=True, vertical_alignment="center", key="lesson elsewhere"):
        st.markdown(say(language(), "elsewhere", number=current[0]), width="content")
        st.button(say(language(), "to_lesson"), key="to lesson", on_click=course.enter, args=current, type="tertiary")
        st.button(say(language(), "leave"), key="leave lesson", on_click=course.leave, type="tertiary")
        presenting.button()


def _head(lesson: int, place: int) -> None:
    """What lesson and what step it is, and the ways on."""
    in_words, n_steps = language(), len(steps_of(lesson))
    title = say(in_words, "lesson", number=lesson, lessons=len(LESSONS), title=words_of(lesson, in_words).title)
    with st.container(horizontal=True, vertical_alignment="center", key="lesson head"):
        st.title(title, anchor=False, width="content")
        st.caption(say(in_words, "step", step=place + 1, steps=n_steps), width="content")
        with st.container(horizontal=True, horizontal_alignment="right", gap="xsmall", key="lesson ways"):
            _way("back", lesson, place - 1, disabled=place == 0, icon=":material/arrow_back:")
            if place + 1 < n_steps:
                is_asking = bool(steps_of(lesson)[place].asks)
                _way("next", lesson, place + 1, icon=":material/arrow_forward:", is_main=not is_asking)
            elif lesson < len(LESSONS):
                _way("next_lesson", lesson + 1, 0, icon=":material/arrow_forward:", is_main=True)
            if not state.is_presenting():
                _way("restart", lesson, 0, icon=":material/restart_alt:")
            presenting.button()
            if not state.is_presenting():
                st.button(
                    say(in_words, "leave"),
                    key="leave lesson",
                    icon=":material/close:",
                    type="tertiary",
                    on_click=course.leave,
                )


def _way(name: str, lesson: int, place: int, *, icon: str, disabled: bool = False, is_main: bool = False) -> None:
    st.button(
        say(language(), name),
        key=f"lesson {name}".replace("next_lesson", "next"),
        icon=icon,
        disabled=disabled,
        type="secondary" if is_main else "tertiary",
        shortcut=_KEYS.get(name) if state.is_presenting() else None,
        on_click=course.enter,
        args=(lesson, place),
    )


def _verdict(found: Found, guess: Guess) -> str:
    if guess is None:
        return f"*{say(language(), 'no_guess')}*"
    name = "right" if found.is_right(guess) else "wrong"
    icon = ":material/check_circle:" if name == "right" else ":material/arrow_right_alt:"
    return f"{icon} **{say(language(), name, guess=plain(found.of_guess(guess)))}**"


def _guess_here(asking: Step, guess: Guess, seen: Seen) -> Guess:
    """The prediction, where the checkpoint and the text at hand have such a head or word: it may be of others."""
    if seen.looked is None or guess is None or asking.asks == "number":
        return guess
    there = seen.looked.attention.shape[:2] if asking.asks == "head" else (len(seen.looked.text.keys.tokens),)
    places = guess if isinstance(guess, tuple) else (guess,)
    return guess if len(places) == len(there) and all(map(lt, places, there)) else None


def _both(found: Found, guess: Guess) -> tuple[Head, ...]:
    """The heads of the answer, and the one that was guessed, to be seen beside each other."""
    if isinstance(guess, tuple) and guess not in found.heads:
        return (guess, *found.heads)
    return found.heads


def _ask(step: Step, found: Found, seen: Seen) -> None:
    """Take the prediction where the reader has made it: in the grid, in the arcs, or as a number."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="lesson guess"):
        if step.asks == "number":
            _ask_number(int(found.values.get("heads") or found.values["last"]))
            return
        value: Guess = None
        if step.asks == "head":
            chosen: list[Head] = st.session_state.get(state.HEADS) or []
            value = chosen[-1] if chosen else None
            st.markdown(
                say(language(), "choose_head") if value is None else say(language(), "chosen", head=head_name(*value)),
                width="content",
            )
        st.button(
            say(language(), "guess"),
            key="lesson guess it",
            icon=":material/how_to_vote:",
            disabled=step.asks == "head" and value is None,
            on_click=_take_word if step.asks == "word" else course.guess,
            args=(seen.attention.text.keys.tokens,)
            if step.asks == "word"
            else (value, head_name(*value) if isinstance(value, tuple) else ""),
        )
        if tally.code_now():
            _class_counts(course.now() or (1, 0))
        if step.asks == "word" and st.session_state.pop(_UNCHOSEN, False):
            st.markdown(f":material/touch_app: {say(language(), 'choose_word')}", width="content")


def _ask_number(most: int) -> None:
    """A number and its button, which are sent together: the page is not drawn anew for a number alone."""
    with st.form("number", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(say(language(), "number"), 0, most, key=NUMBER, width=160)
        st.form_submit_button(
            say(language(), "guess"), key="lesson guess it", icon=":material/how_to_vote:", on_click=_take_number
        )
        if tally.code_now():
            _class_counts(course.now() or (1, 0))


def _take_number() -> None:
    number = int(st.session_state[NUMBER])
    course.guess(number, str(number))


def _take_word(tokens: Sequence[str]) -> None:
    """Take the pinned word of the right-hand column; `tokens` are those of the text on screen."""
    side, _, token = look_now().pin.partition("-") if LOOK in st.session_state else ("", "", "")
    if side == "to":
        course.guess(int(token), tokens[int(token)])
    else:
        st.session_state[_UNCHOSEN] = True


@st.fragment(run_every=EVERY)
def _class_counts(question: tally.Question) -> None:
    """How many of the class have guessed, kept up to date."""
    n_guessed = sum(count for _, count in tally.tally().counts(tally.code_now(), question))
    st.markdown(say(language(), "class_count", count=n_guessed), width="content")


@st.fragment(run_every=EVERY)
def _class_said(question: tally.Question) -> None:
    """What the class has guessed, kept up to date."""
    counts = tally.tally().counts(tally.code_now(), question)
    n_guessed = sum(count for _, count in counts)
    with st.container(key="class said"):
        st.caption(f"{say(language(), 'class_said')} · {say(language(), 'class_count', count=n_guessed)}")
        for answer, count in counts[:MOST_BARS]:
            st.progress(count / n_guessed, text=f"{plain(answer)}: {count}")


def _check(lesson: int) -> None:
    """The question at the end, and what there is to say of the answer."""
    question = words_of(lesson, language()).question
    picked = st.radio(question.text, question.options, index=None, key=f"check {lesson}", persist_state="session")
    if picked is not None:
        is_right = question.options.index(picked) == question.right
        icon = ":material/check_circle:" if is_right else ":material/arrow_right_alt:"
        st.markdown(f"{icon} **{say(language(), 'check_right' if is_right else 'check_wrong')}** {question.afterwards}")
