"""Counts of a class: exact under threads, bounded, and forgotten."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import AnalysisError
from dashboard.views.lessons import tally as module
from dashboard.views.lessons.tally import HOURS, LENGTH, LETTERS, Tally

QUESTION = (1, 1)


def test_answers_are_counted_the_most_frequent_first():
    tally = Tally()
    code = tally.make()
    for answer in ("shop", "baker", "shop"):
        assert tally.count(code, QUESTION, answer)
    assert tally.counts(code, QUESTION) == [("shop", 2), ("baker", 1)]
    assert tally.counts(code, (2, 0)) == []


def test_a_second_guess_takes_the_place_of_the_first():
    tally = Tally()
    code = tally.make()
    tally.count(code, QUESTION, "shop")
    tally.count(code, QUESTION, "baker", instead_of="shop")
    assert tally.counts(code, QUESTION) == [("baker", 1)]


def test_classes_are_apart_and_their_codes_hard_to_guess():
    tally = Tally()
    codes = {tally.make() for _ in range(100)}
    assert len(codes) == 100
    assert all(len(code) == LENGTH and set(code) <= set(LETTERS) for code in codes)
    one, other = list(codes)[:2]
    tally.count(one, QUESTION, "shop")
    assert tally.counts(other, QUESTION) == []


def test_an_unknown_class_counts_nothing():
    assert not Tally().count("AAAAAA", QUESTION, "shop")


def test_a_class_is_forgotten_after_a_day():
    now = 0.0
    tally = Tally(lambda: now)
    code = tally.make()
    now = HOURS * 3600 - 1.0
    assert tally.knows(code)
    now += 2
    assert not tally.knows(code)
    assert tally.counts(code, QUESTION) == []


def test_classes_and_answers_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_CLASSES", 2)
    monkeypatch.setattr(module, "MOST_ANSWERS", 3)
    tally = Tally()
    code = tally.make()
    tally.make()
    with pytest.raises(AnalysisError, match="2 classes already"):
        tally.make()
    assert [tally.count(code, QUESTION, answer) for answer in "abcd"] == [True, True, True, False]
    assert tally.count(code, QUESTION, "a")


def test_counts_are_exact_under_threads():
    tally = Tally()
    code = tally.make()

    def guess(number):
        before = None
        for answer in range(50):
            tally.count(code, QUESTION, str((number + answer) % 7), instead_of=before)
            before = str((number + answer) % 7)
        return before

    with ThreadPoolExecutor(32) as pool:
        last = list(pool.map(guess, range(32)))
    assert dict(tally.counts(code, QUESTION)) == {answer: last.count(answer) for answer in set(last)}
