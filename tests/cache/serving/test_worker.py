"""One worker and many sessions, with real threads. Nothing here waits for time to pass: a gate holds the worker before
each batch, and a session's first report says that it waits."""

import sys
import threading
import weakref
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from passing import measure, measures_in
from small_checkpoints import save

from attention_sieve.cache.answers import Engine, Record, item_requests, write
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.looks import changed
from attention_sieve.cache.serving import worker as worker_module
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, CheckpointError, NoTokens
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text

SECONDS = 120
"""A test that waits longer has failed."""
NOUNS = ("cat", "dog", "bird", "apple", "house", "mat", "coffee", "she")


def sentence(number):
    digits = " ".join(NOUNS[int(digit)] for digit in f"{number:o}")
    return Text((f"The cat quickly chased {digits} on the mat.",))


@pytest.fixture(scope="module")
def other_engine(tmp_path_factory):
    return Engine(find_checkpoint(str(save("bert", tmp_path_factory.mktemp("other") / "bert", seed=2))), "cpu")


class Gate:
    """Holds a worker before each batch until it is let through, and notes what the batches were."""

    def __init__(self, monkeypatch, of=None):
        self.batches = []
        self._arrived, self._through = threading.Semaphore(0), threading.Semaphore(0)
        self._real, self._of, self._is_open = worker_module.passed, of, False
        monkeypatch.setattr(worker_module, "passed", self._passed)

    def _passed(self, checkpoints, batch):
        if self._of is None or checkpoints[0].files == self._of.files:
            self.batches.append([item.item_request.text for item in batch])
            self._arrived.release()
            assert self._is_open or self._through.acquire(timeout=SECONDS)
        return self._real(checkpoints, batch)

    def wait(self):
        """Until a batch stands before the gate."""
        assert self._arrived.acquire(timeout=SECONDS)

    def let_one_through(self):
        self._through.release()

    def open(self):
        self._is_open = True
        self._through.release(100)


@pytest.fixture
def gate(monkeypatch, threads):
    """Opened before the threads are waited for."""
    made = Gate(monkeypatch)
    yield made
    made.open()


@pytest.fixture
def at_rest_at_once(monkeypatch):
    """A worker's thread ends as soon as there is no work."""
    monkeypatch.setattr(worker_module, "LINGER_SECONDS", 0.0)


class Waiting:
    """A session's reports, and a way to wait for its first."""

    def __init__(self, at_each=lambda status: None):
        self.statuses, self._first, self._at_each = [], threading.Event(), at_each

    def __call__(self, status):
        self.statuses.append(status)
        self._first.set()
        self._at_each(status)

    def wait(self):
        assert self._first.wait(SECONDS)


class TabClosed(BaseException):
    """As Streamlit stops a script."""


def scores_unless(fails):
    """The question of scores, where `fails(checkpoint, texts as prepared)` may raise before a batch is passed."""

    def compute(checkpoint, texts, prepared, settings):
        fails(checkpoint, prepared)
        return SCORES.compute(checkpoint, texts, prepared, settings)

    return replace(SCORES, compute=compute)


def bug(*_):
    raise ValueError("a bug")


def ask(threads, inference, engine, texts, waiting=None, question=SCORES, **options):
    """A session in a thread; returns once it waits."""
    waiting = waiting or Waiting()
    answer = threads.submit(inference.ask, engine, question, texts, report=waiting, **options)
    waiting.wait()
    return answer


def rest(inference):
    """Wait until all workers' threads have ended."""
    for worker in inference._workers.values():
        thread = worker._thread
        if thread is not None:
            thread.join(SECONDS)
            assert not thread.is_alive()


@cache
def checkpoint_of(engine):
    return load_checkpoint(engine.files, device="cpu", dtype=engine.dtype)


@cache
def alone(engine, text):
    return next(measure(checkpoint_of(engine), [text])).of_text


