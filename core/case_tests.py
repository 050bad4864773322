"""Heads judged on the same cases: intervals of shares, a test against a baseline, the best head chosen on halves."""

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import binom

N_HALVES: Final = 2


def wilson(
    n_right: Int[np.ndarray, "*cell"] | Float[np.ndarray, "*cell"] | np.integer,
    n_cases: Int[np.ndarray, "..."] | int,
    alpha: float,
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Wilson intervals of shares, low and high; NaN without cases.

    Args:
        n_right: cases that are right.
        n_cases: all cases, of a shape that broadcasts to that of n_right.
        alpha: intervals cover 1 - alpha.
    """
    from statsmodels.stats.proportion import proportion_confint  # takes half a second

    all_cases = np.broadcast_to(n_cases, n_right.shape)
    ends = proportion_confint(n_right, np.maximum(all_cases, 1), alpha=alpha, method="wilson")
    low, high = (np.where(all_cases > 0, end, np.nan) for end in ends)
    return low, high


def beats_by_chance(
    right: Bool[np.ndarray, "*head case"], baseline: Bool[np.ndarray, " case"]
) -> Float[np.ndarray, "*head"]:
    """McNemar's exact test, one-sided: how likely heads are to beat a baseline so often by chance; NaN without cases.

    Of the cases that only one of the two gets right, each falls to the head by a fair coin. Not corrected for searching
    several heads; cases count as independent.

    Args:
        right: whether each head is right.
        baseline: whether the baseline is.
    """
    if not len(baseline):
        return np.full(right.shape[:-1], np.nan)
    only_head, only_baseline = (right & ~baseline).sum(axis=-1), (~right & baseline).sum(axis=-1)
    return np.asarray(binom.sf(only_head - 1, only_head + only_baseline, 0.5))


def best_head(right: Bool[np.ndarray, "*head case"]) -> tuple[int, ...]:
    """Place of the head that is right most often, the first of equals."""
    n_right = right.sum(axis=-1)
    return tuple(int(place) for place in np.unravel_index(n_right.argmax(), n_right.shape))


def best_on_halves(
    right: Bool[np.ndarray, "*head case"], text: Int[np.ndarray, " case"]
) -> tuple[list[tuple[int, ...]], Bool[np.ndarray, " case"]] | None:
    """The best head of each half of the texts, and whether the other half's best is right in each case.

    Args:
        right: whether each head is right.
        text: number of the text that each case is of, or of the document where texts are parts of such; even numbers
            are the first half, odd ones the second.

    Returns: None where one half has no case.
    """
    half = text % N_HALVES
    if len(np.unique(half)) < N_HALVES:
        return None
    best = [best_head(right[..., half == own]) for own in range(N_HALVES)]
    return best, np.where(half == 0, right[best[1]], right[best[0]])
