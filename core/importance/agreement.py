"""Whether cheap measures rank heads as ablation does. Does not import torch."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.verdicts import ALPHA

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

    Args:
        measures: to compare.
        ablation: the measure to compare them with.
        draws: bootstrap resamples of the texts of both.
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
    """Correlation within each group, over the heads for which both sides have a value."""
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
