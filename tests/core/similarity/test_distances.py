"""Distances over texts, what is nearest, what heads do, and how a plane and a tree show it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import MDS

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.similarity.analysis import distance_table
from attention_sieve.core.similarity.distances import (
    DistanceSettings,
    TextDistances,
    closest_pair,
    head_distances,
    layer_distances,
    nearest_heads,
    within_and_between,
)
from attention_sieve.core.similarity.layout import groups, head_plane, head_tree

N_LAYERS, N_HEADS = 2, 3


def of_text(pairs, n_queries=4, shape=(N_LAYERS, N_HEADS)):
    relative = np.full((*shape, shape[1]), float(n_queries))
    return TextDistances(pairs=np.array(pairs, dtype=np.float32), relative=relative, n_queries=n_queries)


def on_a_line(places):
    """Distances between heads at places [layer head] on a line."""
    at = np.array(places)
    return np.abs(at.ravel()[:, None] - at.ravel()).reshape(*at.shape, *at.shape)


def points(n, seed=0, axes=2):
    return np.random.default_rng(seed).normal(size=(n, axes))


def test_two_texts_count_alike_in_the_mean_and_by_their_rows_in_the_sum():
    first, second = np.arange(15) / 100, np.arange(15)[::-1] / 50
    found = head_distances([of_text(first, 4), of_text(second, 10)])
    assert found.n_texts == 2
    assert found.shape == (N_LAYERS, N_HEADS)
    # Head 0 and head 2 of layer 0 are pair 1; head 1 of layer 0 and head 2 of layer 1 are pair 5 + 3.
    np.testing.assert_allclose(found.mean[0, 0, 0, 2], (first[1] + second[1]) / 2, rtol=1e-6)
    np.testing.assert_allclose(found.mean[0, 1, 1, 2], (first[8] + second[8]) / 2, rtol=1e-6)
    np.testing.assert_allclose(found.sum[0, 1, 1, 2], 4 * first[8] + 10 * second[8], rtol=1e-6)
    np.testing.assert_array_equal(found.mean, found.mean.transpose(2, 3, 0, 1))
    np.testing.assert_array_equal(np.einsum("lhlh->lh", found.mean), 0)
    np.testing.assert_array_equal(found.relative, np.full((N_LAYERS, N_HEADS, N_HEADS), 7.0))


def test_every_pair_of_heads_is_a_row():
    one = of_text(np.arange(15) / 100)
    one.relative[:] = np.arange(18).reshape(2, 3, 3)
    found = head_distances([one])
    table = distance_table(found)
    assert len(table) == 6 * 5 // 2
    for row in table.itertuples():
        a, b = (row.layer_a, row.head_a), (row.layer_b, row.head_b)
        assert a < b
        assert (row.divergence, row.sum) == (found.mean[*a, *b], found.sum[*a, *b])
        if a[0] == b[0]:
            assert (row.relative_a_b, row.relative_b_a) == (found.relative[*a, b[1]], found.relative[*b, a[1]])
        else:
            assert np.isnan([row.relative_a_b, row.relative_b_a]).all()


def test_settings_are_said_and_less_than_one_row_is_refused():
    facts = DistanceSettings(smoothed=True, rows=3).facts
    assert (facts["rows smoothed"], facts["most rows of a text"]) == ("yes", "3")
    with pytest.raises(AnalysisError, match="The number of rows is 0"):
        DistanceSettings(rows=0)


def test_heads_on_a_line_are_nearest_to_their_neighbours():
    distances = on_a_line([[0.0, 7.0, 1.0], [1.5, 30.0, 4.0]])
    assert [head for head, _ in nearest_heads(distances, (0, 2))] == [(1, 0), (0, 0), (1, 2), (0, 1), (1, 1)]
    assert nearest_heads(distances, (0, 2))[1][1] == pytest.approx(1)
    assert closest_pair(distances) == ((0, 2), (1, 0), pytest.approx(0.5))
    assert closest_pair(np.zeros((2, 2, 2, 2))) == ((0, 0), (0, 1), 0.0)


def test_within_a_layer_a_head_is_not_compared_with_itself():
    at = np.array([[0.0, 1.0, 4.0], [10.0, 12.0, 17.0]])
    of_layers = layer_distances(on_a_line(at))
    np.testing.assert_allclose(of_layers[0, 0], (1 + 4 + 3) / 3, rtol=1e-6)
    np.testing.assert_allclose(of_layers[1, 1], (2 + 7 + 5) / 3, rtol=1e-6)
    np.testing.assert_allclose(of_layers[0, 1], np.abs(at[0][:, None] - at[1]).mean(), rtol=1e-6)
    within, between = within_and_between(on_a_line(at))
    assert within == pytest.approx((8 + 14) / 6, rel=1e-6)
    assert between == pytest.approx(of_layers[0, 1])


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 4), (4, 1), (1, 1)])
def test_what_there_is_no_pair_for_is_not_applicable(n_layers, n_heads):
    n = n_layers * n_heads
    found = head_distances([of_text(np.full(n * (n - 1) // 2, 0.25), shape=(n_layers, n_heads))])
    within, between = within_and_between(found.mean)
    assert np.isnan(within) == (n_heads == 1)
    assert np.isnan(between) == (n_layers == 1)
    assert (closest_pair(found.mean) is None) == (n == 1)
    assert len(nearest_heads(found.mean, (0, 0))) == n - 1


def test_a_plane_restores_what_lies_in_a_plane():
    flat = points(8)
    distances = squareform(pdist(flat))
    found = head_plane(distances.reshape(2, 4, 2, 4))
    np.testing.assert_allclose(squareform(pdist(found.places.reshape(8, 2))), distances, atol=1e-4)
    assert found.stress < 1e-4


def test_the_plane_is_as_good_as_the_papers_five_random_starts_and_says_what_it_shows():
    square = squareform(pdist(points(30, axes=6))) ** 1.5
    found = head_plane(square.reshape(5, 6, 5, 6))
    paper = MDS(
        2, metric="precomputed", init="random", n_init=5, max_iter=1000, eps=1e-10, normalized_stress=True,
        random_state=1,
    ).fit(square)  # fmt: skip
    shown = squareform(pdist(found.places.reshape(30, 2)))
    assert found.stress == pytest.approx(np.sqrt(((shown - square) ** 2).sum() / (shown**2).sum()), rel=1e-3)
    assert 0.05 < found.stress < 1.05 * paper.stress_
    assert found.shown == pytest.approx(1 - ((shown - square) ** 2).sum() / (square**2).sum(), rel=1e-3)
    np.testing.assert_array_equal(head_plane(square.reshape(5, 6, 5, 6)).places, found.places)


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 1), (1, 2)])
def test_one_head_or_two_lie_on_a_line(n_layers, n_heads):
    n = n_layers * n_heads
    found = head_plane(squareform(np.full(n * (n - 1) // 2, 0.4)).reshape(2 * (n_layers, n_heads)) if n > 1 else
                       np.zeros((1, 1, 1, 1)))  # fmt: skip
    assert found.places.shape == (n_layers, n_heads, 2)
    assert np.ptp(found.places[..., 0]) == pytest.approx(0.4 if n == 2 else 0)


def test_heads_without_any_difference_lie_on_one_point():
    found = head_plane(np.zeros((2, 3, 2, 3)))
    assert not found.places.any()
    assert np.isnan(found.stress)


def test_the_tree_joins_the_closest_first_and_lays_like_beside_like():
    tree = head_tree(on_a_line([[0.0, 7.0, 1.0], [1.5, 30.0, 4.0]]))
    in_order = [tree.leaves[leaf] for leaf in tree.order]
    expected = [((0, 0),), ((0, 2),), ((1, 0),), ((1, 2),), ((0, 1),), ((1, 1),)]
    assert in_order in (expected, expected[::-1])
    np.testing.assert_allclose(tree.merges[0], [2, 3, 0.5, 2])
    assert tree.merges[-1, 3] == 6


def every_order(merges):
    """All orders of the leaves that a tree allows."""
    nodes = [[[leaf]] for leaf in range(len(merges) + 1)]
    for one, other in merges[:, :2].astype(int):
        orders = product(nodes[one], nodes[other])
        nodes.append([order for a, b in orders for order in (a + b, b + a)])
    return nodes[-1]


@given(st.integers(2, 8), st.integers(0, 1000))
def test_no_order_that_the_tree_allows_puts_neighbours_closer(n_heads, seed):
    distances = squareform(pdist(points(n_heads, seed, axes=3)))
    tree = head_tree(distances.reshape(1, n_heads, 1, n_heads))
    lengths = {tuple(order): distances[order[:-1], order[1:]].sum() for order in every_order(tree.merges)}
    assert lengths[tuple(tree.order.tolist())] == pytest.approx(min(lengths.values()))


def test_nodes_are_joined_at_scipys_heights():
    pairs = pdist(points(12, axes=3))
    tree = head_tree(squareform(pairs).reshape(3, 4, 3, 4))
    np.testing.assert_allclose(cophenet(tree.merges), cophenet(linkage(pairs, "average")))


def test_of_many_heads_the_closest_are_one_leaf():
    near = np.repeat(np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 9.0]]), 4, axis=0) + points(12) / 100
    pairs = pdist(near)
    distances = squareform(pairs).reshape(3, 4, 3, 4)
    whole, short = head_tree(distances), head_tree(distances, most_leaves=3)
    assert {frozenset(leaf) for leaf in short.leaves} == {
        frozenset((layer, head) for head in range(4)) for layer in range(3)
    }
    np.testing.assert_allclose(short.merges[:, 2], whole.merges[-2:, 2])
    np.testing.assert_array_equal(short.merges[:, 3], [2, 3])
    assert len(groups(short)) == 3
    assert sorted(short.order) == [0, 1, 2]
    assert sorted(head for leaf in head_tree(distances, most_leaves=5).leaves for head in leaf) == [
        (layer, head) for layer in range(3) for head in range(4)
    ]


def test_a_tree_falls_into_groups_that_are_closer_than_half_the_mean_distance():
    distances = on_a_line([[0.0, 10.0, 0.5], [10.4, 30.0, 0.6]])
    tree = head_tree(distances)
    assert tree.cut == pytest.approx(squareform(distances.reshape(6, 6)).mean() / 2)
    assert groups(tree) == [((0, 0), (0, 2), (1, 2)), ((0, 1), (1, 0)), ((1, 1),)]
