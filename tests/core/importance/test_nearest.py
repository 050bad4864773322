"""Which text is most similar without which heads: gatings, cosines and their order, by hand and by other libraries."""

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from attention_sieve.core.importance.nearest import by_lead, each_off, n_until_another, similarities


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
