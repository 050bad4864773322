"""Counts of a class: exact under threads, bounded, and forgotten."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.views.lessons.tally import (
    BEFORE,
    HOURS,
    IDLE_SECONDS,
    LENGTH,
    LETTERS,
    MOST_ANSWERS,
    MOST_CLASSES,
    MOST_OF_ADDRESS,
    MOST_OF_PAGE,
    Tally,
    Visitor,
)

QUESTION = (1, 1)
TEACHER, STUDENT = Visitor("teacher's page", "192.0.2.1"), Visitor("student's page", "192.0.2.2")


def test_answers_are_counted_the_most_frequent_first_and_a_second_guess_takes_the_place_of_the_first():
    tally = Tally()
    code = tally.make(TEACHER)
    for answer in ("shop", "baker", "shop"):
        assert tally.count(code, QUESTION, answer)
    assert tally.counts(code, QUESTION) == [("shop", 2), ("baker", 1)]
    assert tally.counts(code, (2, 0)) == []
    tally.count(code, QUESTION, "oven", instead_of="baker")
    assert tally.counts(code, QUESTION) == [("shop", 2), ("oven", 1)]
    assert not tally.count("AAAAAA", QUESTION, "shop"), "an unknown class counts nothing"


def test_all_that_a_class_has_answered_is_listed_in_the_order_of_the_lessons():
    tally = Tally()
    code = tally.make(TEACHER)
    for question, answer in (((2, 5), "1"), ((1, 1), "shop"), ((2, BEFORE), "0"), ((2, 5), "1"), ((2, 5), "0")):
        tally.count(code, question, answer)
    assert tally.answered(code) == [
        ((1, 1), [("shop", 1)]),
        ((2, BEFORE), [("0", 1)]),
        ((2, 5), [("1", 2), ("0", 1)]),
    ]
    assert tally.answered("AAAAAA") == []


def test_classes_are_apart_and_their_codes_hard_to_guess():
    tally = Tally()
    codes = {tally.make(Visitor(f"page {number}", None)) for number in range(100)}
    assert len(codes) == 100
    assert all(len(code) == LENGTH and set(code) <= set(LETTERS) for code in codes)
    one, other = list(codes)[:2]
    tally.count(one, QUESTION, "shop")
    assert tally.counts(other, QUESTION) == []


def test_a_class_is_forgotten_after_a_day():
    now = 0.0
    tally = Tally(lambda: now)
    code = tally.make(TEACHER)
    now = HOURS * 3600 - 1.0
    assert tally.join(code, STUDENT)
    now += 2
    assert not tally.join(code, STUDENT)
    assert tally.counts(code, QUESTION) == []


def test_answers_are_bounded():
    tally = Tally()
    code = tally.make(TEACHER)
    assert all(tally.count(code, QUESTION, f"{number}") for number in range(MOST_ANSWERS))
    assert not tally.count(code, QUESTION, "one more")
    assert tally.count(code, QUESTION, "0")


def test_whoever_clicks_takes_the_place_of_own_classes_only():
    tally = Tally()
    code = tally.make(TEACHER)
    made = [tally.make(Visitor("stranger's page", None)) for _ in range(2 * MOST_CLASSES)]
    assert tally.join(code, STUDENT)
    assert [tally.join(each, STUDENT) for each in made[-MOST_OF_PAGE - 1 :]] == [False] + [True] * MOST_OF_PAGE


def test_a_stranger_with_many_pages_takes_the_place_of_no_class_of_another_address():
    tally = Tally()
    code = tally.make(TEACHER)
    made = [tally.make(Visitor(f"page {number}", "203.0.113.5")) for number in range(2 * MOST_CLASSES)]
    assert tally.join(code, STUDENT)
    assert sum(tally.join(each, STUDENT) for each in made) == MOST_OF_ADDRESS


def test_a_class_at_work_stays_whoever_makes_classes_and_a_teacher_still_gets_one():
    """Behind a proxy, the server cannot tell addresses apart."""
    now = 0.0
    tally = Tally(lambda: now)
    code = tally.make(TEACHER)
    assert tally.join(code, STUDENT)
    for number in range(2 * MOST_CLASSES):
        now += 1
        tally.make(Visitor(f"page {number}", None))
    assert tally.count(code, QUESTION, "shop")
    other = tally.make(Visitor("other teacher's page", None))
    assert tally.join(other, STUDENT)
    assert tally.counts(code, QUESTION) == [("shop", 1)]


def test_the_least_recently_used_class_makes_room():
    now = 0.0
    tally = Tally(lambda: now)
    codes = []
    for number in range(MOST_OF_PAGE):
        now = number
        codes.append(tally.make(TEACHER))
    now += 1
    tally.counts(codes[0], QUESTION)
    now += 1
    tally.make(TEACHER)
    assert [tally.join(code, STUDENT) for code in codes] == [True, False] + [True] * (MOST_OF_PAGE - 2)


def test_a_class_that_nobody_uses_any_more_makes_room_and_until_then_a_sentence_says_so():
    now = 0.0
    tally = Tally(lambda: now)
    codes = []
    for number in range(MOST_OF_PAGE):
        now = number
        codes.append(tally.make(TEACHER))
        tally.join(codes[-1], STUDENT)
    now = IDLE_SECONDS
    with pytest.raises(AnalysisError, match=r"^All 5 class codes made on this page are in use\. Use one of them"):
        tally.make(TEACHER)
    now = IDLE_SECONDS + 1
    tally.make(TEACHER)
    assert not tally.join(codes[0], STUDENT)


def test_counts_are_exact_under_threads():
    tally = Tally()
    code = tally.make(TEACHER)

    def guess(number):
        before = None
        for answer in range(50):
            tally.count(code, QUESTION, str((number + answer) % 7), instead_of=before)
            before = str((number + answer) % 7)
        return before

    with ThreadPoolExecutor(32) as pool:
        last = list(pool.map(guess, range(32)))
    assert dict(tally.counts(code, QUESTION)) == {answer: last.count(answer) for answer in set(last)}
