"""A small class at one server: all are right, nobody waits for another's corpus, and a closed page costs nothing."""

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import numpy as np
import pytest

from attention_sieve.cache.store.store import Store
from benchmarks.serving import class_lesson, full_class
from benchmarks.shared import lesson
from benchmarks.shared.sentences import LONGEST, SHORTEST, sentences
from benchmarks.shared.visitors import is_progress, visitor

N_STUDENTS, N_SENTENCES = 8, 4
N_CORPUS = 600


@pytest.fixture(scope="module")
def class_server(running):
    """A dashboard that has loaded the checkpoint."""
    in_a_loop(first_visit(running.address))
    yield running
    assert running.tracebacks() == 0


def in_a_loop(coroutine):
    """What a coroutine gives, from a thread of its own: Playwright keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def first_visit(address):
    async with visitor(address) as student:
        await student.open()
        await lesson.warm_up(student)


def test_every_student_sees_the_scores_of_their_own_text(class_server):
    typed = sentences(N_STUDENTS * N_SENTENCES, seed=1)
    record = lesson.Record()

    async def hour():
        together = lesson.Class(class_server, record)
        async with AsyncExitStack() as stack:
            students = [await stack.enter_async_context(visitor(class_server.address)) for _ in range(N_STUDENTS)]
            await asyncio.gather(*(together.open(student) for student in students))
            own = [typed[number::N_STUDENTS] for number in range(N_STUDENTS)]
            await lesson.all_at_once(together, students, own)

    in_a_loop(hour())
    assert record.wrong == []
    assert sorted(record.scores) == sorted(typed)
    moved = [number for number in range(N_SENTENCES) if lesson.moves_tau(number)]
    assert record.n_interactions == N_STUDENTS * (1 + N_SENTENCES + len(moved))
    for text, alone in zip(record.scores, full_class.scored_one_by_one(list(record.scores)), strict=True):
        assert full_class.relative_difference(record.scores[text], alone) <= full_class.TOLERANCE, text


def test_nobody_waits_for_the_corpus_of_another(class_server):
    *corpus, sentence = sentences(N_CORPUS + 1, seed=2)

    store = Store(class_server.log.parent)
    n_before = store.size()[0]

    async def hour():
        async with visitor(class_server.address) as reader, visitor(class_server.address) as student:
            await student.open()
            await lesson.open_for_a_corpus(reader)
            begun = await reader.type("\n".join(corpus), "corpus_text", until=is_progress)
            answer = await student.type(sentence)
            return begun.complaints + answer.complaints, answer.grid, store.size()[0] - n_before

    complaints, grid, n_kept = in_a_loop(hour())
    store.close()
    assert complaints == []
    assert grid is not None
    assert n_kept < N_CORPUS


def test_closing_a_page_drops_its_corpus(class_server):
    n_kept, n_after = in_a_loop(lesson.closed_page(class_server, sentences(N_CORPUS, seed=3)))
    assert 0 < n_kept + n_after < N_CORPUS / 2


def test_an_error_on_a_page_is_a_complaint(class_server):
    async def mistake():
        async with visitor(class_server.address) as student:
            await student.open()
            return await student.type("one ||| two ||| three")

    answer = in_a_loop(mistake())
    assert answer.grid is None
    assert len(answer.complaints) == 1
    assert "3 segments" in answer.complaints[0]


def test_sentences_differ_and_keep_their_length():
    made = sentences(2000, seed=4)
    assert len(set(made)) == 2000
    assert all(SHORTEST <= len(sentence.split()) <= LONGEST for sentence in made)
    assert made == sentences(2000, seed=4)
    assert set(made).isdisjoint(sentences(100, seed=5))


def test_a_difference_is_relative_and_a_missing_score_infinite():
    assert full_class.relative_difference(np.array([2.0, np.nan]), np.array([1.6, np.nan])) == pytest.approx(0.25)
    assert full_class.relative_difference(np.array([0.001]), np.array([0.0])) == pytest.approx(0.1)
    assert full_class.relative_difference(np.array([1.0]), np.array([math.nan])) == math.inf


def test_a_class_in_a_lesson_is_counted_exactly(class_server):
    found = in_a_loop(class_lesson.lesson(class_server.address, N_STUDENTS, class_lesson.STEPS[0]))
    assert found.wrong == []
    assert len(found.waits) == 3 * N_STUDENTS


def test_a_tally_that_is_not_exact_is_noted():
    assert class_lesson.differences(["3: 2", "1: 1"], {3: 2, 1: 1}) == []
    assert len(class_lesson.differences(["3: 2"], {3: 2, 1: 1})) == 1
