"""Whether heads matter alike on two sets of texts. Does not import torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from core.importance.agreement import correlation, rank_correlation
from core.importance.effects import ALPHA, FEWEST_TEXTS, Draws, halves
from core.importance.measures import Measure

Change = Float[np.ndarray, "layer head"]
CHUNK = 50
"""Drawn corpora at a time, which bounds the memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Correlation:
    """A correlation over heads."""

    value: float
    """NaN where all heads of one side have the same change."""
    low: float
    """95% interval: percentiles over corpora drawn from the texts of both sides, each anew; NaN for fewer than two
    texts, or documents, on one side."""
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoSets:
    """What taking out each head changes on two sets of texts, and how alike that is."""

    changes: tuple[Change, Change]
    """Damage on the first and on the second set; NaN for a removed head."""
    pearson: Correlation
    spearman: Correlation
    """Of the ranks: no few heads decide it."""
    within: tuple[float, float]
    """Pearson's correlation between the two halves of each set: what is lost between the sets beyond this is not
    noise. NaN for fewer than two texts, or documents."""


def two_sets(sets: Sequence[Measure], draws: Sequence[Draws], documents: Sequence[Sequence[str | None]]) -> TwoSets:
    """Compare what taking out each head does on two sets of texts.

    Args:
        sets: the damage by each head on the first and on the second set.
        draws: of the texts of each; they must not have the same seed, or texts would be drawn in pairs.
        documents: of each text of each set; None where it is not known.

    Source: Michel et al. 2019, section 3.4 and figure 2, who give Pearson's correlation without an interval.
    """
    first, second = (of_set.over(np.ones((1, len(of)))) for of_set, of in zip(sets, documents))
    there = ~(np.isnan(first) | np.isnan(second))[0]
    drawn = [_drawn(of_set, of, there) for of_set, of in zip(sets, draws)]
    enough = all(of.n_units >= FEWEST_TEXTS for of in draws)

    def judged(of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Correlation:
        values = of(*drawn)
        known = values[~np.isnan(values)]
        low, high = np.quantile(known, [ALPHA / 2, 1 - ALPHA / 2]) if enough and len(known) else (np.nan, np.nan)
        value = of(first[:, there], second[:, there])[0]
        return Correlation(value=float(value), low=float(low), high=float(high))

    within = [_between_halves(of_set, of, there) for of_set, of in zip(sets, documents)]
    return TwoSets(
        changes=(first[0], second[0]),
        pearson=judged(correlation),
        spearman=judged(rank_correlation),
        within=(within[0], within[1]),
    )


def _drawn(of_set: Measure, draws: Draws, there: Bool[np.ndarray, "layer head"]) -> Float[np.ndarray, "corpus kept"]:
    """Damage by each head that is there in each drawn corpus."""
    chunks = np.array_split(draws.weights, max(1, len(draws.weights) // CHUNK))
    return np.concatenate([of_set.over(weights)[:, there] for weights in chunks])


def _between_halves(of_set: Measure, documents: Sequence[str | None], there: Bool[np.ndarray, "layer head"]) -> float:
    if Draws(documents, 1).n_units < FEWEST_TEXTS:
        return float("nan")
    half = halves(documents)
    of_halves = of_set.over(np.stack([half == 0, half == 1]).astype(float))[:, there]
    return float(correlation(of_halves[0], of_halves[1]))
