"""Distances between heads through the worker and the store."""

import numpy as np
import pytest
from passing import SELF

from cache.distances import distance_question, found_distances
from cache.inference import Engine, Inference
from cache.store import Store
from core.analysis import prepare
from core.checkpoints import find_checkpoint
from core.head_distances import text_distances
from core.passes import PassSettings
from core.similar_heads import DistanceSettings, head_distances
from core.texts import Text

TEXTS = (
    Text(("The quick cat sat on the old mat.", "She drinks hot coffee.")),
    Text(("She slowly ate the red apple.",)),
    Text(("A bird.",)),
)
EXACT, SMOOTHED, SAMPLED = DistanceSettings(), DistanceSettings(smoothed=True), DistanceSettings(rows=3)


@pytest.fixture
def engine(folders):
    return Engine(find_checkpoint(str(folders("bert"))), "cpu")


@pytest.fixture
def inference(tmp_path):
    made = Inference(Store(tmp_path / "store"))
    yield made
    made.close()
    made.store.close()


@pytest.mark.parametrize("how", [EXACT, SMOOTHED, SAMPLED])
def test_what_is_kept_is_what_the_pass_finds(how, engine, inference, loaded):
    checkpoint = loaded("bert")
    found = found_distances(inference.answers(engine, distance_question(how), TEXTS))
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    by_place = dict(one for batch in text_distances(checkpoint, prepared, SELF, how) for one in batch)
    expected = head_distances([by_place[place] for place in range(len(TEXTS))])
    for name in ("mean", "sum", "relative"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-6)
    assert found.n_texts == 3


def test_another_session_finds_them_without_a_pass(engine, inference):
    question = distance_question(EXACT)
    assert inference.kept_answers(engine, question, TEXTS) is None
    found = found_distances(inference.answers(engine, question, TEXTS))
    inference.close()
    later = Inference(Store(inference.store.folder))
    kept = later.kept_answers(engine, question, TEXTS)
    np.testing.assert_array_equal(found_distances(kept).mean, found.mean)
    later.close()
    later.store.close()


def test_other_rows_other_heads_off_and_other_texts_are_other_answers(engine, inference):
    found = inference.answers(engine, distance_question(EXACT), TEXTS)
    others = [
        inference.answers(engine, distance_question(SMOOTHED), TEXTS),
        inference.answers(engine, distance_question(SAMPLED), TEXTS),
        inference.answers(engine, distance_question(EXACT), TEXTS, PassSettings(off=((0, 1),))),
        inference.answers(engine, distance_question(EXACT), TEXTS[::-1]),
    ]
    for other in others:
        assert np.abs(other.results[0]["pairs"] - found.results[0]["pairs"]).max() > 1e-5


def test_a_text_takes_few_bytes_of_the_store(engine, inference):
    (answer, *_) = inference.answers(engine, distance_question(EXACT), TEXTS).results
    n_heads = 2 * 3
    assert answer["pairs"].nbytes == 4 * n_heads * (n_heads - 1) // 2
    assert answer["pairs"].dtype == answer["relative"].dtype == np.float32
