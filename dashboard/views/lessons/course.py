"""Where a reader is in the lessons: the session and the link hold it, and leaving puts everything back as it was."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import streamlit as st

from dashboard import link, state
from dashboard.controls import CORPORA, TYPED_TEXTS
from dashboard.views.lessons.answers import Guess
from dashboard.views.lessons.content import ENGLISH, say
from dashboard.views.lessons.plans import LESSONS, Asks, Step, steps_of
from dashboard.views.lessons.tally import HOURS, count_own, join_as_asked
from dashboard.views.text.stories import SENTENCE
from dashboard.views.text.typed import EXAMPLE_TYPED
from dashboard.views.word_links.choice import TABS

LANGUAGE: Final = "language"
"""Key, and query parameter, of the language of the lessons."""
STEP: Final = "step"
"""Key, and query parameter, of the step, from 1."""
SAID: Final = "said"
"""Query parameter of what the reader has predicted, at the step that answers it: a head as `1-7`, or a number."""
REACHED: Final = "lessons reached"
"""The furthest step of each lesson."""
SENTENCE_TO_ADD: Final = "sentence to add"
"""Key of the box in which a reader types one for the corpus."""
_GUESSES: Final = "lesson guesses"
_BEFORE: Final = "before the lesson"
"""What stood where lessons have put something, by key."""
_AT_FIRST: Final[Mapping[str, object]] = MappingProxyType(
    {"text": EXAMPLE_TYPED, "patterns": False, state.OFF: [], "corpus": CORPORA[0], TYPED_TEXTS: "", state.WITH: []}
)
"""What stands there for who has come by a link to a step, and has not been on the page yet."""
_ONE_NUMBER: Final = re.compile("([0-9]{1,6})")
_GUESS_FORMS: Final[Mapping[Asks, re.Pattern[str]]] = MappingProxyType(
    {"head": state.PAIR, "word": _ONE_NUMBER, "number": _ONE_NUMBER}
)
"""How a link writes a prediction, by what is asked."""
_ENTERED: Final = "step entered"
"""Whether the page of a step has yet to be opened."""
_TO_SAY: Final = "to say about the step"
"""What to say of a link, once the page of its step is open."""
_TOLD: Final = "step told"
"""The step, and the checkpoint, whose heads have been shown."""


def begin(page: str) -> None:
    """Take what the link asks for: a class, a projector, a step; and open the page of a step that was just entered.

    Args:
        page: address of the page that is opened; empty for the first one.
    """
    join_as_asked(lambda code: say(language(), "unknown_code", code=code, hours=HOURS))
    if (presented := link.take(state.PRESENT)) is not None:
        st.session_state[state.PRESENT] = presented == "1"
    link.put([state.PRESENT], {state.PRESENT: "1"} if state.is_presenting() else {})
    asked = [link.take(name) for name in (state.LESSON, STEP)]
    said = link.take(SAID)
    if asked[0] is not None:
        _enter_by_link(*_step_asked(asked[0], asked[1] or "1"))
        if said is not None:
            _take_said(said)
    if (current := now()) is None:
        link.put([state.LESSON, STEP, SAID], {})
        return
    lesson, place = current
    link.put([state.LESSON, STEP, SAID], {state.LESSON: str(lesson), STEP: str(place + 1), **_said(lesson, place)})
    if st.session_state.pop(_ENTERED, False) and (wanted := step_now().page) != (page or "inspect"):
        st.switch_page(st.session_state["pages"][wanted], query_params=dict(st.query_params))
    if said := st.session_state.pop(_TO_SAY, ""):
        link.say(said)


def _step_asked(lesson: str, step: str) -> tuple[int, int]:
    """The lesson and the place of its step that a link asks for, or the nearest that there is."""
    number = int(lesson) if re.fullmatch("[0-9]{1,3}", lesson) else 1
    place = int(step) if re.fullmatch("[0-9]{1,3}", step) else 1
    number = min(max(number, 1), len(LESSONS))
    place = min(max(place, 1), len(steps_of(number)))
    if (str(number), str(place)) != (lesson, step):
        st.session_state[_TO_SAY] = say(language(), "no_such_step", number=number, step=place)
    return number, place - 1


def _take_said(said: str) -> None:
    """Take the prediction that a link holds, of the step before; it is not counted for a class."""
    lesson, place = now() or (1, 0)
    form = _GUESS_FORMS[steps_of(lesson)[place - 1].asks] if step_now().reveals else None
    if form is None or (match := form.fullmatch(said)) is None:
        st.session_state[_TO_SAY] = say(language(), "no_such_guess", guess=link.quoted(said))
        return
    numbers = tuple(map(int, match.groups()))
    guess: Guess = (numbers[0], numbers[1]) if len(numbers) == 2 else numbers[0]
    st.session_state.setdefault(_GUESSES, {})[lesson, place - 1] = guess


def _said(lesson: int, place: int) -> dict[str, str]:
    """What the link of a step holds of the reader's prediction."""
    guess = guess_of(lesson, place - 1) if steps_of(lesson)[place].reveals else None
    if guess is None:
        return {}
    return {SAID: f"{guess[0]}-{guess[1]}" if isinstance(guess, tuple) else str(guess)}


