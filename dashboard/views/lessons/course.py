"""The reader's position in the lessons, in session and link; leaving a lesson restores the previous state."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import streamlit as st

from attention_sieve.core.texts.languages import foreign_language
from attention_sieve.core.texts.parsers import ENGLISH as ENGLISH_TEXTS
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard.controls import CORPORA, TYPED_TEXTS
from attention_sieve.dashboard.languages import language, read_language, say
from attention_sieve.dashboard.views.lessons.computation import Guess
from attention_sieve.dashboard.views.lessons.plans import LESSONS, Asks, Step, steps_of
from attention_sieve.dashboard.views.lessons.sentences import FIRST_EVIDENCE
from attention_sieve.dashboard.views.lessons.tally import HOURS, count_own, join_linked_class
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED
from attention_sieve.dashboard.views.word_links.choice import TABS
from attention_sieve.dashboard.web.session import unbound_parameters

STEP: Final = "step"
"""Key of the index of the step, and query parameter of its number, from 1."""
GUESS: Final = "said"
"""Query parameter of the reader's prediction, at the step that answers it: a head as `1-7`, or a number."""
REACHED: Final = "lessons reached"
"""Key of the furthest step of each lesson."""
SENTENCE_TO_ADD: Final = "sentence to add"
NOT_ADDED: Final = "language of a sentence that was not added"
_GUESSES: Final = "lesson guesses"
_BEFORE: Final = "before the lesson"
"""Key of the previous values of what lessons have set, by their keys."""
_AT_FIRST: Final[Mapping[str, object]] = MappingProxyType(
    {"text": EXAMPLE_TYPED, "patterns": True, state.OFF: [], "corpus": CORPORA[0], TYPED_TEXTS: "", state.WITH: []}
    | {state.TOY_OFF: [], state.TEXT_LANGUAGE: ENGLISH_TEXTS}
)
"""Default values, for readers who opened a link to a step and have not been on the page yet."""
_ONE_NUMBER: Final = re.compile("([0-9]{1,6})")
_GUESS_FORMS: Final[Mapping[Asks, re.Pattern[str]]] = MappingProxyType(
    {"head": state.PAIR, "word": _ONE_NUMBER, "number": _ONE_NUMBER}
)
"""Form of a prediction in a link, by kind of question."""
_ENTERED: Final = "step entered"
"""Key of whether the page of a step has yet to be opened."""
_MESSAGE: Final = "to say about the step"
"""Key of a message about the link, shown when the page of its step is open."""
_HEADS_SHOWN: Final = "step told"
"""Key of the step and the checkpoint whose heads have been shown."""


def begin(page: str) -> None:
    """Read language, class, presenting mode and step from the link, and open the page of a step that was entered."""
    read_language()
    join_linked_class(lambda code: say(language(), "unknown_code", code=code, hours=HOURS))
    if (presented := link.take(state.PRESENT)) is not None:
        st.session_state[state.PRESENT] = presented == "1"
    link.put([state.PRESENT], {state.PRESENT: "1"} if state.is_presenting() else {})
    values = [link.take(name) for name in (state.LESSON, STEP)]
    written_guess = link.take(GUESS)
    if values[0] is not None:
        _enter_by_link(*_step_in_link(values[0], values[1] or "1"))
        if written_guess is not None:
            _take_guess(written_guess)
    if (current := now()) is None:
        link.put([state.LESSON, STEP, GUESS], {})
        return
    lesson, index = current
    link.put(
        [state.LESSON, STEP, GUESS],
        {state.LESSON: str(lesson), STEP: str(index + 1), **_guess_parameter(lesson, index)},
    )
    if st.session_state.pop(_ENTERED, False) and (target_page := step_now().page) != (page or "inspect"):
        st.switch_page(st.session_state["pages"][target_page], query_params=unbound_parameters())
    if message := st.session_state.pop(_MESSAGE, ""):
        link.say(message)


def _step_in_link(lesson: str, step: str) -> tuple[int, int]:
    """Number of the lesson and index of its step in a link, or the nearest that exist."""
    number = int(lesson) if re.fullmatch("[0-9]{1,3}", lesson) else 1
    position = int(step) if re.fullmatch("[0-9]{1,3}", step) else 1
    number = min(max(number, 1), len(LESSONS))
    position = min(max(position, 1), len(steps_of(number)))
    if (str(number), str(position)) != (lesson, step):
        st.session_state[_MESSAGE] = say(language(), "no_such_step", number=number, step=position)
    return number, position - 1


def _take_guess(written: str) -> None:
    """Take the prediction in a link, for the previous step; it is not counted for a class."""
    lesson, index = now() or (1, 0)
    form = _GUESS_FORMS[steps_of(lesson)[index - 1].asks] if step_now().reveals else None
    if form is None or (match := form.fullmatch(written)) is None:
        st.session_state[_MESSAGE] = say(language(), "no_such_guess", guess=link.quoted(written))
        return
    numbers = tuple(map(int, match.groups()))
    guess: Guess = (numbers[0], numbers[1]) if len(numbers) == 2 else numbers[0]
    st.session_state.setdefault(_GUESSES, {})[lesson, index - 1] = guess


