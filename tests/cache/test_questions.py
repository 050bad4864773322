"""How any question is served, with a question of the tests' own: how much attention the first key gets."""

import threading
from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import count

import numpy as np
import pytest
from passing import look_at

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, EveryTextTooLong, TextTooLong
from attention_sieve.core.passes.batches import BATCH_TOKENS, collect
from attention_sieve.core.passes.collectors import MapCollector
from attention_sieve.core.passes.question import Question
from attention_sieve.core.texts.text import Text, text_fields

TEXTS = (
    Text(("the cat sat on the mat",)),
    Text(("a dog ran",)),
    Text(("who sat", "two black birds")),
    Text(("it is",)),
)
LONG = Text((" ".join(["the red cat"] * 20),))


@dataclass(frozen=True)
class Item:
    text: Text
    key: int = 0
    name: str = ""
    """On which no answer depends."""


def first_key(computed, *, name="first key"):
    """A question that notes each of its texts when it is computed."""

    def compute(checkpoint, items, prepared, settings):
        for batch in collect(checkpoint, prepared, settings, MapCollector):
            computed.extend(items[row].text for row, _ in batch)
            yield [(row, maps[..., items[row].key].mean(-1)) for row, maps in batch]

    return Question(
        name=name,
        text_of=lambda item: item.text,
        depends_on=lambda item: {"text": text_fields(item.text), "key": item.key},
        compute=compute,
        pack=lambda mean: {"mean": mean},
        unpack=lambda arrays: arrays["mean"],
    )


@pytest.fixture
def engine(folders):
    return Engine(find_checkpoint(str(folders("bert"))))


@pytest.fixture
def one_text_a_batch(monkeypatch):
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 1)


def items(*texts):
    return tuple(Item(text) for text in texts)


def test_answers_are_those_of_each_text_in_the_order_given(inference, engine):
    found = inference.ask(engine, first_key([]), items(*TEXTS))
    checkpoint = load_checkpoint(engine.files)
    for text, answer in zip(TEXTS, found.results, strict=True):
        expected = look_at(checkpoint, text)[0].attention.astype(np.float16)[..., 0].mean(-1)
        np.testing.assert_allclose(answer, expected, atol=1e-3)
    assert found.positions == (0, 1, 2, 3)
    assert found.too_long == ()


def test_equal_items_are_computed_once_and_other_ones_apart(inference, engine):
    asked = []
    given = (*items(*TEXTS[:2], TEXTS[0]), Item(TEXTS[0], key=1))
    found = inference.ask(engine, first_key(asked), given)
    assert sorted(asked, key=TEXTS.index) == [TEXTS[0], TEXTS[0], TEXTS[1]]
    np.testing.assert_array_equal(found.results[0], found.results[2])
    assert (found.results[0] != found.results[3]).any()


def test_items_that_differ_only_in_what_no_answer_depends_on_are_computed_once(inference, engine):
    reports, computed = count(), []

    def impatient(_):
        assert next(reports) < 100, "the request is never done"

    named = [Item(TEXTS[0], name=name) for name in ("one", "two")]
    answers = inference.ask(engine, first_key(computed), named, report=impatient)
    assert computed == [TEXTS[0]]
    np.testing.assert_array_equal(answers.results[0], answers.results[1])


def test_more_texts_compute_only_the_new_ones(inference, engine):
    asked = []
    inference.ask(engine, first_key(asked), items(*TEXTS[:2]))
    inference.ask(engine, first_key(asked), items(*TEXTS))
    assert len(asked) == len(TEXTS)


def test_texts_too_long_are_left_out_cut_or_refused(inference, engine):
    given = items(TEXTS[0], LONG, TEXTS[1])
    with pytest.raises(TextTooLong, match="Text 2 "):
        inference.ask(engine, first_key([]), given, too_long="error")
    left_out = inference.ask(engine, first_key([]), given)
    assert left_out.positions == (0, 2)
    assert left_out.too_long == ((1, 62),)
    asked = []
    cut = inference.ask(engine, first_key(asked), given, too_long="truncate")
    assert asked == [LONG]
    assert cut.positions == (0, 1, 2)
    assert cut.too_long == ((1, 62),)
    assert inference.ask(engine, first_key(asked), given, too_long="skip").positions == (0, 2)
    assert asked == [LONG]