def in_sequence(engine, texts):
    return [alone(engine, text) for text in texts]


def close_to(expected, rtol=1e-5, atol=1e-5):
    def compare(found):
        np.testing.assert_allclose(measures_in(found), measures_in(expected), rtol=rtol, atol=atol)

    return compare


def test_thirty_two_sessions_that_ask_for_the_same_text_share_one_pass(tmp_path, engine, gate, threads):
    """Without a store that they could find it in."""
    (tmp_path / "file").write_text("no folder")
    inference = Inference(Store(tmp_path / "file"))
    answers = [ask(threads, inference, engine, [sentence(0)])]
    gate.wait()
    answers += [ask(threads, inference, engine, [sentence(0)]) for _ in range(31)]
    gate.open()
    found = [answer.result(SECONDS).results for answer in answers]
    assert (inference.n_passed, inference.n_batches) == (1, 1)
    assert all(np.array_equal(measures_in(one), measures_in(found[0]), equal_nan=True) for one in found)
    inference.close()


def test_a_text_that_another_process_kept_meanwhile_is_not_passed(inference, engine, gate, threads):
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    waits = ask(threads, inference, engine, [sentence(1)])
    (wanted,) = item_requests((engine,), SCORES, [sentence(1)], (PassSettings(),), False)
    measures = in_sequence(engine, [sentence(1)])
    kept = Record(arrays=SCORES.pack(measures[0]), n_tokens=9, n_cut=0)
    write(inference.store, {wanted: kept})
    gate.open()
    held.result(SECONDS)
    np.testing.assert_allclose(measures_in(waits.result(SECONDS).results), measures_in(measures), rtol=1e-5, atol=1e-6)
    assert gate.batches == [[sentence(0)]]


@pytest.mark.usefixtures("unhurried")
def test_what_many_sessions_ask_for_is_passed_together_and_equals_each_alone(inference, engine, gate, threads):
    texts = [sentence(number) for number in range(41)]
    answers = [ask(threads, inference, engine, texts[:1])]
    gate.wait()
    answers += [ask(threads, inference, engine, [text]) for text in texts[1:]]
    gate.open()
    found = [of_text for answer in answers for of_text in answer.result(SECONDS).results]
    assert inference.n_passed == 41
    assert inference.n_batches <= 4
    close_to(in_sequence(engine, texts))(found)


@pytest.mark.usefixtures("unhurried")
def test_texts_of_other_settings_are_not_passed_together(inference, engine, gate, threads):
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    off = PassSettings(off=((0, 1),))
    on = [ask(threads, inference, engine, [sentence(number)]) for number in (1, 2)]
    without = [ask(threads, inference, engine, [sentence(number)], settings=off) for number in (1, 2)]
    gate.open()
    for answer in (held, *on, *without):
        answer.result(SECONDS)
    assert gate.batches[1:] == [[sentence(1), sentence(2)]] * 2
    with_all, without_some = (answers[0].result().results[0].measures[:, 1] for answers in (on, without))
    assert not np.array_equal(with_all, without_some, equal_nan=True)


@pytest.mark.usefixtures("unhurried")
def test_texts_of_very_different_length_are_not_padded_to_each_other(inference, engine, gate):
    gate.open()
    long = Text((" ".join(["cat"] * 37),))
    inference.ask(engine, SCORES, [sentence(0)])  # the first batch of a question holds one text
    inference.ask(engine, SCORES, [Text(("Cat.",)), long, Text(("Dog.",))])
    assert gate.batches[1:] == [[Text(("Cat.",)), Text(("Dog.",))], [long]]


