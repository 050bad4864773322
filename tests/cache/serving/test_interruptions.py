"""Work that a worker has begun, when something more urgent comes, or when nobody waits for it any more.

Nothing here waits for time to pass: the pauses of a pass are told what to wait for.
"""

import threading

import numpy as np
import pytest
from small_checkpoints import save

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.looks import changed
from attention_sieve.cache.serving import worker as worker_module
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.serving.shares import UrgentWork
from attention_sieve.cache.serving.worker import Worker
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.pauses import pause, pausing
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text

SECONDS = 120
"""A test that waits longer has failed."""
SWEEP = ablation_question("output")
CORPUS = tuple(Text((f"The cat chased {noun} on the mat.",)) for noun in ("dog", "bird", "apple"))
TYPED = Text(("She drinks hot coffee.",))


class Pauses:
    """Says what the first pauses of the passes of a question wait for, and counts them."""

    def __init__(self, monkeypatch, question, *waits):
        self.begun, self.n, self.order = threading.Event(), 0, []
        self._question, self._waits, self._real = question, waits, worker_module.passed
        monkeypatch.setattr(worker_module, "passed", self._passed)

    def _passed(self, checkpoints, batch):
        self.order.append(batch[0].item_request.question.name)
        if batch[0].item_request.question is not self._question:
            return self._real(checkpoints, batch)
        with pausing(self._at_pause):
            return self._real(checkpoints, batch)

    def _at_pause(self):
        self.n += 1
        self.begun.set()
        if self.n <= len(self._waits):
            assert self._waits[self.n - 1].wait(SECONDS)


class TabClosed(BaseException):
    """As Streamlit stops a script."""


def waiting(event):
    return lambda status: event.set()


def alone(tmp_path, engine, question, texts, settings=None):
    other = Inference(Store(tmp_path / "alone"))
    results = other.ask(engine, question, texts, settings).results
    other.close()
    other.store.close()
    return results


@pytest.mark.parametrize("work", [None, changed], ids=["look", "change of the output"])
def test_a_typed_text_interrupts_a_sweep_and_neither_changes_the_other(
    work, tmp_path, inference, engine, monkeypatch, threads
):
    has_come, is_answered = threading.Event(), threading.Event()
    pauses = Pauses(monkeypatch, SWEEP, has_come, is_answered)
    sweep = threads.submit(inference.ask, engine, SWEEP, CORPUS)
    assert pauses.begun.wait(SECONDS)
    off = PassSettings(off=((0, 1),))
    asked = (inference.on_screen, engine, work) if work else (inference.look, engine)
    assert threads.submit(*asked, TYPED, off, report=waiting(has_come)).result(SECONDS) is not None
    assert not sweep.done()
    is_answered.set()
    swept = sweep.result(SECONDS).results
    monkeypatch.undo()
    for result, expected in zip(swept, alone(tmp_path, engine, SWEEP, CORPUS), strict=True):
        np.testing.assert_allclose(result.without, expected.without, rtol=1e-5, atol=1e-6)
    if work:
        return
    (measures,) = alone(tmp_path, engine, SCORES, [TYPED], off)
    np.testing.assert_allclose(
        inference.kept(engine, SCORES, [TYPED], off).results[0].measures, measures.measures, rtol=1e-5, atol=1e-6
    )


def test_a_typed_text_interrupts_other_work_on_the_checkpoint(inference, engine, threads):
    begun, has_come = threading.Event(), threading.Event()

    def work(checkpoint):
        begun.set()
        assert has_come.wait(SECONDS)
        pause()
        return inference.kept(engine, SCORES, [TYPED])

    promise = threads.submit(inference.run, engine, work)
    assert begun.wait(SECONDS)
    look = threads.submit(inference.look, engine, TYPED, report=waiting(has_come))
    assert promise.result(SECONDS).positions == (0,)
    look.result(SECONDS)


def test_work_of_another_worker_waits_while_a_typed_text_is_at_work(tmp_path, engine, threads):
    class Watched(UrgentWork):
        is_awaited = threading.Event()

        def wait(self, seconds):
            self.is_awaited.set()
            super().wait(float(SECONDS))

    urgent, models, store, order = Watched(), Models(), Store(tmp_path / "store"), []
    another = Engine(find_checkpoint(str(save("bert", tmp_path / "another"))), "cpu")
    busy, typing = (Worker((one,), models, store, urgent) for one in (engine, another))
    begun, is_typed = threading.Event(), threading.Event()

    def long_work(checkpoint):
        begun.set()
        assert is_typed.wait(SECONDS)
        pause()
        order.append("long work")

    def typed(checkpoint):
        is_typed.set()
        assert urgent.is_awaited.wait(SECONDS)
        order.append("typed text")

    promises = [threads.submit(busy.run, long_work)]
    assert begun.wait(SECONDS)
    promises.append(threads.submit(typing.run, typed, is_urgent=True))
    for promise in promises:
        promise.result(SECONDS)
    assert order == ["typed text", "long work"]


def test_a_sweep_that_nobody_waits_for_any_more_ends_within_its_text(inference, engine, monkeypatch, threads):
    pauses, has_left = None, threading.Event()

    def leave(status):
        if pauses.begun.is_set():
            raise TabClosed

    pauses = Pauses(monkeypatch, SWEEP, has_left)
    sweep = threads.submit(inference.ask, engine, SWEEP, CORPUS, report=leave)
    with pytest.raises(TabClosed):
        sweep.result(SECONDS)
    has_left.set()
    inference.ask(engine, SCORES, [TYPED])
    assert pauses.n == 1
    assert pauses.order == [SWEEP.name, "scores"]
    assert inference.n_passed == 1


def test_other_work_that_nobody_waits_for_any_more_ends_at_its_next_pause(inference, engine, threads, caplog):
    begun, has_left, after = threading.Event(), threading.Event(), []

    def work(checkpoint):
        begun.set()
        assert has_left.wait(SECONDS)
        pause()
        after.append("more")

    def leave(status):
        if begun.is_set():
            raise TabClosed

    with pytest.raises(TabClosed):
        inference.run(engine, work, leave)
    has_left.set()
    inference.ask(engine, SCORES, [TYPED])
    assert (after, caplog.records) == ([], [])


def test_other_work_goes_on_while_many_type(inference, engine, monkeypatch, threads):
    """Urgent texts are never more than a limited time ahead: here none."""
    monkeypatch.setattr(worker_module, "PATIENCE_SECONDS", 0.0)
    have_come = [threading.Event() for _ in range(5)]
    begun, go_on, order = threading.Event(), threading.Event(), []
    real = worker_module.passed

    def passed(checkpoints, batch):
        order.append("sweep" if batch[0].item_request.question is SWEEP else "typed")
        return real(checkpoints, batch)

    def hold(checkpoint):
        begun.set()
        assert go_on.wait(SECONDS)

    monkeypatch.setattr(worker_module, "passed", passed)
    held = threads.submit(inference.run, engine, hold)
    assert begun.wait(SECONDS)
    sweep = threads.submit(inference.ask, engine, SWEEP, CORPUS[:1], report=waiting(have_come[0]))
    heads = [PassSettings(off=((layer, head),)) for layer in (0, 1) for head in (0, 1)]
    looks = [
        threads.submit(inference.look, engine, TYPED, off, report=waiting(event))
        for off, event in zip(heads, have_come[1:], strict=True)
    ]
    assert all(event.wait(SECONDS) for event in have_come)
    go_on.set()
    for answer in (held, sweep, *looks):
        answer.result(SECONDS)
    assert order.index("sweep") <= 2  # one typed text may come first, and one interrupt it
