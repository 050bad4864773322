"""Optimal leaf ordering of a dendrogram: neighbouring leaves are as similar as possible.

SciPy's `optimal_leaf_ordering` computes the optimal length, but can return the order of a longer path.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


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
    """The order of leaves allowed by the tree that minimises the sum of distances between neighbours.

    Args:
        merges: linkage matrix in SciPy's format.
        distances: distances between all leaves.

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