def test_a_typed_text_overtakes_a_corpus_at_the_next_batch(inference, engine, gate, threads):
    corpus = [sentence(1000 + number) for number in range(200)]
    long, waiting = Waiting(), Waiting()
    whole = ask(threads, inference, engine, corpus, long)
    gate.wait()
    typed = ask(threads, inference, engine, [sentence(1)], waiting)
    assert waiting.statuses[0].n_waiting_before == 0
    gate.let_one_through()
    gate.wait()
    assert sentence(1) in gate.batches[1]
    gate.let_one_through()
    typed.result(SECONDS)
    gate.wait()
    assert not whole.done()
    gate.open()
    assert whole.result(SECONDS).positions == tuple(range(200))
    assert long.statuses[-1].done == long.statuses[-1].total == 200


def test_a_corpus_goes_on_while_others_keep_typing(inference, engine, gate, threads):
    """Each typed text has other settings, so none of the corpus fits into its batch."""
    held = ask(threads, inference, engine, [sentence(1)])
    gate.wait()
    corpus = [Text((" ".join(["dog", *["cat"] * 30, *f"{number:03}"]),)) for number in range(100)]
    whole = ask(threads, inference, engine, corpus)
    typed = [
        ask(threads, inference, engine, [sentence(2)], settings=PassSettings(off=((layer, head),)))
        for layer in (0, 1)
        for head in (0, 1, 2)
    ]
    gate.open()
    for answer in (held, whole, *typed):
        answer.result(SECONDS)
    first_of_corpus = next(place for place, batch in enumerate(gate.batches) if corpus[0] in batch)
    assert 1 <= first_of_corpus <= 5


@pytest.mark.usefixtures("at_rest_at_once")
def test_reports_count_texts_and_estimate_the_time_that_is_left(inference, engine, gate, threads):
    texts = [sentence(number) for number in range(200)]
    inference_before = Waiting()
    gate.open()
    inference.ask(engine, SCORES, texts[:50], report=inference_before)
    rest(inference)  # what is answered is written a moment later
    waiting = Waiting()
    inference.ask(engine, SCORES, texts, report=waiting)
    counts = [status.done for status in waiting.statuses]
    assert counts[0] == 50
    assert counts == sorted(counts)
    assert (counts[-1], waiting.statuses[-1].total) == (200, 200)
    assert inference_before.statuses[0].seconds_left is None
    assert waiting.statuses[0].seconds_left > waiting.statuses[-1].seconds_left == 0


def test_whoever_wants_no_reports_waits_for_what_is_not_yet_done(inference, engine, gate, monkeypatch):
    """Waiting for the first text again and again, once it is done, would keep a processor busy."""
    queue = inference._worker(engine)._queue
    gate.open()
    waits, real = [], queue.wait

    def wait(request, n_known, seconds):
        waits.append((n_known, request.n_done))
        return real(request, n_known, seconds)

    monkeypatch.setattr(queue, "wait", wait)
    texts = [sentence(number) for number in range(40)]
    assert inference.ask(engine, SCORES, texts).positions == tuple(range(40))
    assert len(waits) > 1  # the first batch of a question holds one text
    assert waits[-1][0] > 0


def test_a_closed_tab_stops_its_corpus_and_keeps_what_is_finished(inference, engine, gate, threads):
    def close_in_second_batch(status):
        if status.done:
            gate.wait()
            raise TabClosed

    corpus = [sentence(number) for number in range(200)]
    answer = ask(threads, inference, engine, corpus, Waiting(close_in_second_batch))
    gate.wait()
    gate.let_one_through()
    with pytest.raises(TabClosed):
        answer.result(SECONDS)
    gate.open()
    inference.ask(engine, SCORES, [sentence(999)])
    finished, begun, next_asked = gate.batches
    assert next_asked == [sentence(999)]
    assert inference.n_passed == len(finished) + 1 < 200
    inference.close()
    again = Inference(inference.store)
    assert again.kept(engine, SCORES, finished) is not None
    assert again.kept(engine, SCORES, begun[:1]) is None


