"""Whether measures rank heads alike: cheap ones and ablation, or ablation on two sets of texts. Imports no torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.importance.effects import FEWEST_TEXTS, Draws, halves
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.verdicts import ALPHA

Change = Float[np.ndarray, "layer head"]
CHUNK = 50
"""Number of bootstrap resamples processed at once, to bound memory use."""
NO_ORDER: Final = (
    "The metric is the same whichever head is switched off, so ablation puts the heads in no order that other "
    "measures could agree with. Take more texts, or a metric that changes in small steps, such as the loss."
)
"""Said in place of correlations that are NaN because ablation gives every head the same value."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """Spearman's correlation of a measure with ablation: over all heads, then over the heads of each layer (group)."""

    measure: str
    spearman: Float[np.ndarray, " group"]
    low: Float[np.ndarray, " group"]
    high: Float[np.ndarray, " group"]
    """95% percentile bootstrap interval over texts; both measures are recomputed on each resample."""


def agreements(measures: list[Measure], ablation: Measure, draws: Draws) -> list[Agreement]:
    """Spearman's correlation of each measure with ablation.

    Resampling adds noise to both measures, so an interval may lie below the value over the corpus; it shows how much
    the value would vary with other texts like these.
    """
    ones = np.ones((1, draws.weights.shape[1]))
    by_ablation, by_ablation_resampled = ablation.over(ones), ablation.over(draws.weights)
    results = []
    for measure in measures:
        value = _spearman(measure.over(ones), by_ablation)[0]
        resampled = _spearman(measure.over(draws.weights), by_ablation_resampled)
        usable = ~np.isnan(resampled).all(axis=0) & (draws.n_units > 1)
        low, high = np.full((2, len(value)), np.nan)
        if usable.any():
            low[usable], high[usable] = np.nanquantile(resampled[:, usable], [ALPHA / 2, 1 - ALPHA / 2], axis=0)
        results.append(Agreement(measure=measure.name, spearman=value, low=low, high=high))
    return results


def _spearman(
    a: Float[np.ndarray, "corpus layer head"], b: Float[np.ndarray, "corpus layer head"]
) -> Float[np.ndarray, "corpus group"]:
    """Correlation over all heads, then over those of each layer; NaN where one side is constant."""
    n_corpora = len(a)
    over_all = _rank_correlation(a.reshape(n_corpora, 1, -1), b.reshape(n_corpora, 1, -1))
    return np.concatenate([over_all, _rank_correlation(a, b)], axis=1)


def _rank_correlation(
    a: Float[np.ndarray, "corpus group head"], b: Float[np.ndarray, "corpus group head"]
) -> Float[np.ndarray, "corpus group"]:
    has_value = ~np.isnan(a).all(axis=0) & ~np.isnan(b).all(axis=0)
    correlations = np.full(a.shape[:2], np.nan)
    for group, heads in enumerate(has_value):
        if heads.sum() > 1:
            correlations[:, group] = rank_correlation(a[:, group, heads], b[:, group, heads])
    return correlations


def rank_correlation(
    a: Float[np.ndarray, "corpus head"], b: Float[np.ndarray, "corpus head"]
) -> Float[np.ndarray, " corpus"]:
    """Spearman's correlation over heads; NaN where one side is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(values, axis=-1) for values in (a, b)]
    return correlation(*ranks)


def correlation(
    a: Float[np.ndarray, "*corpus head"], b: Float[np.ndarray, "*corpus head"]
) -> Float[np.ndarray, "*corpus"]:
    """Pearson's correlation over heads; NaN where one side is constant."""
    centred = [values - values.mean(axis=-1, keepdims=True) for values in (a, b)]
    spread = np.sqrt(np.square(centred[0]).sum(-1) * np.square(centred[1]).sum(-1))
    product = (centred[0] * centred[1]).sum(-1)
    return np.where(spread > 0, product / np.where(spread > 0, spread, 1), np.nan)


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
