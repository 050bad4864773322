"""Layouts of the distances between heads: coordinates on a plane, and a tree."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.distances import Distances, present_heads
from attention_sieve.core.similarity.leaf_order import best_leaf_order

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

    Args:
        distances: of all pairs of heads.

    Source: Clark et al. 2019, figure 6: scikit-learn's MDS of precomputed distances, at most 1000 steps, eps 1e-10.
    """
    present = present_heads(distances)
    square = _among_present(distances)
    places = np.full((*present.shape, 2), np.nan)
    places[present], stress = _placed(square)
    return HeadPlane(places=places, stress=stress)


def _placed(square: Float[np.ndarray, "head head"]) -> tuple[Float[np.ndarray, "head axis"], float]:
    """Coordinates of points with these distances, and their stress."""
    if len(square) < 3 or not square.any():
        line = np.zeros((len(square), 2))
        line[:, 0] = square[0]  # two points have one distance
        stress = 0.0 if square.any() else float("nan")
        return line, stress
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
    return scaling.embedding_, float(scaling.stress_)


def _among_present(distances: Distances) -> Float[np.ndarray, "head head"]:
    """Distances between the heads that were not removed, in order of layers."""
    present = present_heads(distances).ravel()
    return distances.reshape(len(present), -1)[np.ix_(present, present)].astype(np.float64)


def head_tree(distances: Distances, most_leaves: int = MOST_LEAVES) -> HeadTree:
    """Cluster heads by their mean distance (average linkage), with optimal leaf ordering.

    Args:
        distances: of two heads or more.
        most_leaves: with more heads than this, clusters of the closest are leaves.
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
