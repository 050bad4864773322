"""How any question is served, with a question of the tests' own: how much attention the first key gets."""

import threading
from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import count

import numpy as np
import pytest

from attention_sieve.core.answering import Question
from attention_sieve.core.errors import AnalysisError, EveryTextTooLong
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.texts.text import Text, text_fields

TEXTS = (
    Text(("the cat sat on the mat",)),
    Text(("a dog ran",)),
    Text(("who sat", "two black birds")),
    Text(("it is",)),
)


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


def items(*texts):
    return tuple(Item(text) for text in texts)


def test_items_that_differ_only_in_what_no_answer_depends_on_are_computed_once(inference, engine):
    reports, computed = count(), []

    def impatient(_):
        assert next(reports) < 100, "the request is never done"

    named = [Item(TEXTS[0], name=name) for name in ("one", "two")]
    answers = inference.ask(engine, first_key(computed), named, report=impatient)
    assert computed == [TEXTS[0]]
    np.testing.assert_array_equal(answers.results[0], answers.results[1])


def test_when_no_text_is_left_it_says_so(inference, engine):
    long = items(Text((" ".join(["the red cat"] * 20),)))
    with pytest.raises(EveryTextTooLong, match="Every text is longer than this checkpoint takes") as error:
        inference.ask(engine, first_key([]), long)
    assert error.value.texts == ((0, 62),)
    inference.close()  # which waits for what is being written
    with pytest.raises(EveryTextTooLong):
        inference.kept(engine, first_key([]), long)


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
