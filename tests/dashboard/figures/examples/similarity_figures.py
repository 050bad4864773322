"""The figures of similar heads, drawn of random distances."""

import numpy as np
from drawn import Drawn
from scipy.spatial.distance import pdist, squareform

from attention_sieve.core.similarity.layout import HeadPlane, head_plane, head_tree
from attention_sieve.dashboard.figures.miniatures import pattern_mark
from attention_sieve.dashboard.figures.similarity.dendrogram import dendrogram
from attention_sieve.dashboard.figures.similarity.head_kinds import BEHAVIOUR_LOOKS, HeadKinds
from attention_sieve.dashboard.figures.similarity.matrix import MatrixSide, distance_matrix
from attention_sieve.dashboard.figures.similarity.plane import heads_by_kind, heads_by_layer, outermost

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
    rows, columns = MatrixSide("layer", tuple(names)), MatrixSide("other layer", tuple(names))
    return distance_matrix(values, rows, columns, title="Distance", unit="nats")


LARGE_PLANE = HeadPlane(places=np.random.default_rng(0).normal(size=(32, 32, 2)), stress=0.3)


PATTERNS = [[pattern_mark(np.eye(5, dtype=np.uint8) * 255)] * N_HEADS] * N_LAYERS


def by_kind(plane, kinds, chosen, patterns=None):
    return heads_by_kind(plane, kinds, chosen, outermost(plane), patterns)


def by_layer(plane, chosen, patterns=None):
    return heads_by_layer(plane, chosen, outermost(plane), patterns)


FIGURES = Drawn(
    {
        "by kind": lambda: by_kind(PLANE, KINDS, CHOSEN),
        "by layer": lambda: by_layer(PLANE, CHOSEN),
        "patterns by kind": lambda: by_kind(PLANE, KINDS, CHOSEN, PATTERNS),
        "patterns by layer": lambda: by_layer(PLANE, CHOSEN, PATTERNS),
        "tree": lambda: dendrogram(TREE, KINDS, CHOSEN, "nats"),
        "matrix": lambda: matrix(DISTANCES.mean(axis=(1, 3))),
        "all alike": lambda: by_layer(head_plane(np.zeros((2, 2, 2, 2))), []),
        "tree of two": lambda: dendrogram(head_tree(np.zeros((2, 1, 2, 1))), kinds_of(2, 1), [], "summed nats"),
        "tree of many": lambda: dendrogram(head_tree(DISTANCES, most_leaves=5), KINDS, CHOSEN, "nats"),
        "matrix of nothing": lambda: matrix(np.full((N_LAYERS, N_LAYERS), np.nan)),
        "many by kind": lambda: by_kind(LARGE_PLANE, kinds_of(32, 32), []),
        "many by layer": lambda: by_layer(LARGE_PLANE, []),
        "tree of 1,024": lambda: dendrogram(head_tree(distances_of(32, 32)), kinds_of(32, 32), [], "nats"),
    }
)
