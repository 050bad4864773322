"""Layouts of the distances between heads: coordinates on a plane, and a tree."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.distances import Distances, present_heads

MOST_LEAVES: Final = 160
"""Maximum number of leaves of a legible dendrogram; with more heads, the closest are merged into one leaf."""
MAX_ITERATIONS: Final = 1000
PRECISION: Final = 1e-10


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadPlane:
    """Heads as points on a plane; similar heads are close together."""

    places: Float[np.ndarray, "layer head axis"]
    """In the unit of the distances; rotation and reflection are arbitrary. NaN for a head that was removed."""
    stress: float
    """Part of the distances that the coordinates cannot show (Kruskal's stress 1), 0 = none; NaN if all heads are
    equal."""

    @property
    def points(self) -> Float[np.ndarray, "head axis"]:
        """Coordinates of the heads that were not removed."""
        return self.places[~np.isnan(self.places).any(axis=-1)]

    @property
    def shown(self) -> float:
        """Share of the sum of squared distances that the coordinates show, 0 to 1; NaN if all heads are equal.

        Source: Borg and Groenen 2005, section 11.1, the dispersion accounted for; where SMACOF has ended it follows
        from the stress.
        """
        return 1 / (1 + self.stress**2)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadTree:
    """Hierarchical clustering of heads."""

    leaves: tuple[tuple[Head, ...], ...]
    """Heads as layer and head; several per leaf if there are more heads than MOST_LEAVES."""
    merges: Float[np.ndarray, "merge 4"]
    """Linkage matrix in SciPy's format: the two merged nodes, the mean distance between their heads, and their number
    of leaves."""
    order: Int[np.ndarray, " leaf"]
    """Leaves from top to bottom, ordered so that neighbours are similar."""
    cut: float
    """Height at which the tree is cut into groups: half the mean distance between heads."""


def head_plane(distances: Distances) -> HeadPlane:
    """Coordinates of heads on a plane that preserve their distances as well as possible.

    Metric scaling (SMACOF), initialised by classical scaling and therefore deterministic; several random starts, as in
    the paper, give about the same stress.

    Source: Clark et al. 2019, figure 6: scikit-learn's MDS of precomputed distances, at most 1000 steps, eps 1e-10.
    """
    present = present_heads(distances)
    square = _among_present(distances)
    places = np.full((*present.shape, 2), np.nan)
    if len(square) < 3 or not square.any():
        places[present] = np.stack([square[0], np.zeros(len(square))], axis=1)  # two points have one distance
        return HeadPlane(places=places, stress=0.0 if square.any() else float("nan"))
    from sklearn.manifold import MDS

    scaling = MDS(
        2,
        metric="precomputed",
        init="classical_mds",
        n_init=1,
        max_iter=MAX_ITERATIONS,
        eps=PRECISION,
        normalized_stress=True,
        random_state=0,
    ).fit(square)
    places[present] = scaling.embedding_
    return HeadPlane(places=places, stress=float(scaling.stress_))


def _among_present(distances: Distances) -> Float[np.ndarray, "head head"]:
    """Distances between the heads that were not removed, in order of layers."""
    present = present_heads(distances).ravel()
    return distances.reshape(len(present), -1)[np.ix_(present, present)].astype(np.float64)


def head_tree(distances: Distances, most_leaves: int = MOST_LEAVES) -> HeadTree:
    """Cluster two heads or more by their mean distance (average linkage), with optimal leaf ordering.

    With more heads than `most_leaves`, clusters of the closest are leaves.
    """
    present = [(int(layer), int(head)) for layer, head in zip(*np.nonzero(present_heads(distances)))]
    square = _among_present(distances)
    pairs = squareform(square, checks=False)
    merges, cut = linkage(pairs, "average"), float(pairs.mean()) / 2
    leaves = [[head] for head in range(len(square))]
    if len(square) > most_leaves:
        merges, leaves = _shortened(merges, most_leaves)
        shares = np.zeros((most_leaves, len(square)))
        for index, heads in enumerate(leaves):
            shares[index, heads] = 1 / len(heads)
        square = shares @ square @ shares.T
    return HeadTree(
        leaves=tuple(tuple(present[head] for head in leaf) for leaf in leaves),
        merges=merges,
        order=best_leaf_order(merges, square),
        cut=cut,
    )


def groups(tree: HeadTree) -> list[tuple[Head, ...]]:
    """Groups of heads below the cut of a tree, the largest first; a group may be a single head."""
    number = fcluster(tree.merges, tree.cut, "distance")
    parts = [
        tuple(sorted(head for leaf in np.flatnonzero(number == part) for head in tree.leaves[leaf]))
        for part in np.unique(number)
    ]
    return sorted(parts, key=lambda part: (-len(part), part))


def _shortened(
    merges: Float[np.ndarray, "merge 4"], n_leaves: int
) -> tuple[Float[np.ndarray, "late_merge 4"], list[list[int]]]:
    """The last merges of a tree, and the heads of each remaining leaf."""
    n_heads = len(merges) + 1
    n_early = n_heads - n_leaves
    leaves = {head: [head] for head in range(n_heads)}
    for step, (left, right) in enumerate(merges[:n_early, :2].astype(int)):
        leaves[n_heads + step] = leaves.pop(left) + leaves.pop(right)
    number = {node: index for index, node in enumerate([*leaves, *range(n_heads + n_early, 2 * n_heads - 1)])}
    late = merges[n_early:].copy()
    late[:, :2] = [[number[node] for node in pair] for pair in late[:, :2].astype(int)]
    n_below = [1] * n_leaves
    for merge in late:
        merge[3] = n_below[int(merge[0])] + n_below[int(merge[1])]
        n_below.append(int(merge[3]))
    return late, list(leaves.values())


@dataclass(frozen=True, eq=False)
class _Node:
    """A subtree, and the shortest paths through its leaves."""

    leaves: Int[np.ndarray, " leaf"]
    lengths: Float[np.ndarray, "leaf leaf"]
    """Length of the shortest path by its first and last leaf; infinite if the tree does not allow it."""
    parts: "tuple[_Node, _Node] | None" = None


def best_leaf_order(
    merges: Float[np.ndarray, "merge 4"], distances: Float[np.ndarray, "all all"]
) -> Int[np.ndarray, " all"]:
    """The order of leaves allowed by the tree (in SciPy's format) that minimises the sum of neighbours' distances.

    SciPy's `optimal_leaf_ordering` computes the optimal length, but can return the order of a longer path.

    Source: Bar-Joseph, Gifford and Jaakkola 2001.
    """
    nodes = [_Node(np.array([leaf]), np.zeros((1, 1))) for leaf in range(len(distances))]
    for left, right in merges[:, :2].astype(int):
        nodes.append(_joined(nodes[left], nodes[right], distances))
    order = list[int]()
    ends = np.unravel_index(nodes[-1].lengths.argmin(), nodes[-1].lengths.shape)
    stack = [(nodes[-1], int(ends[0]), int(ends[1]))]
    while stack:
        node, first, last = stack.pop()
        if node.parts is None:
            order.append(int(node.leaves[0]))
        else:
            stack += reversed(_halves(*node.parts, first, last, distances))
    return np.array(order)


def _joined(left: _Node, right: _Node, distances: Float[np.ndarray, "all all"]) -> _Node:
    """Shortest paths through all leaves of one subtree, then through those of the other."""
    n_left, n_all = len(left.leaves), len(left.leaves) + len(right.leaves)
    between = distances[np.ix_(left.leaves, right.leaves)]
    # A path through one subtree and then the other begins in one and ends in the other; other ends stay infinite.
    lengths = np.full((n_all, n_all), np.inf)
    lengths[:n_left, n_left:] = _shortest(_shortest(left.lengths, between), right.lengths)
    lengths[n_left:, :n_left] = lengths[:n_left, n_left:].T  # walked backwards, a path is as long
    return _Node(np.concatenate([left.leaves, right.leaves]), lengths, (left, right))


def _shortest(
    before: Float[np.ndarray, "first middle"], after: Float[np.ndarray, "middle last"]
) -> Float[np.ndarray, "first last"]:
    return np.stack([(row[:, None] + after).min(axis=0) for row in before])


def _halves(
    left: _Node, right: _Node, first: int, last: int, distances: Float[np.ndarray, "all all"]
) -> list[tuple[_Node, int, int]]:
    """The two subtrees in the order of the path between two leaves, each with the first and last leaf of its part."""
    # Nodes keep lengths, not paths; the leaves at which this one passes from half to half are looked for again.
    n_left = len(left.leaves)
    if first >= n_left:
        left, right, first, last = right, left, first - n_left, last
    else:
        last -= n_left
    between = distances[np.ix_(left.leaves, right.leaves)]
    lengths = left.lengths[first][:, None] + between + right.lengths[:, last]
    leaves, enters = np.unravel_index(lengths.argmin(), lengths.shape)
    return [(left, first, int(leaves)), (right, int(enters), last)]
