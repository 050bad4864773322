"""What the scores of a text are read against: the score of uniform attention, and the greatest possible score.

Both depend on the tokens of a text and its sieves alone, not on the checkpoint's attention.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.roles.measures import BLOCK, REFERENCES, ROW_MEASURES, SYNTACTIC, SYNTACTIC_MEASURES

BISECTIONS: Final = 60
"""Halvings of an interval of at most 1: to the precision of float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextReferences:
    """References of one text, for layers with the same window."""

    uniform: Float[np.ndarray, " reference"]
    """Score of uniform attention, by REFERENCES; NaN where not applicable."""
    greatest: Float[np.ndarray, " reference"]
    """Greatest score that any attention can have."""


def text_references(
    row_weights: Float[np.ndarray, "query column row_measure"],
    entries: Sequence[tuple[int, int, int, float]],
    visible: Int[np.ndarray, " query"],
) -> TextReferences:
    """The references of a text from the weights of its sieves.

    Args:
        row_weights: weight of each query's column sums in each of ROW_MEASURES; a row measure is the sum over queries
            of a weight times the attention to a set of keys, so that its greatest value takes the largest weight.
        entries: query, key, index into SYNTACTIC_MEASURES and weight of the attention entries of syntactic measures.
        visible: number of keys that each query can attend to.
    """
    most = row_weights.max(axis=1)
    applicable = most.any(axis=0)
    uniform = np.full(len(REFERENCES), np.nan)
    greatest = np.full(len(REFERENCES), np.nan)
    rows = slice(0, len(ROW_MEASURES))
    uniform[rows] = np.where(applicable, 1, np.nan)
    greatest[rows] = np.where(applicable, most.sum(axis=0), np.nan)
    if applicable[BLOCK]:
        of_block = most[:, BLOCK]
        takes_part = of_block > 0
        n = visible[takes_part].astype(np.float64)
        n_queries = len(n)
        size = np.rint(n / (of_block[takes_part] * n_queries))
        weighted = REFERENCES.index("block")
        uniform[weighted] = np.log(n).mean()
        greatest[weighted] = greatest_weighted_ratio(n, size).mean()
    for name, weights in _by_reference(entries).items():
        uniform[REFERENCES.index(name)] = 1
        greatest[REFERENCES.index(name)] = _greatest_by_query(weights)
    return TextReferences(uniform=uniform, greatest=greatest)


def greatest_weighted_ratio(
    n_keys: Float[np.ndarray, " query"], size: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " query"]:
    """Greatest value, over all distributions, of attention to the own block relative to uniform, times the entropy.

    For a share s inside the block, entropy is greatest where both parts are uniform; s (n / m) H(s) then has one
    maximum, between the share m / n of uniform attention and 1.

    Args:
        n_keys: number n of keys of each query, at least 1.
        size: number m of keys of its block, 1 to n.
    """
    outside = np.maximum(n_keys - size, 1)
    low, high = size / n_keys, np.ones_like(n_keys)

    def entropy(share: np.ndarray) -> np.ndarray:
        rest = 1 - share
        return -share * np.log(share / size) - rest * np.log(np.where(rest > 0, rest, 1) / outside)

    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rest = np.maximum(1 - middle, np.finfo(np.float64).tiny)
        rises = entropy(middle) + middle * (np.log(rest / outside) - np.log(middle / size)) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    share = np.where(size < n_keys, low, 1)
    return share * n_keys / size * entropy(share)


Weights = dict[tuple[int, int], float]
"""Weight of the attention of a query to a key."""


def _by_reference(entries: Sequence[tuple[int, int, int, float]]) -> dict[str, Weights]:
    """Weights of the syntactic measures, and of the mean of both directions of each role where both apply."""
    weights: defaultdict[str, defaultdict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for query, key, measure, weight in entries:
        weights[SYNTACTIC_MEASURES[measure]][query, key] += weight
    for role in SYNTACTIC:
        directions = [of for name, of in weights.items() if name.rsplit(" ", 1)[0] == role]
        both: defaultdict[tuple[int, int], float] = defaultdict(float)
        for direction in directions:
            for cell, weight in direction.items():
                both[cell] += weight / len(directions)
        if both:
            weights[f"{role} both"] = both
    return {name: dict(of) for name, of in weights.items()}


def _greatest_by_query(weights: Weights) -> float:
    """Every query attends to its key of largest weight alone."""
    largest: defaultdict[int, float] = defaultdict(float)
    for (query, _), weight in weights.items():
        largest[query] = max(largest[query], weight)
    return sum(largest.values())
