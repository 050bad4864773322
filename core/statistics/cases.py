"""Evaluates heads on cases that each head gets right or wrong: accuracies with confidence intervals, tests against
baselines corrected for the number of heads, and the best head, selected on one half of the texts and evaluated on the
other.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.statistics.means import ratio

N_HALVES: Final = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """The best head of each half of the texts, evaluated on the other half; both results pooled.

    An unbiased accuracy of "the best head". The accuracy of the best head on all cases is biased, because the best of
    many heads can look good by chance.
    """

    heads: tuple[tuple[int, ...], tuple[int, ...]]
    """Index of the best head on the texts with even numbers, and of the best head on those with odd numbers."""
    accuracy: Float[np.ndarray, " group"]
    """Accuracy of the first head on the odd texts and of the second on the even ones, pooled; NaN without cases."""
    low: Float[np.ndarray, " group"]
    high: Float[np.ndarray, " group"]
    """Wilson interval."""
    p_values: Float[np.ndarray, "baseline group"]
    """As in Judgement, but uncorrected, because no head is tested on the cases that it was selected on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """Accuracy of every head on groups of cases."""

    n_cases: Int[np.ndarray, " group"]
    accuracy: Float[np.ndarray, "group *head"]
    """Share of the cases that a head gets right, 0 to 1; NaN for a group without cases."""
    low: Float[np.ndarray, "group *head"]
    high: Float[np.ndarray, "group *head"]
    """Wilson interval."""
    baselines: Float[np.ndarray, "baseline group"]
    """Share of the cases that each baseline gets right."""
    p_values: Float[np.ndarray, "baseline group *head"]
    """p-values of `beats_by_chance`, times the number of heads (Bonferroni): valid for any dependence between heads,
    and for any head selected afterwards, such as the best."""
    best: tuple[int, ...]
    """Index of the head with the highest accuracy on all cases."""
    held_out: HeldOut | None
    """None if one half of the texts has no cases."""


def judge(
    right: Bool[np.ndarray, "*head case"],
    baselines: Bool[np.ndarray, "baseline case"],
    text: Int[np.ndarray, " case"],
    alpha: float,
    groups: Bool[np.ndarray, "group case"] | None = None,
) -> Judgement:
    """Evaluate all heads on the same cases, by group.

    Args:
        right: whether each head is right in each case.
        baselines: whether each baseline is right in each case.
        text: number of the text of each case, or of its document if documents are split into texts; even numbers are
            one half, odd numbers the other.
        alpha: the intervals cover 1 - alpha.
        groups: which cases belong to each group; None for a single group. The best heads are selected on all cases.
    """
    if groups is None:
        groups = np.ones((1, len(text)), bool)
    n_cases, head_shape = groups.sum(axis=1), right.shape[:-1]
    n_right = np.moveaxis(right.astype(float) @ groups.T.astype(float), -1, 0)
    of_heads = n_cases.reshape(-1, *[1] * len(head_shape))
    low, high = wilson(n_right, of_heads, alpha)
    p_values = np.stack([_beats_by_chance(right, baseline, groups) for baseline in baselines])
    return Judgement(
        n_cases=n_cases,
        accuracy=ratio(n_right, np.broadcast_to(of_heads, n_right.shape)),
        low=low,
        high=high,
        baselines=ratio(baselines @ groups.T.astype(float), np.tile(n_cases, (len(baselines), 1))),
        p_values=np.minimum(1, np.prod(head_shape) * p_values),
        best=best_head(right),
        held_out=_held_out(right, baselines, text, alpha, groups),
    )


def _held_out(
    right: Bool[np.ndarray, "*head case"],
    baselines: Bool[np.ndarray, "baseline case"],
    text: Int[np.ndarray, " case"],
    alpha: float,
    groups: Bool[np.ndarray, "group case"],
) -> HeldOut | None:
    on_halves = best_on_halves(right, text)
    if on_halves is None:
        return None
    (first, second), is_right = on_halves
    n_cases, n_right = groups.sum(axis=1), groups @ is_right.astype(float)
    low, high = wilson(n_right, n_cases, alpha)
    return HeldOut(
        heads=(first, second),
        accuracy=ratio(n_right, n_cases),
        low=low,
        high=high,
        p_values=np.stack([_beats_by_chance(is_right, baseline, groups) for baseline in baselines]),
    )


def _beats_by_chance(
    right: Bool[np.ndarray, "*head case"], baseline: Bool[np.ndarray, " case"], groups: Bool[np.ndarray, "group case"]
) -> Float[np.ndarray, "group *head"]:
    return np.stack([beats_by_chance(right[..., group], baseline[group]) for group in groups])


def wilson(
    n_right: Int[np.ndarray, "*cell"] | Float[np.ndarray, "*cell"] | np.integer,
    n_cases: Int[np.ndarray, "..."] | int,
    alpha: float,
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Wilson intervals of proportions, low and high; NaN without cases.

    Args:
        n_right: number of cases that are right.
        n_cases: number of cases, broadcastable to the shape of n_right.
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
    """McNemar's exact test, one-sided, of "the head is not better than the baseline"; p-values, NaN without cases.

    Under the null hypothesis, each case that only one of the two gets right is equally likely to be the head's. Not
    corrected for multiple heads; cases are treated as independent.

    Args:
        right: whether each head is right in each case.
        baseline: whether the baseline is right in each case.
    """
    from scipy.stats import binom  # takes half a second

    if not len(baseline):
        return np.full(right.shape[:-1], np.nan)
    only_head, only_baseline = (right & ~baseline).sum(axis=-1), (~right & baseline).sum(axis=-1)
    return np.asarray(binom.sf(only_head - 1, only_head + only_baseline, 0.5))


def best_head(right: Bool[np.ndarray, "*head case"]) -> tuple[int, ...]:
    """Index of the head that is right most often; the first in case of a tie."""
    n_right = right.sum(axis=-1)
    return tuple(int(place) for place in np.unravel_index(n_right.argmax(), n_right.shape))


def best_on_halves(
    right: Bool[np.ndarray, "*head case"], text: Int[np.ndarray, " case"]
) -> tuple[list[tuple[int, ...]], Bool[np.ndarray, " case"]] | None:
    """The best head of each half of the texts, and whether the best head of the other half is right in each case.

    Args:
        right: whether each head is right in each case.
        text: number of the text of each case, or of its document if documents are split into texts; even numbers are
            the first half, odd numbers the second.

    Returns: None if one half has no cases.
    """
    half = text % N_HALVES
    if len(np.unique(half)) < N_HALVES:
        return None
    best = [best_head(right[..., half == own]) for own in range(N_HALVES)]
    return best, np.where(half == 0, right[best[1]], right[best[0]])
