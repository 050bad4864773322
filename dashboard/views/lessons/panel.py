"""The panel of a lesson above the page: text of the step, prediction and answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import lt
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import state, trainings
from attention_sieve.dashboard.components.arcs.look import AskedLink
from attention_sieve.dashboard.languages import language, say, shown
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.arcs import LOOK, look_now
from attention_sieve.dashboard.views.lessons import course, presenting, tally
from attention_sieve.dashboard.views.lessons.answers import is_trained, word_names
from attention_sieve.dashboard.views.lessons.check import before, check
from attention_sieve.dashboard.views.lessons.class_answers import class_answers, class_counts
from attention_sieve.dashboard.views.lessons.computation import Beside, Guess, StepInputs, StepResult
from attention_sieve.dashboard.views.lessons.content import CHECK, WITHOUT
from attention_sieve.dashboard.views.lessons.course import SENTENCE_TO_ADD
from attention_sieve.dashboard.views.lessons.plans import Step, offered, steps_of, words_of
from attention_sieve.dashboard.views.lessons.sentences import MORE_EVIDENCE

NUMBER: Final = "guessed number"
SWITCHES_ABOVE_ARCS: Final = ":root { --arc-switches: flex !important; }"
"""Style that shows them in Present, too."""
_UNCHOSEN: Final = "guess is missing"
_TAKE: Final = "takes the chosen guess"
"""Key of a function, where a step asks: it takes what the reader has chosen as the guess, and says whether that is
anything."""
_ASKED_ONCE: Final = "asked once for a guess"
"""Key of the step that was left for its answer without a guess, which is then asked for once."""


def panel(container: DeltaGenerator, inputs: StepInputs) -> Beside:
    """Draw the panel of the current step; returns what the step shows beside the grid."""
    with container.container(key="lesson", border=True):
        if "special tokens" in course.step_now().speaks_of:
            st.html(f"<style>{SWITCHES_ABOVE_ARCS}</style>")
        return _panel(inputs)


def _panel(inputs: StepInputs) -> Beside:
    lesson, index = course.now() or (1, 0)
    steps = steps_of(lesson)
    step = steps[index]
    _head(lesson, index)
    st.session_state.pop(_TAKE, None)
    presenting.class_code()
    if step.page == "laboratory" and (inputs.text_attention is None or not is_trained(inputs.visit)):
        st.markdown(say(language(), "not_trained" if trainings.running() is None else "being_trained"))
        return Beside()
    if step.name == CHECK:
        check(lesson)
        return Beside()
    if step.page == "inspect" and inputs.text_attention is None:
        return Beside()  # the page says why the text cannot be shown
    if step.sentence and inputs.typed != step.sentence:
        st.markdown(say(language(), "other_text"))
        st.button(say(language(), "put_back"), key="put sentence back", on_click=course.put_text, args=(step.sentence,))
        return Beside()
    try:
        with st.container(), st.spinner(say(language(), "computing"), show_time=True):
            result = step.finds(inputs)
    except AnalysisError as error:
        show_error(error)
        return Beside()
    guess = None
    section = step.name + (WITHOUT if result.section and step.may_lack else "")
    text = (
        words_of(lesson, language())
        .sections[section]
        .substitute({name: shown(value, language()) for name, value in result.values.items()})
    )
    if step.reveals:
        guess = _valid_guess(steps[index - 1], course.guess_of(lesson, index - 1), inputs)
        text = f"{_verdict(result, guess)}\n\n{text}"
        if step.shows:
            guessed = (guess,) if isinstance(guess, tuple) and guess not in result.heads else ()
            course.show_heads((*guessed, *result.heads), inputs.visit.engine.files.fingerprint)
    elif step.shows:
        course.show_heads(result.heads, inputs.visit.engine.files.fingerprint)
    if index == 0:
        if tally.code_now():
            before(lesson)
        text = f"**{words_of(lesson, language()).claim}**\n\n{text}"
    st.markdown(text)
    if step.takes_sentences:
        _sentences_to_add()
    if step.reveals and tally.code_now():
        shape = None if inputs.text_attention is None else inputs.text_attention.attention.shape[:2]
        class_answers((lesson, index - 1), steps[index - 1].asks, result, shape)
    if step.asks and not result.section:
        _ask(step, result, inputs)
    if result.ranking:
        return Beside(instead=partial(_ranking, result))
    if result.query is None:
        return Beside()
    asked = AskedLink(head=result.heads[0], query=result.query, guess=guess if isinstance(guess, int) else None)
    words = word_names(inputs.attention.text.keys)
    take = partial(_guess_word, words) if step.asks else None
    return Beside(asked=replace(asked, take=take, label=say(language(), "guess")))


def _ranking(result: StepResult) -> None:
    """What the checkpoint makes of the text, one line each, the highest value first."""
    with st.container(key="lesson ranking", gap=None):
        st.caption(say(language(), "predicted" if result.is_prediction else "similar"))
        lines = (
            f"{number}. {plain(name)} **{shown(f'{value:.2f}', language())}**"
            for number, (name, value) in enumerate(result.ranking, 1)
        )
        st.markdown("\n".join(lines))


def _sentences_to_add() -> None:
    added = course.added_sentences()
    with st.container(horizontal=True, gap="xsmall", key="lesson sentences"):
        for number, sentence in enumerate(MORE_EVIDENCE, 1):
            digit = str(number % len(MORE_EVIDENCE))
            st.button(
                digit,
                key=f"sentence {digit}",
                help=sentence,
                shortcut=digit,
                disabled=sentence in added,
                on_click=course.add_sentence,
                args=(sentence,),
            )
        if foreign := st.session_state.pop(course.NOT_ADDED, None):
            st.markdown(f":material/translate: {say(language(), 'not_added', foreign=foreign)}", width="stretch")
        elif added:
            st.caption(say(language(), "added", sentence=plain(added[-1])), width="stretch")
    st.text_input(say(language(), "add_sentence"), key=SENTENCE_TO_ADD, on_change=course.add_own_sentence)


def elsewhere() -> None:
    """On pages without a step: buttons back to the lesson, out of it, and out of presenting."""
    current = course.now()
    if state.lesson_is_on(st.session_state["page"] or "inspect"):
        return
    if current is None:
        if state.is_presenting():
            presenting.button()
            presenting.class_code()
        return
    with st.container(horizontal=True, vertical_alignment="center", key="lesson elsewhere"):
        st.markdown(say(language(), "elsewhere", number=current[0]), width="content")
        st.button(say(language(), "to_lesson"), key="to lesson", on_click=course.enter, args=current, type="tertiary")
        st.button(say(language(), "leave"), key="leave lesson", on_click=course.leave, type="tertiary")
        presenting.button()
        presenting.class_code()


def _head(lesson: int, index: int) -> None:
    in_words, n_steps = language(), len(steps_of(lesson))
    name, n_all = words_of(lesson, in_words).title, max(lesson, *offered())
    following = next((other for other in offered() if other > lesson), None)
    title = say(in_words, "lesson", number=lesson, lessons=n_all, title=name)
    with st.container(horizontal=True, vertical_alignment="center", key="lesson head"):
        st.title(title, anchor=False, width="content")
        st.caption(say(in_words, "step", step=index + 1, steps=n_steps), width="content")
        with st.container(horizontal=True, horizontal_alignment="right", gap="xsmall", key="lesson ways"):
            back = ":material/arrow_back:"
            _way("back", lesson, index - 1, disabled=index == 0, icon=back, goes=course.go_back)
            if index + 1 < n_steps:
                is_asking = bool(steps_of(lesson)[index].asks)
                _way("next", lesson, index + 1, icon=":material/arrow_forward:", is_main=not is_asking, goes=_next)
            elif following is not None:
                _way("next_lesson", following, 0, icon=":material/arrow_forward:", is_main=True)
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


def _way(
    name: str,
    lesson: int,
    index: int,
    *,
    icon: str,
    disabled: bool = False,
    is_main: bool = False,
    goes: Callable[[int, int], None] = course.enter,
) -> None:
    st.button(
        say(language(), name),
        key=f"lesson {name}".replace("next_lesson", "next"),
        icon=icon,
        disabled=disabled,
        type="secondary" if is_main else "tertiary",
        on_click=goes,
        args=(lesson, index),
    )


def _next(lesson: int, index: int) -> None:
    """Go to a step; from a question with the guess that is chosen, and without one not before it was asked for once.

    It is the one after where the reader is by now: *Back* may have been pressed since the button was drawn.
    """
    _, current = course.now() or (lesson, index - 1)
    index = min(index, current + 1)
    asked = (lesson, index - 1)
    take: Callable[[], bool] | None = st.session_state.pop(_TAKE, None)
    if take is not None and take():
        return
    if take is None or course.guess_of(*asked) is not None or st.session_state.get(_ASKED_ONCE) == asked:
        course.enter(lesson, index)
    else:
        st.session_state[_ASKED_ONCE] = asked


def _verdict(result: StepResult, guess: Guess) -> str:
    if guess is None:
        return f"*{say(language(), 'no_guess')}*"
    is_right = result.is_right(guess)
    icon = ":material/check_circle:" if is_right else ":material/arrow_right_alt:"
    name = "right" if is_right else "close" if result.is_close(guess) else "wrong"
    verdict = say(language(), name, guess=shown(result.of_guess(guess), language()))
    doing = None if is_right else result.doing(guess)
    values = {} if doing is None else {name: shown(value, language()) for name, value in doing.values}
    said = "" if doing is None else say(language(), doing.name, **values)
    return f"{icon} **{verdict}** {said}".rstrip()


def _valid_guess(question_step: Step, guess: Guess, inputs: StepInputs) -> Guess:
    """The prediction, if the current checkpoint and text have such a head or token; it may be of others."""
    if inputs.text_attention is None or guess is None or question_step.asks == "number":
        return guess
    sizes = (
        inputs.text_attention.attention.shape[:2]
        if question_step.asks == "head"
        else (len(inputs.text_attention.text.keys.tokens),)
    )
    numbers = guess if isinstance(guess, tuple) else (guess,)
    return guess if len(numbers) == len(sizes) and all(map(lt, numbers, sizes)) else None


def _ask(step: Step, result: StepResult, inputs: StepInputs) -> None:
    words = word_names(inputs.attention.text.keys) if step.asks == "word" else ()
    st.session_state[_TAKE] = {"head": _take_head, "word": partial(_take_pinned, words)}.get(step.asks, lambda: False)
    if st.session_state.get(_ASKED_ONCE) == course.now():
        st.markdown(f":material/help: {say(language(), 'ask_once')}")
    with st.container(horizontal=True, vertical_alignment="bottom", key="lesson guess"):
        if step.asks == "number":
            assert result.most is not None, "a question about a number says up to which"
            _ask_number(result.most)
            return
        value: Guess = None
        if step.asks == "head":
            heads: list[Head] = st.session_state.get(state.HEADS) or []
            value = heads[-1] if heads else None
            st.markdown(
                say(language(), "choose_head") if value is None else say(language(), "chosen", head=head_name(*value)),
                width="content",
            )
        st.button(
            say(language(), "guess"),
            key="lesson guess it",
            icon=":material/how_to_vote:",
            disabled=step.asks == "head" and value is None,
            on_click=partial(_take_word, words) if step.asks == "word" else _guess_head,
        )
        if tally.code_now():
            class_counts(course.now() or (1, 0))
        if step.asks == "word" and st.session_state.pop(_UNCHOSEN, False):
            st.markdown(f":material/touch_app: {say(language(), 'choose_word')}", width="content")


def _ask_number(most: int) -> None:
    """A form with a number and its button: the page does not rerun for the number alone."""
    with st.form("number", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(say(language(), "number"), 0, most, None, key=NUMBER, width=160)
        st.form_submit_button(
            say(language(), "guess"), key="lesson guess it", icon=":material/how_to_vote:", on_click=_take_number
        )
        if tally.code_now():
            class_counts(course.now() or (1, 0))
        if st.session_state.pop(_UNCHOSEN, False):
            st.markdown(f":material/edit: {say(language(), 'type_number')}", width="content")


def _take_number() -> None:
    number = st.session_state.get(NUMBER)  # a form that is sent by hand may lack its field
    if number is None:
        st.session_state[_UNCHOSEN] = True
    else:
        course.guess(int(number), str(int(number)))


def _take_head() -> bool:
    heads: list[Head] = st.session_state.get(state.HEADS) or []
    if heads:
        course.guess(heads[-1], head_name(*heads[-1]))
    return bool(heads)


def _guess_word(words: Sequence[str], token: int) -> None:
    course.guess(token, words[token])


def _guess_head() -> None:
    _take_head()


def _take_pinned(words: Sequence[str]) -> bool:
    """Take the pinned token of the right-hand column; `words` are those of each token of the text on screen."""
    side, _, token = look_now().pin.partition("-") if LOOK in st.session_state else ("", "", "")
    if side == "to":
        _guess_word(words, int(token))
    return side == "to"


def _take_word(words: Sequence[str]) -> None:
    st.session_state[_UNCHOSEN] = not _take_pinned(words)
