import numpy as np
import pytest

from attention_sieve.core.attention.settings import highest_head
from attention_sieve.core.knowledge.reconstruction import percent_gain
from attention_sieve.core.knowledge.summary import task_similarity

PROBING = "linear_head_wise_results__bert-base-uncased_"
BEST = {
    "Length": (1, 11, 87.61), "WordContent": (3, 6, 50.31), "Depth": (1, 4, 31.01),
    "TopConstituents": (4, 11, 71.30), "BigramShift": (8, 8, 83.59), "Tense": (10, 0, 87.88),
    "SubjNumber": (5, 0, 81.96), "ObjNumber": (5, 10, 76.82), "OddManOut": (8, 8, 60.75),
    "CoordinationInversion": (7, 0, 66.79),
}  # fmt: skip
"""Published best heads of BERT-base and their accuracies in percent."""
SIMILAR = {
    ("Length", "Depth"): 0.796, ("OddManOut", "BigramShift"): 0.839, ("Length", "OddManOut"): -0.713,
    ("SubjNumber", "ObjNumber"): 0.711,
}  # fmt: skip


@pytest.fixture(scope="module")
def published(shared):
    return np.load(shared / "reference" / "transformer_anatomy_published_headwise.npz")


@pytest.mark.parametrize("task", BEST)
def test_best_heads_as_published(task, published):
    scores = published[PROBING + task]
    layer, head = highest_head(scores)
    assert (layer, head, scores[layer, head]) == BEST[task]


def test_similarity_of_tasks_as_published(published):
    names = list(BEST)
    similar = task_similarity(np.stack([published[PROBING + task] for task in names]))
    for (one, other), wanted in SIMILAR.items():
        assert similar[names.index(one), names.index(other)] == pytest.approx(wanted, abs=5e-4)
    np.testing.assert_allclose(np.diag(similar), 1)


@pytest.mark.parametrize(
    ("layer", "top", "wanted"),
    [(87.8, 95.0, 8.2), (25.18, 73.1, 190.3), (31.7, 38.3, 20.8), (96.42, 96.2, -0.2), (54.9, 55.5, 1.0)],
    ids=["BERT Length", "BERT WordContent", "BERT Depth", "GPT Length", "GPT-2 OddManOut"],
)
def test_gains_as_published(layer, top, wanted):
    # Published gains come from unrounded scores, these from rounded ones.
    assert float(percent_gain(top, layer)) == pytest.approx(wanted, abs=0.15)


def test_similarity_by_numpy_leaves_out_heads_without_a_score():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 2, 5))
    scores[1, 0, 2] = np.nan
    there = np.arange(10) != 2
    np.testing.assert_allclose(task_similarity(scores), np.corrcoef(scores.reshape(3, -1)[:, there]))
    assert np.isnan(task_similarity(np.stack([scores[0], np.ones((2, 5))]))[0, 1])
