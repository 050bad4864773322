"""The teacher's desk on the page of lessons: a class, notes on each lesson with its answers, and what is printed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.saved_runs import run_and_step
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls, link, state
from attention_sieve.dashboard.languages import language, say, shown
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.samples import REVIEW, read_sample
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons import presenting, tally
from attention_sieve.dashboard.views.lessons.class_file import class_file
from attention_sieve.dashboard.views.lessons.computation import StepInputs
from attention_sieve.dashboard.views.lessons.content import WITHOUT, TeacherNotes, read_teacher_notes
from attention_sieve.dashboard.views.lessons.plans import FILES, LESSONS, Step, offered, second_checkpoint, words_of
from attention_sieve.dashboard.views.lessons.presenting import link_of_class
from attention_sieve.dashboard.views.lessons.sentences import NEAR
from attention_sieve.dashboard.views.lessons.sheet import material_of, notes_sheet, sheet
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED
from attention_sieve.dashboard.views.toy import patterns_at, visit_at

TEACH: Final = "teach"
"""Key, and query parameter, of whether the desk is open: the link that a teacher keeps."""
CHOSEN: Final = "lesson on the desk"
SAMPLE_CORPUS: Final = controls.CORPORA[0]
_TOO_MANY: Final = "too many classes"


@dataclass(frozen=True)
class StepAnswer:
    step: int
    """Number of the step that reveals it, from 1."""
    text: str
    """Markdown."""


def is_open() -> bool:
    """Whether the reader teaches: by the link, or as the maker of a class. Who joins one does not see the answers."""
    if (value := link.take(TEACH)) is not None:
        st.session_state[TEACH] = value == "1"
    is_on = bool(st.session_state.get(TEACH))
    link.put([TEACH], {TEACH: "1"} if is_on else {})
    return is_on


def desk(visit: Visit | None) -> None:
    in_words, code = language(), tally.code_now()
    st.markdown(say(in_words, "teach_text", hours=tally.HOURS))
    with st.container(horizontal=True, vertical_alignment="center"):
        if not state.is_presenting():
            presenting.button()
        st.button(say(in_words, "make_code"), key="make code", icon=":material/groups:", on_click=_make_code)
        if code:
            st.download_button(
                say(in_words, "class_file"),
                partial(class_file, code, in_words),
                f"class-{code}.csv",
                "text/csv",
                key="class file",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )
    if st.session_state.pop(_TOO_MANY, False):
        st.error(say(in_words, "codes_in_use"), icon=":material/error:")
    if code:
        st.markdown(say(in_words, "code", code=f"**{code}**"))
        st.code(link_of_class(code, 1, 0), language=None, wrap_lines=True)
    _notes(visit)
    _sheets(visit)


def _make_code() -> None:
    try:
        st.session_state[state.CLASS] = tally.tally().make(tally.visitor())
        st.session_state[TEACH] = True
    except AnalysisError:
        st.session_state[_TOO_MANY] = True


def _notes(visit: Visit | None) -> None:
    """What a teacher needs of one lesson, and the same to print."""
    in_words = language()
    titles = {lesson: f"{lesson}. {words_of(lesson, in_words).title}" for lesson in offered()}
    lesson = st.selectbox(say(in_words, "notes_on"), list(titles), format_func=titles.__getitem__, key=CHOSEN)
    notes, answers = teacher_notes(lesson, in_words), tuple[StepAnswer, ...]()
    try:
        with st.container(), st.spinner(say(in_words, "computing"), show_time=True):
            answers = () if visit is None else tuple(answers_of(visit, lesson, in_words))
    except AnalysisError as error:
        show_error(error)
    with st.container(key="notes on a lesson"):
        st.markdown("\n\n".join(note_lines(notes, lesson, answers, in_words)))
        st.download_button(
            say(in_words, "notes_print"),
            lambda: notes_sheet(titles[lesson], in_words, note_lines(notes, lesson, answers, in_words)),
            f"{lesson}-{FILES[lesson - 1]}-notes.html",
            "text/html",
            key="print notes",
            type="tertiary",
            icon=":material/print:",
            on_click="ignore",
        )


def teacher_notes(lesson: int, in_words: str) -> TeacherNotes:
    return read_teacher_notes(in_words, f"{lesson}-{FILES[lesson - 1]}")


def note_lines(notes: TeacherNotes, lesson: int, answers: tuple[StepAnswer, ...], in_words: str) -> list[str]:
    """Paragraphs in Markdown: aim, minutes, what it needs, answers, mistakes, the question before and after."""
    question = words_of(lesson, in_words).question
    options = [f"- {'☑' if place == question.right else '☐'} {each}" for place, each in enumerate(question.options)]
    given = [f"- {say(in_words, 'note_step', step=answer.step)} {answer.text}" for answer in answers]
    return [
        f"**{say(in_words, 'note_aim')}** {notes.aim}",
        f"**{say(in_words, 'note_minutes', minutes=notes.minutes)}**",
        f"**{say(in_words, 'note_needs')}** {notes.needs}",
        "\n".join([f"**{say(in_words, 'note_answers')}**", *(given or [f"- {say(in_words, 'note_no_answers')}"])]),
        f"**{say(in_words, 'note_mistakes')}**\n{notes.mistakes}",
        "\n".join([f"**{say(in_words, 'note_question')}** {question.text}", *options]),
        question.afterwards,
    ]


def answers_of(visit: Visit, lesson: int, in_words: str) -> Iterator[StepAnswer]:
    """What each prediction of a lesson turns out to be, by the checkpoint.

    Raises: AnalysisError if a checkpoint cannot be loaded, or cannot read a text.
    """
    sections, sentence = words_of(lesson, in_words).sections, NEAR.sentence
    for number, step in enumerate(LESSONS[lesson - 1], start=1):
        sentence = str(step.puts.get("text", sentence))
        if step.reveals and (inputs := _inputs(visit, step, sentence)) is not None:
            result = step.finds(inputs)
            section = sections[step.name + (WITHOUT if result.section and step.may_lack else "")]
            values = {name: shown(value, in_words) for name, value in result.values.items()}
            yield StepAnswer(number, section.substitute(values))


def _inputs(visit: Visit, step: Step, sentence: str) -> StepInputs | None:
    """What the page of a step would give it at first, with all heads on; None where that is not made yet."""
    choice = replace(visit.choice, off=(), corpus=SAMPLE_CORPUS)
    visit = replace(visit, choice=choice)
    if step.page == "laboratory":
        return _of_laboratory()
    if step.page == "compare":
        return _of_pair(visit, second_checkpoint())
    if step.page == "roles":
        visit = replace(visit, texts=read_sample("both"))
        tested = corpus(visit)
        return None if tested is None else StepInputs(visit=visit, tested=tested)
    text_attention, _ = visit.inference.look(visit.engine, read_typed(sentence)[0], PassSettings(visit.settings.kind))
    return StepInputs(visit=visit, text_attention=text_attention, typed=sentence)


def _of_pair(visit: Visit, names: list[str]) -> StepInputs | None:
    if not names:
        return None
    others: tuple[Engine, ...] = (controls.other_engine(visit.choice, names[0]),)
    typed = REVIEW.segments[0] if run_and_step(names[0])[0] == SAMPLE_FINE_TUNING else EXAMPLE_TYPED
    return StepInputs(visit=visit, others=others, typed=typed)


def _of_laboratory() -> StepInputs | None:
    run = next((run for run in laboratory_runs() if run.progress.state != "running"), None)
    if run is None:
        return None
    visit = visit_at(run, run.progress.saved[-1], "repeats")
    return StepInputs(visit=visit, text_attention=patterns_at(visit))


def _sheet(lesson: int, in_words: str, visit: Visit | None) -> str:
    """The sheet of a lesson, made when it is asked for; with its sentence only if the checkpoint can read it."""
    try:
        material = {} if visit is None else material_of(visit, lesson)
    except AnalysisError:
        material = {}
    return sheet(lesson, in_words, material)


def _sheets(visit: Visit | None) -> None:
    """A sheet to print for each lesson."""
    in_words = language()
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
