"""Choices of mentions through the worker and the store."""

import json
from dataclasses import replace

import numpy as np
import pytest
from passing import SELF

from cache.coreference import COREFERENCE, MentionsAsked, found_choices
from cache.inference import Engine, Inference
from cache.store import Store
from core.analysis import prepare
from core.checkpoints import find_checkpoint
from core.coreference_files import read_mentions
from core.coreference_observer import mention_choices
from core.passes import PassSettings

TEXTS = read_mentions(
    json.dumps(
        [
            {"text": "Ann saw the dog and she fed it.", "clusters": [[[0, 3], [20, 23]], [[8, 15], [28, 30]]]},
            {"words": ["Bo", "ate", ";", "he", "sat"], "clusters": [[[0, 1], [3, 4]]]},
            {"text": "A bird sang to Cy. Cy sang to it.", "clusters": [[[0, 6], [30, 32]], [[15, 17], [19, 21]]]},
        ]
    ).encode()
)
ASKED = [MentionsAsked(text) for text in TEXTS]


@pytest.fixture
def engine(folders):
    return Engine(find_checkpoint(str(folders("bert"))), "cpu")


@pytest.fixture
def inference(tmp_path):
    made = Inference(Store(tmp_path / "store"))
    yield made
    made.close()
    made.store.close()


def test_what_is_kept_is_what_the_pass_finds(engine, inference, loaded):
    checkpoint = loaded("bert")
    found = found_choices(inference.answers(engine, COREFERENCE, ASKED))
    prepared = [prepare(checkpoint, text.text, SELF) for text in TEXTS]
    expected = dict(one for batch in mention_choices(checkpoint, TEXTS, prepared, SELF) for one in batch)
    for place, of_text in enumerate(found):
        for name in ("mentions", "words", "is_read"):
            np.testing.assert_array_equal(getattr(of_text, name), getattr(expected[place], name))


def test_another_session_finds_them_without_a_pass(engine, inference):
    assert inference.kept_answers(engine, COREFERENCE, ASKED) is None
    found = found_choices(inference.answers(engine, COREFERENCE, ASKED))
    inference.close()
    later = Inference(Store(inference.store.folder))
    kept = found_choices(later.kept_answers(engine, COREFERENCE, ASKED))
    for one, again in zip(found, kept, strict=True):
        np.testing.assert_array_equal(one.mentions, again.mentions)
        np.testing.assert_array_equal(one.is_read, again.is_read)
    assert later.n_passed == 0
    later.close()
    later.store.close()


def test_who_refers_to_whom_needs_no_new_pass_and_where_mentions_stand_does(engine, inference):
    inference.answers(engine, COREFERENCE, ASKED[:1])
    (text,) = TEXTS[:1]
    others = replace(text, mentions=tuple(replace(one, entity="1", type="nominal") for one in text.mentions))
    assert inference.kept_answers(engine, COREFERENCE, [MentionsAsked(others)]) is not None
    fewer = replace(text, mentions=text.mentions[:3])
    assert inference.kept_answers(engine, COREFERENCE, [MentionsAsked(fewer)]) is None
    assert inference.kept_answers(engine, COREFERENCE, ASKED[:1], PassSettings("self", ((0, 1),))) is None


def test_the_first_piece_is_another_question_than_the_mean_and_both_may_be_asked_at_once(engine, inference, loaded):
    checkpoint, both = loaded("bert"), [MentionsAsked(TEXTS[0], "first"), *ASKED[1:], MentionsAsked(TEXTS[2], "first")]
    assert "from word" not in COREFERENCE.ingredients(ASKED[0])
    assert COREFERENCE.ingredients(both[0]) == {**COREFERENCE.ingredients(ASKED[0]), "from word": "first"}
    found = found_choices(inference.answers(engine, COREFERENCE, both))
    for item, of_text in zip(both, found, strict=True):
        prepared = [prepare(checkpoint, item.text.text, SELF)]
        ((_, expected),) = next(iter(mention_choices(checkpoint, [item.text], prepared, SELF, item.from_word)))
        np.testing.assert_array_equal(of_text.words, expected.words)
        np.testing.assert_array_equal(of_text.mentions, expected.mentions)
    assert any((found[2].words != found[3].words).ravel())