def test_a_session_that_leaves_takes_nothing_from_one_that_waits_for_the_same(inference, engine, gate, threads):
    held = ask(threads, inference, engine, [sentence(999)])
    gate.wait()
    leaving = threading.Event()

    def leave(status):
        if leaving.is_set():
            raise TabClosed

    texts = [sentence(number) for number in range(100)]
    leaves = ask(threads, inference, engine, [*texts, sentence(555)], Waiting(leave))
    stays = ask(threads, inference, engine, texts)
    leaving.set()
    with pytest.raises(TabClosed):
        leaves.result(SECONDS)
    gate.open()
    held.result(SECONDS)
    assert stays.result(SECONDS).positions == tuple(range(100))
    assert sentence(555) not in [text for batch in gate.batches for text in batch]
    assert inference.n_passed == 101


def test_a_bad_text_and_settings_that_the_checkpoint_has_not_fail_their_own_session_only(
    inference, engine, gate, threads
):
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    good = ask(threads, inference, engine, [sentence(1)])
    bad_text = ask(threads, inference, engine, [sentence(2), Text(("\u200b",))])
    bad_settings = ask(threads, inference, engine, [sentence(1)], settings=PassSettings(off=((99, 99),)))
    gate.open()
    with pytest.raises(NoTokens, match=r"^Text 2 has a segment without"):
        bad_text.result(SECONDS)
    with pytest.raises(AnalysisError, match=r"has no head L99 H99: it has"):
        bad_settings.result(SECONDS)
    for answer in (held, good):
        assert answer.result(SECONDS).positions == (0,)


@pytest.mark.usefixtures("unhurried")
def test_a_bug_in_one_text_is_logged_and_fails_nobody_else_in_its_batch(inference, engine, gate, threads, caplog):
    question = scores_unless(lambda _, texts: any(text.n_tokens > 37 for text in texts) and bug())
    held = ask(threads, inference, engine, [sentence(0)], question=question)
    gate.wait()
    guilty = Text((" ".join(["cat"] * 36),))
    like_it = [Text((" ".join([noun, *["cat"] * 28]),)) for noun in ("bird", "dog", "house", "mat", "she")]
    bad = ask(threads, inference, engine, [guilty], question=question)
    good = [ask(threads, inference, engine, [text], question=question) for text in like_it]
    gate.open()
    with pytest.raises(ValueError, match="a bug"):
        bad.result(SECONDS)
    for answer in (held, *good):
        assert answer.result(SECONDS).positions == (0,)
    assert "a bug" in caplog.text
    assert any(guilty in batch and len(batch) > 1 for batch in gate.batches)
    assert inference.n_passed == 1 + len(like_it)


def test_a_corpus_that_a_bug_has_failed_is_not_passed_to_its_end(inference, engine, gate):
    gate.open()
    with pytest.raises(ValueError, match="a bug"):
        inference.ask(engine, scores_unless(bug), [sentence(number) for number in range(64)])
    inference.close()
    assert [len(batch) for batch in gate.batches] == sorted({len(batch) for batch in gate.batches}, reverse=True)
    assert len(gate.batches[-1]) == 1


def test_a_look_that_joins_while_its_scores_are_found_is_answered_with_attention(
    inference, engine, monkeypatch, gate, threads
):
    """Another process keeps the scores; the look comes between reading them and handing them out."""
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    scores = ask(threads, inference, engine, [sentence(1)])
    (wanted,) = item_requests((engine,), SCORES, [sentence(1)], (PassSettings(),), False)
    kept = Record(arrays=SCORES.pack(in_sequence(engine, [sentence(1)])[0]), n_tokens=9, n_cut=0)
    write(inference.store, {wanted: kept})
    looks, real = [], worker_module.read

    def read(store, asked):
        found = real(store, asked)
        if wanted in asked and not looks:
            waiting = Waiting()
            looks.append(threads.submit(inference.look, engine, sentence(1), report=waiting))
            waiting.wait()
        return found

    monkeypatch.setattr(worker_module, "read", read)
    gate.open()
    held.result(SECONDS)
    assert scores.result(SECONDS).positions == (0,)
    (look,) = looks
    assert look.result(SECONDS)[0].attention.ndim == 4


