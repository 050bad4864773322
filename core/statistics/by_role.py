"""Heads that hold a role: how far two roles overlap, and whether a number is greater for them than for other heads.

Does not import torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.statistics.means import Correction, adjusted, ratio

ALPHA: Final = 0.05
"""Intervals cover 1 - ALPHA."""
SHUFFLES: Final = 10_000
CHUNK: Final = 1_000
"""Shuffles computed at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ByRole:
    """Heads that hold a role against those that do not; NaN if one side is empty."""

    roles: tuple[str, ...]
    n_holding: Int[np.ndarray, " role"]
    n_others: Int[np.ndarray, " role"]
    median_holding: Float[np.ndarray, " role"]
    """Of the heads that hold the role."""
    median_others: Float[np.ndarray, " role"]
    superiority: Float[np.ndarray, " role"]
    """Share of pairs, one head with the role and one without, in which the one with it has the greater number; ties
    count half. 0.5 means no difference."""
    low: Float[np.ndarray, " role"]
    high: Float[np.ndarray, " role"]
    """95% interval, as if the heads were drawn from many like them."""
    p: Float[np.ndarray, " role"]
    """Two-sided, by shuffling the role over all heads: at least 1 / (SHUFFLES + 1)."""
    p_adjusted: Float[np.ndarray, " role"]
    """Corrected over the roles."""
    in_layers: Float[np.ndarray, " role"]
    """The same share over pairs of heads of one layer; NaN where no layer has heads of both sides."""
    p_in_layers: Float[np.ndarray, " role"]
    """By shuffling the role among the heads of each layer."""
    p_in_layers_adjusted: Float[np.ndarray, " role"]


def compare_by_role(
    numbers: Float[np.ndarray, "layer head"],
    holds: Bool[np.ndarray, "role layer head"],
    roles: Sequence[str],
    correction: Correction = "bh",
) -> ByRole:
    """Compare heads with and without each role by a number, such as their importance. NaN leaves a head out.

    Heads of one layer are similar in both respects, so the second comparison is within layers only: its result does
    not depend on which layers a role occurs in.

    Source: Mann and Whitney 1947, with p-values by permutation, which need no large sample; van Elteren 1960 for the
        layers, here with pairs of equal weight; interval: Newcombe 2006, method 5.
    """
    is_known = ~np.isnan(numbers)
    values, layer = numbers[is_known], np.nonzero(is_known)[0]
    holding = holds[:, is_known].astype(float)
    n_holding = holding.sum(axis=1)
    n_others = holding.shape[1] - n_holding
    superiority, p = _superiority(values, holding, np.zeros(len(values), int))
    in_layers, p_in_layers = _superiority(values, holding, layer)
    low, high = superiority_interval(superiority, n_holding, n_others)
    medians = [
        np.array([np.median(values[side]) if side.any() else np.nan for side in sides])
        for sides in (holding == 1, holding == 0)
    ]
    return ByRole(
        roles=tuple(roles),
        n_holding=n_holding.astype(int),
        n_others=n_others.astype(int),
        median_holding=medians[0],
        median_others=medians[1],
        superiority=superiority,
        low=low,
        high=high,
        p=p,
        p_adjusted=adjusted(p, correction),
        in_layers=in_layers,
        p_in_layers=p_in_layers,
        p_in_layers_adjusted=adjusted(p_in_layers, correction),
    )


def _superiority(
    values: Float[np.ndarray, " head"], holds: Float[np.ndarray, "role head"], stratum: Int[np.ndarray, " head"]
) -> tuple[Float[np.ndarray, " role"], Float[np.ndarray, " role"]]:
    """Share of pairs within strata in which the head with the role is ahead, and its p-value."""
    ranks, n_pairs, n_won_at_least = _ranks(values, stratum), np.zeros(len(holds)), np.zeros(len(holds))
    for number in np.unique(stratum):
        n_held = holds[:, stratum == number].sum(axis=1)
        n_pairs += n_held * ((stratum == number).sum() - n_held)
        n_won_at_least += n_held * (n_held + 1) / 2
    won = holds @ ranks - n_won_at_least
    distance = np.abs(won - n_pairs / 2) - 1e-9  # sums of half ranks are exact; only a precaution
    n_as_far = np.zeros(len(holds))
    for shuffled in _shuffled(ranks, stratum):
        n_as_far += (np.abs(shuffled @ holds.T - n_won_at_least - n_pairs / 2) >= distance).sum(axis=0)
    p = np.where(n_pairs > 0, (n_as_far + 1) / (SHUFFLES + 1), np.nan)
    return ratio(won, n_pairs), p