def _guess_parameter(lesson: int, index: int) -> dict[str, str]:
    """Query parameter of the reader's prediction at a step."""
    guess = guess_of(lesson, index - 1) if steps_of(lesson)[index].reveals else None
    if guess is None:
        return {}
    return {GUESS: f"{guess[0]}-{guess[1]}" if isinstance(guess, tuple) else str(guess)}


def now() -> tuple[int, int] | None:
    """Number of the lesson, from 1, and index of its step, from 0; None outside of lessons."""
    values = st.session_state
    return (values[state.LESSON], values[STEP]) if values.get(state.LESSON) else None


def step_now() -> Step:
    current = now()
    assert current is not None, "asked in lessons only"
    return steps_of(current[0])[current[1]]


def enter(lesson: int, index: int, puts: Mapping[str, object] | None = None) -> None:
    """Go to a step, and set the initial values of its page, or instead `puts`, by keys of the session."""
    values = st.session_state
    values[state.LESSON], values[STEP] = lesson, index
    values.setdefault(REACHED, {})[lesson] = max(index, values.get(REACHED, {}).get(lesson, 0))
    values[_ENTERED] = True
    step = step_now()
    values[state.STEP_PAGE] = step.page
    if TABS in values:
        _put(TABS, values[TABS])  # a step with a question does not draw them
    for key, value in (step.puts if puts is None else puts).items():
        _put(key, value() if callable(value) else value)
    if step.asks == "head":
        _put(state.HEADS, [])
        state.push_heads([])
    elif step.shows:
        _put(state.HEADS, values.get(state.HEADS))
    values.pop(_HEADS_SHOWN, None)


def go_back(lesson: int, index: int) -> None:
    """Go to the step before, where what the one that is left has set is as it was; a text of the reader's own stays.

    It is the one before where the reader is by now: *Next* may have been pressed since the button was drawn.
    """
    _, current = now() or (lesson, index + 1)
    index = max(index, current - 1)
    before, left = _puts_until(lesson, index), steps_of(lesson)[index + 1].puts
    as_it_was = {key: before.get(key, st.session_state.get(_BEFORE, {}).get(key)) for key in left}
    enter(lesson, index, as_it_was | dict(steps_of(lesson)[index].puts))


def _enter_by_link(lesson: int, index: int) -> None:
    """Go to a step with the values set by all previous steps; other parameters of the link take precedence."""
    puts = _puts_until(lesson, index)
    enter(lesson, index, {key: value for key, value in puts.items() if key not in st.query_params})


def _puts_until(lesson: int, index: int) -> dict[str, object]:
    """The values set by all steps up to one."""
    puts: dict[str, object] = {}
    for step in steps_of(lesson)[: index + 1]:
        puts |= step.puts
    return puts


def _put(key: str, value: Any) -> None:
    values = st.session_state
    values.setdefault(_BEFORE, {}).setdefault(key, values.get(key, _AT_FIRST.get(key)))
    values[key] = value


def put_text(typed: str) -> None:
    _put("text", typed)


def added_sentences() -> list[str]:
    """The sentences of the corpus beyond those that it began with, in the order in which they were added."""
    sentences: str = st.session_state.get(TYPED_TEXTS) or ""
    return [sentence for sentence in sentences.splitlines() if sentence not in FIRST_EVIDENCE]


def add_own_sentence() -> None:
    typed = st.session_state[SENTENCE_TO_ADD].strip()
    st.session_state[SENTENCE_TO_ADD] = ""
    st.session_state[NOT_ADDED] = foreign_language(typed) if state.parser() is None else None
    if not st.session_state[NOT_ADDED]:
        add_sentence(typed)


def add_sentence(sentence: str) -> None:
    corpus = (st.session_state.get(TYPED_TEXTS) or "").rstrip()
    _put(TYPED_TEXTS, "\n".join(filter(None, (corpus, sentence))))


def leave() -> None:
    values = st.session_state
    for key, value in values.pop(_BEFORE, {}).items():
        if key == state.HEADS:
            state.push_heads(value or [])
        values[key] = value
    for key in (state.LESSON, state.STEP_PAGE, STEP):
        values.pop(key, None)


def guess(value: Guess, written: str) -> None:
    """Store a prediction, count it for the reader's class as it is written there, and go to its answer."""
    lesson, index = now() or (1, 0)
    st.session_state.setdefault(_GUESSES, {})[lesson, index] = value
    count_own((lesson, index), written)
    enter(lesson, index + 1)


def guess_of(lesson: int, index: int) -> Guess:
    guesses: dict[tuple[int, int], Guess] = st.session_state.get(_GUESSES, {})
    return guesses.get((lesson, index))


def show_heads(heads: tuple[tuple[int, int], ...], fingerprint: str) -> None:
    """Choose the heads of a step, once per checkpoint; the reader may choose others afterwards."""
    current = (now(), fingerprint)
    if heads and st.session_state.get(_HEADS_SHOWN) != current:
        st.session_state[_HEADS_SHOWN] = current
        state.push_heads(list(heads))
