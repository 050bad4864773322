"""Which text is most similar without which heads: gatings, cosines and their order, by hand and by other libraries."""

import numpy as np
import pytest
from passing import SELF
from sklearn.metrics.pairwise import cosine_similarity

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.importance.nearest import by_lead, each_off, first_off, n_until_another, similarities
from attention_sieve.core.importance.passes.sweep import Sweep, gated, mean_vectors
from attention_sieve.core.passes.outputs import output_change
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.texts.text import Text


def test_each_head_is_off_once_after_a_gating_with_all_on():
    gatings = each_off(2, 3)
    assert gatings.shape == (7, 2, 3)
    assert gatings[0].all()
    assert [np.argwhere(gating == 0).tolist() for gating in gatings[1:]] == [
        [[layer, head]] for layer in range(2) for head in range(3)
    ]


def test_similarities_are_scikit_learns_cosines():
    vectors = np.random.default_rng(0).normal(size=(4, 5, 6)).astype(np.float32)
    for gating, similar in enumerate(similarities(vectors)):
        expected = cosine_similarity(vectors[:1, gating], vectors[1:, gating])[0]
        np.testing.assert_allclose(similar, expected, rtol=1e-6)


def test_heads_come_first_without_which_the_most_similar_text_is_least_ahead():
    """Two layers of one head and one of them without any effect."""
    similar = np.array([[0.6, 0.2, 0.1], [0.6, 0.2, 0.1], [0.5, 0.1, 0.45]])
    assert by_lead(similar, n_heads=1) == [(1, 0), (0, 0)]


def test_the_first_gating_under_which_another_text_is_most_similar():
    similar = np.array([[0.6, 0.2], [0.5, 0.4], [0.3, 0.4], [0.5, 0.1]])
    assert n_until_another(similar) == 2
    assert n_until_another(similar[:2]) is None


TEXTS = (Text(("the cat sat on the mat.",)), Text(("a dog ran.",)))


@pytest.mark.parametrize("name", ["masked", "causal", "classes"])
def test_vectors_turn_as_far_as_in_passes_with_these_heads_off(headed, name):
    checkpoint, heads = headed(name), [(1, 2), (0, 1)]
    prepared, _ = prepare_all(checkpoint, TEXTS, SELF, "error")
    gatings = first_off(heads, *(checkpoint.attentions["self"].n_layers, checkpoint.attentions["self"].n_heads))
    work = gated(checkpoint, list(prepared.values()), SELF, Sweep(metric="output"), gatings, mean_vectors)
    results = dict(one for batch in work for one in batch)
    for index, text in prepared.items():
        for n_off in range(len(heads) + 1):
            settings = PassSettings(off=tuple(sorted(heads[:n_off])))
            cosine = cosine_similarity(results[index][:1], results[index][n_off : n_off + 1]).item()
            assert cosine == pytest.approx(output_change(checkpoint, text, settings).cosine, rel=1e-6)
