"""Questions besides the scores, with a question of the tests' own: how much attention the first key gets."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from passing import look_at

from cache.inference import Engine, Inference
from cache.keys import text_ingredients
from cache.questions import Question
from cache.store import Store
from core.checkpoints import find_checkpoint, load_checkpoint
from core.errors import AnalysisError, EveryTextTooLong, TextTooLong
from core.map_collector import MapCollector
from core.observing import collect
from core.passes import PassSettings
from core.texts import Text

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


def first_key(asked, *, kind="first key"):
    """A question that counts how often each of its texts was computed."""

    def answer(checkpoint, items, prepared, settings):
        for batch in collect(checkpoint, prepared, settings, MapCollector):
            asked.extend(items[place].text for place, _ in batch)
            yield [(place, {"mean": maps[..., items[place].key].mean(-1)}) for place, maps in batch]

    return Question(
        kind=kind,
        text_of=lambda item: item.text,
        ingredients=lambda item: {"text": text_ingredients(item.text), "key": item.key},
        answer=answer,
    )


@pytest.fixture
def engine(folders):
    return Engine(find_checkpoint(str(folders("bert"))))


@pytest.fixture
def inference(tmp_path):
    store = Store(tmp_path)
    made = Inference(store)
    yield made
    made.close()
    store.close()


def items(*texts):
    return tuple(Item(text) for text in texts)


def test_answers_are_those_of_each_text_in_the_order_given(inference, engine):
    found = inference.answers(engine, first_key([]), items(*TEXTS))
    checkpoint = load_checkpoint(engine.files)
    for text, answer in zip(TEXTS, found.results, strict=True):
        expected = look_at(checkpoint, text)[0].attention.astype(np.float16)[..., 0].mean(-1)
        np.testing.assert_allclose(answer["mean"], expected, atol=1e-3)
        assert answer["n_tokens"] == len(look_at(checkpoint, text)[0].text.source.ids)
    assert found.positions == (0, 1, 2, 3)
    assert found.too_long == ()


def test_equal_items_are_computed_once_and_other_ones_apart(inference, engine):
    asked = []
    given = (*items(*TEXTS[:2], TEXTS[0]), Item(TEXTS[0], key=1))
    found = inference.answers(engine, first_key(asked), given)
    assert sorted(asked, key=TEXTS.index) == [TEXTS[0], TEXTS[0], TEXTS[1]]
    np.testing.assert_array_equal(found.results[0]["mean"], found.results[2]["mean"])
    assert (found.results[0]["mean"] != found.results[3]["mean"]).any()


def test_what_is_kept_is_found_again_by_another_process_without_a_pass(tmp_path, engine):
    first = Inference(Store(tmp_path))
    assert first.kept_answers(engine, first_key([]), items(*TEXTS)) is None
    before = first.answers(engine, first_key([]), items(*TEXTS))
    assert first.n_passed == len(TEXTS)
    first.close()
    first.store.close()
    asked, second = [], Inference(Store(tmp_path))
    kept = second.kept_answers(engine, first_key(asked), items(*TEXTS[::-1]))
    for one, other in zip(kept.results, before.results[::-1], strict=True):
        np.testing.assert_array_equal(one["mean"], other["mean"])
    assert asked == []
    assert second.n_passed == 0
    assert second.kept_answers(engine, first_key([], kind="another"), items(*TEXTS)) is None
    assert second.kept_answers(engine, first_key([]), items(*TEXTS), PassSettings(off=((0, 1),))) is None
    second.close()
    second.store.close()


def test_more_texts_compute_only_the_new_ones(inference, engine):
    asked = []
    inference.answers(engine, first_key(asked), items(*TEXTS[:2]))
    inference.answers(engine, first_key(asked), items(*TEXTS))
    assert len(asked) == len(TEXTS)


def test_texts_too_long_are_left_out_cut_or_refused(inference, engine):
    given = items(TEXTS[0], LONG, TEXTS[1])
    with pytest.raises(TextTooLong, match="Text 2 "):
        inference.answers(engine, first_key([]), given, too_long="error")
    left_out = inference.answers(engine, first_key([]), given)
    assert left_out.positions == (0, 2)
    assert left_out.too_long == ((1, 62),)
    asked = []
    cut = inference.answers(engine, first_key(asked), given, too_long="truncate")
    assert asked == [LONG]
    assert cut.positions == (0, 1, 2)
    assert cut.too_long == ((1, 62),)
    assert cut.results[1]["n_cut"] == 62 - 40
    assert inference.answers(engine, first_key(asked), given, too_long="skip").positions == (0, 2)
    assert asked == [LONG]


def test_when_no_text_is_left_it_says_so(inference, engine):
    with pytest.raises(EveryTextTooLong):
        inference.answers(engine, first_key([]), items(LONG))
    with pytest.raises(EveryTextTooLong):
        inference.kept_answers(engine, first_key([]), items(LONG))


def test_progress_is_reported_and_a_stopped_question_keeps_what_is_done(inference, engine, monkeypatch):
    monkeypatch.setattr("cache.questions.FIRST_GROUP", 1)
    monkeypatch.setattr("cache.questions.GROUP_SECONDS", 0)  # one text at a time
    seen = []

    class Stop(Exception):
        pass

    def report(status):
        seen.append((status.done, status.total))
        if status.done == 2:
            raise Stop

    asked = []
    with pytest.raises(Stop):
        inference.answers(engine, first_key(asked), items(*TEXTS), report=report)
    assert seen[0] == (0, 4)
    assert seen[-1] == (2, 4)
    assert len(asked) == 2
    inference.answers(engine, first_key(asked), items(*TEXTS))
    assert len(asked) == 4


def test_two_sessions_with_one_question_compute_it_once(inference, engine, monkeypatch):
    monkeypatch.setattr("cache.questions.FIRST_GROUP", 1)
    monkeypatch.setattr("cache.questions.GROUP_SECONDS", 0)
    asked, found = [], []
    threads = [
        threading.Thread(target=lambda: found.append(inference.answers(engine, first_key(asked), items(*TEXTS))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == len(TEXTS)
    for one, other in zip(found[0].results, found[1].results, strict=True):
        np.testing.assert_array_equal(one["mean"], other["mean"])


def test_an_error_of_the_answer_reaches_who_asked(inference, engine):
    def broken(checkpoint, given, prepared, settings):
        raise AnalysisError("There is nothing to see.")

    question = Question(kind="broken", text_of=lambda item: item.text, ingredients=lambda item: {}, answer=broken)
    with pytest.raises(AnalysisError, match="There is nothing to see"):
        inference.answers(engine, question, items(TEXTS[0]))
    assert inference.answers(engine, first_key([]), items(TEXTS[0])).positions == (0,)


def test_other_work_runs_on_the_loaded_checkpoint(inference, engine):
    assert inference.run(engine, lambda checkpoint: checkpoint.max_tokens) == 40
