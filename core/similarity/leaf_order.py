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
    for one, other in merges[:, :2].astype(int):
        nodes.append(_joined(nodes[one], nodes[other], distances))
    order = list[int]()
    ends = np.unravel_index(nodes[-1].lengths.argmin(), nodes[-1].lengths.shape)
    todo = [(nodes[-1], int(ends[0]), int(ends[1]))]
    while todo:
        node, first, last = todo.pop()
        if node.parts is None:
            order.append(int(node.leaves[0]))
        else:
            todo += reversed(_halves(*node.parts, first, last, distances))
    return np.array(order)


def _joined(one: _Node, other: _Node, distances: Float[np.ndarray, "all all"]) -> _Node:
    """Shortest paths through all leaves of one subtree, then through those of the other."""
    n_one, n_all = len(one.leaves), len(one.leaves) + len(other.leaves)
    between = distances[np.ix_(one.leaves, other.leaves)]
    lengths = np.full((n_all, n_all), np.inf)
    lengths[:n_one, n_one:] = _shortest(_shortest(one.lengths, between), other.lengths)
    lengths[n_one:, :n_one] = lengths[:n_one, n_one:].T
    return _Node(np.concatenate([one.leaves, other.leaves]), lengths, (one, other))


def _shortest(
    before: Float[np.ndarray, "first middle"], after: Float[np.ndarray, "middle last"]
) -> Float[np.ndarray, "first last"]:
    return np.stack([(row[:, None] + after).min(axis=0) for row in before])


def _halves(
    one: _Node, other: _Node, first: int, last: int, distances: Float[np.ndarray, "all all"]
) -> list[tuple[_Node, int, int]]:
    """The two subtrees in the order of the path between two leaves, each with the first and last leaf of its part."""
    n_one = len(one.leaves)
    if first >= n_one:
        one, other, first, last = other, one, first - n_one, last
    else:
        last -= n_one
    between = distances[np.ix_(one.leaves, other.leaves)]
    over = one.lengths[first][:, None] + between + other.lengths[:, last]
    leaves, enters = np.unravel_index(over.argmin(), over.shape)
    return [(one, first, int(leaves)), (other, int(enters), last)]
