"""The teacher's desk: notes on each lesson whose answers are those that the lesson itself gives, and their print."""

import re

import pytest
from reading import told

from attention_sieve.dashboard.languages import ENGLISH, languages
from attention_sieve.dashboard.views.lessons.desk import CHOSEN, TEACH, StepAnswer, note_lines, teacher_notes
from attention_sieve.dashboard.views.lessons.plans import LESSONS, words_of
from attention_sieve.dashboard.views.lessons.sheet import notes_sheet
from attention_sieve.dashboard.views.lessons.tally import Visitor, tally

NUMBERS = range(1, len(LESSONS) + 1)


def opened(at):
    return next(each.proto.expanded for each in at.expander if each.label == "For teachers")


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("lesson", NUMBERS)
def test_each_lesson_has_an_aim_minutes_needs_and_three_mistakes_or_more(lesson, language):
    notes = teacher_notes(lesson, language)
    assert 5 <= notes.minutes <= 20
    assert notes.aim.endswith(".")
    assert notes.needs.endswith(".")
    assert len(re.findall(r"^- \*[“„].+[”“]\* .+", notes.mistakes, re.MULTILINE)) >= 3


@pytest.mark.parametrize(("lesson", "step"), [(1, 3), (2, 2), (2, 4), (5, 2)])
def test_the_answers_on_the_desk_are_those_of_the_lesson(app, store, lesson, step):
    at = app("lessons", teach="1", corpus=None, corpus_text=None)
    at.selectbox(key=CHOSEN).set_value(lesson).run()
    answer = next(re.findall(rf"Step {step}: (.*)", each.value) for each in at.markdown if "Step" in each.value)[0]
    said = told(app(lesson=str(lesson), step=str(step)))
    assert answer in said


def test_a_pupil_who_joins_sees_no_answers_and_who_makes_a_code_does(app, store):
    code = tally().make(Visitor("teacher's page", None))
    assert not opened(app("lessons", **{"class": code}))
    at = app("lessons")
    next(button for button in at.button if button.key == "make code").click().run()
    assert opened(at)
    assert at.query_params[TEACH] == "1"


@pytest.mark.parametrize("lesson", NUMBERS)
def test_printed_notes_are_text_and_name_the_right_option(lesson):
    lines = note_lines(
        teacher_notes(lesson, ENGLISH), lesson, (StepAnswer(2, "From *<b>*, **L0 H2** gives 9\\%."),), ENGLISH
    )
    page = notes_sheet("1. A & B", ENGLISH, lines)
    assert "<h1>1. A &amp; B</h1>" in page
    assert "From &lt;b&gt;, <b>L0 H2</b> gives 9%." in page
    assert "<script" not in page
    assert "*" not in page
    question = words_of(lesson, ENGLISH).question
    assert page.count("☑") == 1
    assert page.count("☐") == len(question.options) - 1