def test_long_lines_that_are_being_read_let_a_typed_text_pass(inference, engine, monkeypatch, threads):
    order, begun, go_on = [], threading.Event(), threading.Event()
    really_prepared, really_passed = worker_module.prepared, worker_module.passed

    def prepared(checkpoints, item):
        begun.set()
        assert go_on.wait(SECONDS)
        order.append(("prepared", item.item_request.text))
        return really_prepared(checkpoints, item)

    def passed(checkpoints, batch):
        order.extend(("passed", item.item_request.text) for item in batch)
        return really_passed(checkpoints, batch)

    monkeypatch.setattr(worker_module, "prepared", prepared)
    monkeypatch.setattr(worker_module, "passed", passed)
    lines = [Text((" ".join(["cat"] * 6000 + [str(number)]),)) for number in range(20)]
    corpus = ask(threads, inference, engine, [*lines, sentence(1)])
    assert begun.wait(SECONDS)
    typed = ask(threads, inference, engine, [sentence(0)])
    go_on.set()
    assert typed.result(SECONDS).positions == (0,)
    assert corpus.result(SECONDS).positions == (20,)
    assert order.index(("passed", sentence(0))) < order.index(("prepared", lines[2]))


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_batch_too_large_for_the_memory_is_halved_and_that_is_said(inference, engine, gate, error):
    sizes = []

    def small_memory(_, texts):
        sizes.append(len(texts))
        if len(texts) > 4:
            raise error

    gate.open()
    texts = [sentence(number) for number in range(64)]
    assert inference.notice(engine) is None
    found = inference.ask(engine, scores_unless(small_memory), texts)
    assert max(sizes) > 16
    assert sum(size > 4 for size in sizes) <= 5
    assert len(sizes) < len(texts) / 2
    close_to(in_sequence(engine, texts))(found.results)
    assert "Memory ran out on cpu" in inference.notice(engine)
    assert "can't" not in inference.notice(engine)


@pytest.mark.usefixtures("unhurried", "at_rest_at_once")
def test_what_is_said_of_memory_and_the_smaller_batches_stay_as_long_as_the_checkpoint(inference, engine, gate):
    def small_memory(_, texts):
        if len(texts) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    gate.open()
    inference.ask(engine, scores_unless(small_memory), [sentence(number) for number in range(64)])
    rest(inference)
    gate.batches.clear()
    inference.ask(engine, SCORES, [sentence(number) for number in range(100, 164)])
    assert max(map(len, gate.batches)) < 8
    assert "Memory ran out on cpu" in inference.notice(engine)
    rest(inference)
    inference._models._held.clear()
    gate.batches.clear()
    inference.ask(engine, SCORES, [sentence(number) for number in range(200, 264)])
    assert max(map(len, gate.batches)) > 16
    assert inference.notice(engine) is None


def test_one_text_too_large_for_the_memory_is_named_and_the_others_are_passed(inference, engine, monkeypatch):
    from attention_sieve.core.roles.scores import score_batch

    def small_memory(checkpoint, texts, *rest, **named):
        if max(text.n_tokens for text in texts) > 30:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return score_batch(checkpoint, texts, *rest, **named)

    monkeypatch.setattr("attention_sieve.core.roles.scores.score_batch", small_memory)
    large = Text((" ".join(["cat"] * 36),))
    with pytest.raises(AnalysisError, match=r"^Text 2 has 38 tokens, more than fit into memory with this checkpoint"):
        inference.ask(engine, SCORES, [sentence(0), large])
    with pytest.raises(AnalysisError, match=r"^The text has 38 tokens"):
        inference.look(engine, large)
    assert inference.ask(engine, SCORES, [sentence(0)]).positions == (0,)


