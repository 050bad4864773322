"""What the scores of a text are read against: the score of uniform attention, and the greatest possible score.

Both depend on the tokens of a text and its sieves alone, not on the checkpoint's attention.
"""

from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.roles.measures import BLOCK

BISECTIONS: Final = 60
"""Halvings of an interval of at most 1: to the precision of float64."""


def row_references(
    row_weights: Float[np.ndarray, "query column row_measure"], visible: Int[np.ndarray, " query"]
) -> tuple[Float[np.ndarray, " row_reference"], Float[np.ndarray, " row_reference"]]:
    """The references of ROW_MEASURES and of the block weighted with entropy, for one text.

    Args:
        row_weights: weight of each query's column sums in each measure. A measure is the sum over queries of a weight
            times the attention to a set of keys, so that its greatest value takes the largest weight of each query.
        visible: number of keys that each query can attend to.

    Returns: score of uniform attention, and greatest score that any attention can have; NaN where not applicable.
    """
    most = row_weights.max(axis=1)
    applicable = most.any(axis=0)
    uniform = np.where(applicable, 1.0, np.nan)
    greatest = np.where(applicable, most.sum(axis=0), np.nan)
    of_block = [np.nan, np.nan]
    if applicable[BLOCK]:
        takes_part = most[:, BLOCK] > 0
        n_keys = visible[takes_part].astype(np.float64)
        size = np.rint(n_keys / (most[takes_part, BLOCK] * len(n_keys)))
        of_block = [np.log(n_keys).mean(), greatest_weighted_ratio(n_keys, size).mean()]
    return np.append(uniform, of_block[0]), np.append(greatest, of_block[1])


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