def _ranks(values: Float[np.ndarray, " head"], stratum: Int[np.ndarray, " head"]) -> Float[np.ndarray, " head"]:
    """Ranks within each stratum; ties share theirs."""
    from scipy.stats import rankdata

    ranks = np.empty(len(values))
    for number in np.unique(stratum):
        ranks[stratum == number] = rankdata(values[stratum == number])
    return ranks


def _shuffled(
    ranks: Float[np.ndarray, " head"], stratum: Int[np.ndarray, " head"]
) -> Iterator[Float[np.ndarray, "shuffle head"]]:
    """The ranks, shuffled within each stratum, in chunks."""
    generator = np.random.default_rng(0)
    for _ in range(SHUFFLES // CHUNK):
        shuffled = np.tile(ranks, (CHUNK, 1))
        for number in np.unique(stratum):
            shuffled[:, stratum == number] = generator.permuted(shuffled[:, stratum == number], axis=1)
        yield shuffled


def superiority_interval(
    share: Float[np.ndarray, " role"], n_holding: Float[np.ndarray, " role"], n_others: Float[np.ndarray, " role"]
) -> tuple[Float[np.ndarray, " role"], Float[np.ndarray, " role"]]:
    """95% interval of a share of pairs: all values that are within 1.96 of their own standard errors of it.

    Source: Newcombe 2006, Statistics in Medicine 25, method 5: the variance of Hanley and McNeil 1982, with both
        numbers in it replaced by their mean.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = float(ndtri(1 - ALPHA / 2))

    def beyond(value: float, share: float, m: float, n: float) -> float:
        mean = (m + n) / 2 - 1
        variance = value * (1 - value) * (1 + mean * (1 - value) / (2 - value) + mean * value / (1 + value)) / (m * n)
        return (value - share) ** 2 - z * z * variance

    ends = np.full((2, len(share)), np.nan)
    for index, (one_share, m, n) in enumerate(zip(share.tolist(), n_holding.tolist(), n_others.tolist())):
        if not np.isnan(one_share):
            ends[0, index] = 0.0 if one_share <= 0 else brentq(beyond, 0.0, one_share, args=(one_share, m, n))
            ends[1, index] = 1.0 if one_share >= 1 else brentq(beyond, one_share, 1.0, args=(one_share, m, n))
    return ends[0], ends[1]


@dataclass(frozen=True)
class Overlap:
    """How many heads two roles share: counts, and proportions in [0, 1] (NaN if the denominator is 0)."""

    first: int
    """Heads that hold the first role."""
    second: int
    """Heads that hold the second role."""
    both: int
    """Heads that hold both."""
    share_first: float
    """Share of the first role's heads that hold both."""
    share_second: float
    """Share of the second role's heads that hold both."""
    share_union: float
    """Share of the heads with either role that hold both."""


def overlap(holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], first: str, second: str) -> Overlap:
    """Heads that hold both of two roles, as a proportion of each possible denominator.

    Raises: ValueError for a role that is not in `roles`.
    Source: Pande et al. 2021, overlap of local and syntactic heads. The denominator of their 42% to 88% (89% in
        their article) is not recoverable, so all three are given.
    """
    in_first, in_second = holds[roles.index(first)], holds[roles.index(second)]
    n_first, n_second = int(in_first.sum()), int(in_second.sum())
    n_both, n_either = int((in_first & in_second).sum()), int((in_first | in_second).sum())
    return Overlap(
        n_first, n_second, n_both, *(n_both / n if n else float("nan") for n in (n_first, n_second, n_either))
    )