def test_a_checkpoint_that_fails_takes_no_other_down_and_is_tried_again_when_asked(inference, engine, gate, threads):
    gate.open()
    broken = Engine(engine.files, device="tpu")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="Device 'tpu' is not available here"):
            inference.ask(broken, SCORES, [sentence(0)])
    assert inference.ask(engine, SCORES, [sentence(0)]).positions == (0,)


def test_one_engine_does_not_wait_for_another(inference, engine, other_engine, monkeypatch, threads):
    gate = Gate(monkeypatch, of=engine)
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    found = threads.submit(inference.ask, other_engine, SCORES, [sentence(0)]).result(SECONDS)
    assert not held.done()
    gate.open()
    of_both = measures_in(found.results), measures_in(held.result(SECONDS).results)
    assert not np.array_equal(*of_both, equal_nan=True)
    close_to(in_sequence(other_engine, [sentence(0)]))(found.results)


def test_two_engines_at_once_give_what_each_gives_alone(inference, engine, other_engine, threads):
    texts = [sentence(number) for number in range(60)]
    parts = [(one, texts[start::6]) for one in (engine, other_engine) for start in range(6)]
    answers = [threads.submit(inference.ask, part[0], SCORES, part[1]) for part in parts]
    for (one, part), answer in zip(parts, answers):
        close_to(in_sequence(one, part))(answer.result(SECONDS).results)


@pytest.mark.usefixtures("at_rest_at_once")
def test_an_evicted_checkpoint_is_freed_and_the_threads_end(tmp_path, engine, other_engine):
    inference = Inference(Store(tmp_path), Models(1))
    inference.ask(engine, SCORES, [sentence(0)])
    with inference._models.use(engine) as checkpoint:
        seen = [weakref.ref(checkpoint.model), *map(weakref.ref, checkpoint.full_model.parameters())]
    del checkpoint
    rest(inference)
    assert inference.is_loaded(engine)
    inference.ask(other_engine, SCORES, [sentence(0)])
    rest(inference)
    assert not inference.is_loaded(engine)
    assert len(seen) > 10
    assert all(reference() is None for reference in seen)
    inference.store.close()


@pytest.mark.usefixtures("at_rest_at_once")
def test_a_failed_pass_keeps_nothing_of_its_checkpoint(tmp_path, engine, other_engine):
    seen = []

    def fails(checkpoint, _):
        seen.append(weakref.ref(checkpoint.model))
        bug()

    inference = Inference(Store(tmp_path), Models(1))
    with pytest.raises(ValueError, match="a bug") as error:
        inference.ask(engine, scores_unless(fails), [sentence(0)])
    inference.ask(other_engine, SCORES, [sentence(0)])
    rest(inference)
    assert [reference() for reference in seen] == [None]
    assert error.value.args == ("a bug",)
    inference.store.close()


@pytest.fixture
def writing(tmp_path):
    """writing(put_many) -> an inference whose store writes so: from the store and the results."""
    with ExitStack() as opened:

        def on(put_many):
            made = Inference(type("Watched", (Store,), {"put_many": put_many})(tmp_path / "watched"))
            opened.callback(made.store.close)
            opened.callback(made.close)
            return made

        yield on


def test_an_error_while_results_are_written_is_logged_and_stops_nobody(writing, engine, caplog):
    def fails(store, results):
        raise ValueError("a bug in the store")

    inference = writing(fails)
    for number in range(2):
        assert inference.ask(engine, SCORES, [sentence(number)]).positions == (0,)
    inference.close()
    assert [record.getMessage() for record in caplog.records] == [
        "Results could not be stored; the analysis goes on."
    ] * 2
    assert "a bug in the store" in caplog.text


