"""Whether the same heads matter on two sets of texts. Does not import torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.importance.agreement import correlation, rank_correlation
from attention_sieve.core.importance.effects import FEWEST_TEXTS, Draws, halves
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.verdicts import ALPHA

Change = Float[np.ndarray, "layer head"]
CHUNK = 50
"""Number of bootstrap resamples processed at once, to bound memory use."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Correlation:
    """A correlation over heads."""

    value: float
    """NaN where all heads have the same change on one set."""
    low: float
    """95% percentile bootstrap interval, with independent resamples of the texts of each set; NaN for fewer than two
    texts, or documents, in one set."""
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoSets:
    """Effect of ablating each head on two sets of texts, and how well the two agree."""

    changes: tuple[Change, Change]
    """Damage on the first and on the second set; NaN for a removed head."""
    pearson: Correlation
    spearman: Correlation
    """Correlation of the ranks, which a few heads cannot dominate."""
    within: tuple[float, float]
    """Pearson's correlation between the two halves of each set: how much noise alone lowers it. NaN for fewer than two
    texts, or documents."""


def two_sets(sets: Sequence[Measure], draws: Sequence[Draws], documents: Sequence[Sequence[str | None]]) -> TwoSets:
    """Compare the effect of ablating each head on two sets of texts.

    Args:
        sets: the damage by each head on the first and on the second set.
        draws: of the texts of each; with different seeds, or texts would be drawn in pairs.
        documents: of each text of each set; None where unknown.

    Source: Michel et al. 2019, section 3.4 and figure 2, who give Pearson's correlation without an interval.
    """
    first, second = (measure.over(np.ones((1, len(names)))) for measure, names in zip(sets, documents))
    is_in_both = ~(np.isnan(first) | np.isnan(second))[0]
    resampled = [_resampled(measure, corpora, is_in_both) for measure, corpora in zip(sets, draws)]
    enough = all(corpora.n_units >= FEWEST_TEXTS for corpora in draws)

    def result(correlate: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Correlation:
        values = correlate(*resampled)
        defined = values[~np.isnan(values)]
        low, high = np.quantile(defined, [ALPHA / 2, 1 - ALPHA / 2]) if enough and len(defined) else (np.nan, np.nan)
        value = correlate(first[:, is_in_both], second[:, is_in_both])[0]
        return Correlation(value=float(value), low=float(low), high=float(high))

    within = [_between_halves(measure, names, is_in_both) for measure, names in zip(sets, documents)]
    return TwoSets(
        changes=(first[0], second[0]),
        pearson=result(correlation),
        spearman=result(rank_correlation),
        within=(within[0], within[1]),
    )


def _resampled(
    measure: Measure, draws: Draws, is_in_both: Bool[np.ndarray, "layer head"]
) -> Float[np.ndarray, "corpus kept"]:
    """Damage by each head that both checkpoints have, in each bootstrap resample."""
    chunks = np.array_split(draws.weights, max(1, len(draws.weights) // CHUNK))
    return np.concatenate([measure.over(weights)[:, is_in_both] for weights in chunks])


def _between_halves(
    measure: Measure, documents: Sequence[str | None], is_in_both: Bool[np.ndarray, "layer head"]
) -> float:
    if Draws(documents, 1).n_units < FEWEST_TEXTS:
        return float("nan")
    half = halves(documents)
    by_half = measure.over(np.stack([half == 0, half == 1]).astype(float))[:, is_in_both]
    return float(correlation(by_half[0], by_half[1]))