def test_when_no_text_is_left_it_says_so(inference, engine):
    with pytest.raises(EveryTextTooLong):
        inference.ask(engine, first_key([]), items(LONG))
    inference.close()  # which waits for what is being written
    with pytest.raises(EveryTextTooLong):
        inference.kept(engine, first_key([]), items(LONG))


def test_progress_is_reported_and_a_stopped_question_keeps_what_is_done(inference, engine, one_text_a_batch):
    seen = []

    class Stop(Exception):
        pass

    heard = threading.Semaphore(0)

    def report(status):
        if status.done == 2:
            seen.append((status.done, status.total))
            raise Stop
        if (status.done, status.total) not in seen:
            seen.append((status.done, status.total))
            heard.release()

    def once_the_last_was_heard_of(*job):
        for batch in question.compute(*job):
            heard.acquire()
            yield batch

    computed = []
    question = first_key(computed)
    with pytest.raises(Stop):
        inference.ask(engine, replaced(question, compute=once_the_last_was_heard_of), items(*TEXTS), report=report)
    heard.release(len(TEXTS))
    assert seen == [(0, 4), (1, 4), (2, 4)]
    inference.close()
    n_before = len(computed)
    assert 2 <= n_before < 4
    again = Inference(inference.store)
    again.ask(engine, first_key(computed), items(*TEXTS))
    assert len(computed) == 4
    again.close()


def test_two_sessions_with_one_question_compute_it_once(inference, engine, one_text_a_batch):
    asked, found = [], []
    question = first_key(asked)
    threads = [
        threading.Thread(target=lambda: found.append(inference.ask(engine, question, items(*TEXTS)))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == len(TEXTS)
    for one, other in zip(found[0].results, found[1].results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_error_of_the_answer_reaches_who_asked(inference, engine):
    def broken(checkpoint, given, prepared, settings):
        raise AnalysisError("There is nothing to see.")

    with pytest.raises(AnalysisError, match="There is nothing to see"):
        inference.ask(engine, replaced(first_key([]), compute=broken), items(TEXTS[0]))
    assert inference.ask(engine, first_key([]), items(TEXTS[0])).positions == (0,)


def test_a_question_that_leaves_an_item_unanswered_is_a_bug_that_is_raised(inference, engine):
    with pytest.raises(RuntimeError, match=r"^The question 'first key' answered 0 of 1 items\.$"):
        inference.ask(engine, replaced(first_key([]), compute=lambda *_: []), items(TEXTS[0]))


def test_an_attention_that_a_question_makes_no_sense_for_is_refused_before_anything_is_loaded(inference, engine):
    question = replaced(first_key([]), kinds=("encoder",), why_not="There is one text only. Choose the encoder's.")
    for ask in (inference.ask, inference.kept):
        with pytest.raises(AnalysisError, match=r"^There is one text only\. Choose the encoder's\.$"):
            ask(engine, question, items(TEXTS[0]))
    assert not inference.is_loaded(engine)


def test_questions_are_not_passed_together(inference, engine):
    """Two sessions that ask different questions of the same texts: each computes its own."""
    computed = [], []
    questions = [first_key(computed[0]), first_key(computed[1], name="another")]
    threads = [threading.Thread(target=inference.ask, args=(engine, each, items(*TEXTS))) for each in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for texts in computed:
        assert len(texts) == len(TEXTS)
        assert set(texts) == {item.text for item in items(*TEXTS)}


def test_other_work_runs_on_the_loaded_checkpoint(inference, engine):
    assert inference.run(engine, lambda checkpoint: checkpoint.max_tokens) == 40
