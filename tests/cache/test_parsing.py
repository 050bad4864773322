"""Predictions of heads through the worker and the store."""

import numpy as np
import pytest
from passing import SELF

from cache.inference import Engine, Inference
from cache.keys import answer_key
from cache.parsing import PREDICTIONS, ParsedText, found_predictions
from cache.store import Store
from core.analysis import prepare
from core.checkpoints import find_checkpoint
from core.parses import dependencies
from core.parsing_observer import predictions
from core.passes import PassSettings
from core.texts import Text
from core.words import words_of

TEXTS = (
    Text(("The unbelievable cat sat on the old mats.", "She drinks hot coffee.")),
    Text(("She ate.",)),
    Text(("He saw her",), (("He", "saw", "her"),), ((2, 0, 2),), (("nsubj", "root", "obj"),)),
)
LONG = Text(("she ate apples " * 30,))


@pytest.fixture
def engine(folders):
    return Engine(find_checkpoint(str(folders("bert"))), "cpu")


@pytest.fixture
def inference(tmp_path):
    made = Inference(Store(tmp_path / "store"))
    yield made
    made.close()
    made.store.close()


def items(texts=TEXTS, from_word="mean"):
    return [ParsedText.of(text, tree.words, from_word) for text, tree in zip(texts, dependencies(texts))]


def by_library(checkpoint, texts=TEXTS, from_word="mean"):
    prepared = [prepare(checkpoint, text, SELF) for text in texts]
    words = [tree.words for tree in dependencies(texts)]
    found = dict(one for batch in predictions(checkpoint, prepared, words, SELF, from_word=from_word) for one in batch)
    return [found[place] for place in range(len(texts))]


@pytest.mark.parametrize("from_word", ["mean", "first"])
def test_what_is_kept_is_what_the_pass_finds(from_word, engine, inference, loaded):
    trees = list(dependencies(TEXTS))
    found = found_predictions(inference.answers(engine, PREDICTIONS, items(from_word=from_word)), trees)
    expected = by_library(loaded("bert"), from_word=from_word)
    for of_text, tree, of_library in zip(found, trees, expected, strict=True):
        np.testing.assert_array_equal(of_text.predicted, of_library.predicted)
        np.testing.assert_array_equal(of_text.has_tokens, of_library.has_tokens)
        assert of_text.dependencies is tree
        assert of_text.predicted.dtype == np.int16


def test_a_call_may_ask_for_both_ways_from_a_word(engine, inference, loaded):
    found = inference.answers(engine, PREDICTIONS, [*items(from_word="first"), *items()])
    expected = by_library(loaded("bert"), from_word="first") + by_library(loaded("bert"))
    for answer, of_library in zip(found.results, expected, strict=True):
        np.testing.assert_array_equal(answer["predicted"], of_library.predicted)


def test_another_session_finds_them_without_a_pass(engine, inference):
    assert inference.kept_answers(engine, PREDICTIONS, items()) is None
    found = inference.answers(engine, PREDICTIONS, items())
    inference.close()
    later = Inference(Store(inference.store.folder))
    kept = later.kept_answers(engine, PREDICTIONS, items())
    for answer, expected in zip(kept.results, found.results, strict=True):
        np.testing.assert_array_equal(answer["predicted"], expected["predicted"])
    later.close()
    later.store.close()


def test_what_was_kept_without_tokens_is_computed_anew(engine, inference):
    (item,) = items(TEXTS[2:])
    text = {"segments": item.text.segments, "words": item.text.words}
    before = {"text": text, "segments": item.segments, "spans": item.spans, "from word": item.from_word}
    key = answer_key("predictions", engine.files.fingerprint, engine.dtype, SELF, **before)
    zeros = np.zeros((2, 2, 3, 3), np.int16)
    inference.store.put_many({key: {"predicted": zeros, "n_tokens": np.array(5), "n_cut": np.array(0)}})
    answers = inference.answers(engine, PREDICTIONS, [item])
    (found,) = found_predictions(answers, list(dependencies(TEXTS[2:])))
    assert found.has_tokens.all()
    assert found.predicted.any()


def test_a_cut_is_told_from_a_word_that_attends_to_nothing(engine, inference):
    texts = (LONG, Text(("Cats",)))
    answers = inference.answers(engine, PREDICTIONS, items(texts), too_long="truncate")
    long, alone = found_predictions(answers, list(dependencies(texts)))
    assert long.has_tokens[0]
    assert not long.has_tokens[-1]
    assert alone.has_tokens.tolist() == [True]
    assert (alone.predicted == -1).all()


def test_other_words_other_pieces_and_heads_off_are_other_answers(engine, inference):
    inference.answers(engine, PREDICTIONS, items())
    blanks = [ParsedText.of(text, words_of(text)) for text in TEXTS]
    off = PassSettings(off=((0, 1),))
    assert inference.kept_answers(engine, PREDICTIONS, blanks) is None
    assert inference.kept_answers(engine, PREDICTIONS, items(from_word="first")) is None
    assert inference.kept_answers(engine, PREDICTIONS, items(), off) is None
    assert inference.kept_answers(engine, PREDICTIONS, items()) is not None


def test_the_same_words_under_another_tree_are_the_same_question(engine, inference):
    """Corrected relations cost no pass."""
    text = Text(TEXTS[2].segments, TEXTS[2].words, ((0, 1, 2),), (("root", "dep", "dep"),))
    inference.answers(engine, PREDICTIONS, items(TEXTS[2:]))
    assert inference.kept_answers(engine, PREDICTIONS, items((text,))) is not None


def test_texts_left_out_as_too_long_take_no_tree(engine, inference):
    texts = (TEXTS[0], LONG, TEXTS[1])
    trees = list(dependencies(texts))
    answers = inference.answers(engine, PREDICTIONS, items(texts), too_long="skip")
    assert [place for place, _ in answers.too_long] == [1]
    found = found_predictions(answers, trees)
    assert [one.dependencies for one in found] == [trees[0], trees[2]]
    for one in found:
        assert one.predicted.shape[-1] == len(one.dependencies.heads)


def test_words_come_back_as_they_were_given():
    (item,) = items(TEXTS[:1])
    (tree,) = dependencies(TEXTS[:1])
    np.testing.assert_array_equal(item.words.segments, tree.words.segments)
    np.testing.assert_array_equal(item.words.spans, tree.words.spans)
    assert hash(item) == hash(*items(TEXTS[:1]))
