"""The figures of similar heads, drawn of random distances."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from core.similarity.layout import HeadPlane, head_plane, head_tree
from dashboard.figures.similar.dendrogram import dendrogram
from dashboard.figures.similar.head_kinds import BEHAVIOUR_LOOKS, HeadKinds
from dashboard.figures.similar.matrix import distance_matrix
from dashboard.figures.similar.plane import heads_by_kind, heads_by_layer

N_LAYERS, N_HEADS = 3, 4


def distances_of(n_layers=N_LAYERS, n_heads=N_HEADS, seed=3):
    points = np.random.default_rng(seed).normal(size=(n_layers * n_heads, 3)) / 10
    return squareform(pdist(points)).reshape(n_layers, n_heads, n_layers, n_heads)


def kinds_of(n_layers=N_LAYERS, n_heads=N_HEADS):
    of = np.arange(n_layers * n_heads).reshape(n_layers, n_heads) % 4 - 1
    return HeadKinds(title="behaviour", looks=BEHAVIOUR_LOOKS, of=of)


DISTANCES, KINDS = distances_of(), kinds_of()
PLANE, TREE = head_plane(DISTANCES), head_tree(DISTANCES)
CHOSEN = [(2, 1), (0, 3)]
NAMES = [f"L{layer}" for layer in range(N_LAYERS)]


def matrix(values, names=NAMES):
    return distance_matrix(
        values, names, names, title="Distance", row_title="layer", column_title="other layer", unit="nats"
    )


def large(n_layers=32, n_heads=32):
    distances = distances_of(n_layers, n_heads)
    places = np.random.default_rng(0).normal(size=(n_layers, n_heads, 2))
    plane, kinds = HeadPlane(places=places, stress=0.3), kinds_of(n_layers, n_heads)
    return (
        heads_by_kind(plane, kinds, []),
        heads_by_layer(plane, []),
        dendrogram(head_tree(distances), kinds, [], "nats"),
    )


one_head_twice = head_tree(np.zeros((2, 1, 2, 1)))
FIGURES = {
    "by kind": heads_by_kind(PLANE, KINDS, CHOSEN),
    "by layer": heads_by_layer(PLANE, CHOSEN),
    "tree": dendrogram(TREE, KINDS, CHOSEN, "nats"),
    "matrix": matrix(DISTANCES.mean(axis=(1, 3))),
    "all alike": heads_by_layer(head_plane(np.zeros((2, 2, 2, 2))), []),
    "tree of two": dendrogram(one_head_twice, kinds_of(2, 1), [], "summed nats"),
    "tree of many": dendrogram(head_tree(DISTANCES, most_leaves=5), KINDS, CHOSEN, "nats"),
    "matrix of nothing": matrix(np.full((N_LAYERS, N_LAYERS), np.nan)),
    **dict(zip(("many by kind", "many by layer", "tree of 1,024"), large())),
}
