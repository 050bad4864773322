"""All that a class has answered, as a file: counts and shares, no names."""

import csv
from io import StringIO
from typing import Final

from attention_sieve.dashboard.views.lessons.content import CHECK
from attention_sieve.dashboard.views.lessons.plans import steps_of, words_of
from attention_sieve.dashboard.views.lessons.tally import BEFORE, LessonStep, tally

COLUMNS: Final = ("class", "lesson", "title", "step", "asked", "answer", "is_right", "count", "share")
"""`step` is counted from 1, and empty for the question before a lesson; `is_right` is empty for predictions, whose
answer depends on the checkpoint; `share` is of all answers to the same."""


def class_file(code: str, in_words: str) -> str:
    """A CSV file with a row for each answer that somebody gave, in the order of the lessons."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for question, counts in tally().answered(code):
        total = sum(count for _, count in counts)
        for answer, count in counts:
            writer.writerow((code, *_described(question, answer, in_words), count, f"{count / total:.4f}"))
    return file.getvalue()


def _described(question: LessonStep, answer: str, in_words: str) -> tuple[int, str, int | str, str, str, bool | str]:
    """Columns `lesson` to `is_right`."""
    lesson, index = question
    words = words_of(lesson, in_words)
    if index != BEFORE and steps_of(lesson)[index].name != CHECK:
        return lesson, words.title, index + 1, "prediction", answer, ""
    place = int(answer)
    asked, step = ("question before", "") if index == BEFORE else ("question after", index + 1)
    return lesson, words.title, step, asked, words.question.options[place], place == words.question.right
