"""The question of a lesson before and after it: each pupil counts once, and the shares are those of the counts."""

import csv
import re
from io import StringIO

import pytest

from attention_sieve.dashboard.languages import ENGLISH
from attention_sieve.dashboard.views.lessons.check import shares_table
from attention_sieve.dashboard.views.lessons.class_file import COLUMNS, class_file
from attention_sieve.dashboard.views.lessons.content import Quiz
from attention_sieve.dashboard.views.lessons.plans import steps_of, words_of
from attention_sieve.dashboard.views.lessons.tally import BEFORE, Visitor, tally

LESSON = 2
AFTER = (LESSON, len(steps_of(LESSON)) - 1)
QUESTION = words_of(LESSON, ENGLISH).question
RIGHT, WRONG = QUESTION.right, (QUESTION.right + 1) % len(QUESTION.options)


@pytest.fixture
def code():
    return tally().make(Visitor("teacher's page", None))


def pick(at, key, option):
    at.radio(key=key).set_value(QUESTION.options[option]).run()
    return at


def shares(at):
    return next((each.body for each in at.get("html") if "class-shares" in each.body), "")


def test_a_pupil_answers_before_and_after_and_the_first_answer_counts(app, code, store):
    at = app(**{"lesson": str(LESSON), "step": "1", "class": code})
    pick(at, f"before {LESSON}", WRONG)
    assert any("Your answer is counted." in each.value for each in at.caption)
    assert f"before {LESSON}" not in [each.key for each in at.radio]
    assert tally().counts(code, (LESSON, BEFORE)) == [(str(WRONG), 1)]
    at = app(**{"lesson": str(LESSON), "step": str(AFTER[1] + 1), "class": code})
    assert not shares(at), "who has not answered sees no shares"
    for option in (WRONG, RIGHT):
        pick(at, f"check {LESSON}", option)
    assert tally().counts(code, AFTER) == [(str(WRONG), 1)]
    assert "Answers of the class: 1 before the lesson, 1 after it." in " ".join(each.value for each in at.caption)
    assert shares(at).count("100%") == 4, "as text and as width, before and after"


def test_who_presents_is_told_how_many_have_answered_and_is_not_counted(app, code, store):
    tally().count(code, (LESSON, BEFORE), "0")
    at = app(**{"lesson": str(LESSON), "step": "1", "class": code, "present": "1"})
    assert "Answers so far: 1." in " ".join(each.value for each in at.markdown)
    assert not at.radio
    at = app(**{"lesson": str(LESSON), "step": str(AFTER[1] + 1), "class": code, "present": "1"})
    pick(at, f"check {LESSON}", RIGHT)
    assert shares(at)
    assert tally().counts(code, AFTER) == []


def test_without_a_class_no_lesson_asks_before_it(app, store):
    assert not app(lesson="2", step="1").radio


def test_shares_are_those_of_the_counts_and_options_are_text():
    question = Quiz(text="Which?", options=("<b>This", "That"), right=1, afterwards="Because.")
    table = shares_table(question, [{"0": 3, "1": 1}, {}], ENGLISH)
    assert "&lt;b&gt;This" in table
    assert re.findall(r">(\d+%|–)<", table) == ["75%", "–", "25%", "–"]
    assert "<tr class=right><td>That" in table


def test_the_file_of_a_class_has_a_row_for_each_answer_and_no_names(code):
    for question, answer in (((LESSON, 0), "L0 H2"), ((LESSON, BEFORE), str(WRONG)), (AFTER, str(RIGHT))):
        tally().count(code, question, answer)
    tally().count(code, AFTER, str(WRONG))
    rows = list(csv.DictReader(StringIO(class_file(code, ENGLISH))))
    assert tuple(rows[0]) == COLUMNS
    before, prediction, *after = rows
    assert (before["asked"], before["step"], before["answer"]) == ("question before", "", QUESTION.options[WRONG])
    assert (prediction["asked"], prediction["answer"], prediction["is_right"]) == ("prediction", "L0 H2", "")
    assert {(row["is_right"], row["count"], row["share"]) for row in after} == {
        ("True", "1", "0.5000"), ("False", "1", "0.5000"),
    }  # fmt: skip