def test_each_result_is_written_once(writing, engine, threads):
    written = []
    inference = writing(lambda store, results: written.extend(results) or Store.put_many(store, results))
    texts = [sentence(number) for number in range(30)]
    answers = [threads.submit(inference.ask, engine, SCORES, texts[start:]) for start in (0, 0, 10, 20)]
    for answer in answers:
        answer.result(SECONDS)
    inference.close()
    assert len(written) == len(set(written)) == 30


def test_those_who_wait_have_their_answer_before_it_is_written(writing, engine, threads):
    answered = threading.Event()

    def write(store, results):
        assert answered.wait(SECONDS)
        Store.put_many(store, results)

    inference = writing(write)
    inference.ask(engine, SCORES, [sentence(0)])
    joined = threads.submit(Inference.ask, inference, engine, SCORES, [sentence(0)], too_long="error").result(SECONDS)
    assert joined.positions == (0,)
    assert inference.n_passed == 1
    answered.set()
    inference.close()
    assert inference.store.size()[0] == 1


def test_other_work_on_a_checkpoint_is_done_between_two_batches(inference, engine, gate, threads):
    whole = ask(threads, inference, engine, [sentence(number) for number in range(200)])
    gate.wait()
    job = inference._workers[engine,]._queue.submit_job(lambda checkpoint: checkpoint.files.fingerprint)
    gate.let_one_through()
    assert job.promise.result(SECONDS) == engine.files.fingerprint
    assert not whole.done()


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_whatever_ends_other_work_reaches_whoever_waits_for_it(inference, engine, error):
    def ends(checkpoint):
        raise error("the work was ended")

    with pytest.raises(error, match="the work was ended"):
        inference._worker(engine).run(ends)
    assert inference._worker(engine).run(lambda checkpoint: 7) == 7


def test_other_work_too_large_for_the_memory_gives_a_sentence(inference, engine):
    def large(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(AnalysisError, match=r"^This needs more memory than cpu has room for beside .*Choose a shorter"):
        inference.on_screen(engine, large, sentence(0), PassSettings(off=((0, 1),)))


def test_a_closed_tab_does_not_wait_for_other_work_and_work_that_has_not_begun_is_not_done(
    inference, engine, gate, threads
):
    def leave(status):
        raise TabClosed

    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    done = []
    with pytest.raises(TabClosed):
        inference._worker(engine).run(done.append, leave)
    with pytest.raises(TabClosed):
        inference.on_screen(engine, changed, sentence(0), PassSettings(off=((0, 1),)), report=leave)
    gate.open()
    held.result(SECONDS)
    assert inference._worker(engine).run(lambda checkpoint: 7) == 7
    assert done == []


def test_closing_fails_those_who_wait_and_ends_the_thread(inference, engine, gate, threads):
    held = ask(threads, inference, engine, [sentence(0)])
    gate.wait()
    waits = ask(threads, inference, engine, [sentence(1)])
    closing = threads.submit(inference.close)
    with pytest.raises(AnalysisError, match="is being closed"):
        waits.result(SECONDS)
    gate.open()
    closing.result(SECONDS)
    with pytest.raises(AnalysisError, match="is being closed"):
        held.result(SECONDS)
    assert not any(thread.name.startswith("passes of") and thread.is_alive() for thread in threading.enumerate())


def test_busy_sessions_do_not_hold_a_pass_up_for_long_at_each_of_its_steps(inference, engine):
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    try:
        inference.ask(engine, SCORES, [sentence(0)])
        assert sys.getswitchinterval() == pytest.approx(worker_module.SWITCH_SECONDS)
    finally:
        sys.setswitchinterval(before)


def test_a_forgotten_inference_leaves_no_thread_behind(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(worker_module, "LINGER_SECONDS", 2.0 * SECONDS)
    inference = Inference(Store(tmp_path))
    inference.ask(engine, SCORES, [sentence(0)])
    thread = inference._workers[engine,]._thread
    inference.store.close()
    del inference
    thread.join(SECONDS)
    assert not thread.is_alive()
