"""Reference values for the scores of a text: the score of uniform attention, and the greatest possible score.

Both depend only on the tokens of a text and its sieves, not on the checkpoint's attention.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int

NEWTON_STEPS: Final = 6
"""Enough for the precision of float64 in texts of 2 to 100,000 tokens."""


def row_references(
    row_weights: Float[np.ndarray, "query column row_measure"],
    visible: Int[np.ndarray, " query"],
    weighted: Sequence[int],
) -> tuple[Float[np.ndarray, " row_reference"], Float[np.ndarray, " row_reference"]]:
    """The references of row measures, and then of those that are weighted with entropy, for one text.

    Args:
        row_weights: weight of each query's columns in each measure. A measure is the sum over queries of a weight
            times the attention to a set of keys, so that its greatest value takes the largest weight of each query.
        visible: number of keys that each query can attend to.
        weighted: indices of the measures that are weighted, too.

    Returns: score of uniform attention, and greatest score that any attention can have; NaN where not applicable.
    """
    most = row_weights.max(axis=1)
    applicable = most.any(axis=0)
    uniform = np.where(applicable, 1.0, np.nan)
    greatest = np.where(applicable, most.sum(axis=0), np.nan)
    of_weighted = np.full((2, len(weighted)), np.nan)
    for place, index in enumerate(weighted):
        if applicable[index]:
            takes_part = most[:, index] > 0
            n_keys = visible[takes_part].astype(np.float64)
            size = np.rint(n_keys / (most[takes_part, index] * len(n_keys)))
            of_weighted[:, place] = np.log(n_keys).mean(), greatest_weighted_ratio(n_keys, size).mean()
    return np.append(uniform, of_weighted[0]), np.append(greatest, of_weighted[1])


def greatest_weighted_ratio(
    n_keys: Float[np.ndarray, " query"], size: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " query"]:
    """Greatest value, over all distributions, of attention to a sieve relative to uniform, times the entropy.

    For a share s inside the sieve, entropy is greatest where both parts are uniform; s (n / m) H(s) then has one
    maximum, between the share m / n of uniform attention and 1. Newton's method finds where its derivative is zero,
    in the log-odds of s, in which the derivative soon becomes a straight line.

    Args:
        n_keys: number n of keys of each query, at least 1.
        size: number m of keys of its sieve, 1 to n.
    """
    outside = np.maximum(n_keys - size, 1)
    at_chance = np.log(size / outside)
    log_odds = np.maximum(at_chance, 0)
    for _ in range(NEWTON_STEPS):
        share, above_chance = 1 / (1 + np.exp(-log_odds)), log_odds - at_chance
        derivative = 2 * share * above_chance - np.logaddexp(0, log_odds) - np.log(outside)
        log_odds = log_odds - derivative / (share * (1 + 2 * (1 - share) * above_chance))
    share = np.where(size < n_keys, 1 / (1 + np.exp(-log_odds)), 1)
    share_outside = 1 - share
    entropy = -share * np.log(share / size) - share_outside * np.log(
        np.where(share_outside > 0, share_outside, 1) / outside
    )
    return share * n_keys / size * entropy