def language() -> str:
    """The language that the reader has chosen."""
    return str(st.session_state.get(LANGUAGE) or ENGLISH)


def now() -> tuple[int, int] | None:
    """Number of the lesson, from 1, and place of its step, from 0; None outside of lessons."""
    values = st.session_state
    return (values[state.LESSON], values[STEP]) if values.get(state.LESSON) else None


def step_now() -> Step:
    """The step that the reader is at, in a lesson."""
    current = now()
    assert current is not None, "asked in lessons only"
    return steps_of(current[0])[current[1]]


def enter(lesson: int, place: int, puts: Mapping[str, object] | None = None) -> None:
    """Go to a step, and put on its page what it begins with.

    Args:
        lesson: counted from 1.
        place: of the step, counted from 0.
        puts: what is put there instead, by keys of the session.
    """
    values = st.session_state
    values[state.LESSON], values[STEP] = lesson, place
    values.setdefault(REACHED, {})[lesson] = max(place, values.get(REACHED, {}).get(lesson, 0))
    values[_ENTERED] = True
    step = step_now()
    values[state.STEP_PAGE] = step.page
    if TABS in values:
        _put(TABS, values[TABS])  # a step that asks does not draw them
    _put_all(step.puts if puts is None else puts)
    if step.asks == "head":
        _put(state.HEADS, [])
        state.push_heads([])
    elif step.shows:
        _put(state.HEADS, values.get(state.HEADS))
    values.pop(_TOLD, None)


def _enter_by_link(lesson: int, place: int) -> None:
    """Go to a step as if the steps before had been walked; what else the link asks for counts more."""
    puts: dict[str, object] = {}
    for step in steps_of(lesson)[: place + 1]:
        puts |= step.puts
    enter(lesson, place, {key: value for key, value in puts.items() if key not in st.query_params})


def _put_all(puts: Mapping[str, object]) -> None:
    for key, value in puts.items():
        _put(key, value() if callable(value) else value)


def _put(key: str, value: Any) -> None:
    values = st.session_state
    values.setdefault(_BEFORE, {}).setdefault(key, values.get(key, _AT_FIRST.get(key)))
    values[key] = value


def put_sentence() -> None:
    """Put the lessons' sentence on screen again."""
    _put("text", SENTENCE)


def add_sentence() -> None:
    """Add the sentence that the reader has typed to the corpus."""
    values = st.session_state
    typed = values[SENTENCE_TO_ADD].strip()
    values[SENTENCE_TO_ADD] = ""
    _put(TYPED_TEXTS, "\n".join(filter(None, ((values.get(TYPED_TEXTS) or "").rstrip(), typed))))


def leave() -> None:
    """End the lesson, and put back what stood on the pages before."""
    values = st.session_state
    for key, value in values.pop(_BEFORE, {}).items():
        if key == state.HEADS:
            state.push_heads(value or [])
        values[key] = value
    for key in (state.LESSON, state.STEP_PAGE, STEP):
        values.pop(key, None)


def guess(value: Guess, written: str) -> None:
    """Keep a prediction, count it for the reader's class, and go on to its answer.

    Args:
        value: the prediction.
        written: the same as the class sees it.
    """
    lesson, place = now() or (1, 0)
    st.session_state.setdefault(_GUESSES, {})[lesson, place] = value
    count_own((lesson, place), written)
    enter(lesson, place + 1)


def guess_of(lesson: int, place: int) -> Guess:
    """What the reader has predicted at a step; None where nothing."""
    kept: dict[tuple[int, int], Guess] = st.session_state.get(_GUESSES, {})
    return kept.get((lesson, place))


def show_heads(heads: tuple[tuple[int, int], ...], fingerprint: str) -> None:
    """Show what a step has found, once for each checkpoint; the reader may choose others then."""
    told = (now(), fingerprint)
    if heads and st.session_state.get(_TOLD) != told:
        st.session_state[_TOLD] = told
        state.push_heads(list(heads))
