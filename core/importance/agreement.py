"""Whether cheap measures order heads as ablation does. Does not import torch."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.importance.effects import ALPHA, Draws
from core.importance.measures import Measure


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """Spearman's correlation of a measure with ablation: over all heads, then over those of each layer (group)."""

    measure: str
    spearman: Float[np.ndarray, " group"]
    low: Float[np.ndarray, " group"]
    high: Float[np.ndarray, " group"]
    """95% interval: percentiles over corpora drawn from the texts, over which both are computed anew."""


def agreements(measures: list[Measure], ablation: Measure, draws: Draws) -> list[Agreement]:
    """Spearman's correlation of each measure with ablation.

    Resampled texts make both noisier than they are, so an interval may lie below the value over the corpus; it tells
    how far other texts like these would move it.

    Args:
        measures: which are compared.
        ablation: with which.
        draws: of the texts of both.
    """
    ones = np.ones((1, draws.weights.shape[1]))
    wanted, wanted_drawn = ablation.over(ones), ablation.over(draws.weights)
    compared = []
    for measure in measures:
        value = _spearman(measure.over(ones), wanted)[0]
        drawn = _spearman(measure.over(draws.weights), wanted_drawn)
        some = ~np.isnan(drawn).all(axis=0) & (draws.n_units > 1)
        low, high = np.full((2, len(value)), np.nan)
        low[some], high[some] = np.nanquantile(drawn[:, some], [ALPHA / 2, 1 - ALPHA / 2], axis=0)
        compared.append(Agreement(measure=measure.name, spearman=value, low=low, high=high))
    return compared


def _spearman(
    a: Float[np.ndarray, "corpus layer head"], b: Float[np.ndarray, "corpus layer head"]
) -> Float[np.ndarray, "corpus group"]:
    """Correlation over all heads, then over those of each layer; NaN where one side is the same for all."""
    n_corpora = len(a)
    whole = _rank_correlation(a.reshape(n_corpora, 1, -1), b.reshape(n_corpora, 1, -1))
    return np.concatenate([whole, _rank_correlation(a, b)], axis=1)


def _rank_correlation(
    a: Float[np.ndarray, "corpus group head"], b: Float[np.ndarray, "corpus group head"]
) -> Float[np.ndarray, "corpus group"]:
    """Within each group, over the heads that both sides have a value for."""
    there = ~np.isnan(a).all(axis=0) & ~np.isnan(b).all(axis=0)
    correlations = np.full(a.shape[:2], np.nan)
    for group, of_group in enumerate(there):
        if of_group.sum() > 1:
            correlations[:, group] = rank_correlation(a[:, group, of_group], b[:, group, of_group])
    return correlations


def rank_correlation(
    a: Float[np.ndarray, "corpus head"], b: Float[np.ndarray, "corpus head"]
) -> Float[np.ndarray, " corpus"]:
    """Spearman's, over heads; NaN where one side is the same for all."""
    from scipy.stats import rankdata

    ranks = [rankdata(values, axis=-1) for values in (a, b)]
    return correlation(*ranks)


def correlation(
    a: Float[np.ndarray, "*corpus head"], b: Float[np.ndarray, "*corpus head"]
) -> Float[np.ndarray, "*corpus"]:
    """Pearson's, over heads; NaN where one side is the same for all."""
    centred = [values - values.mean(axis=-1, keepdims=True) for values in (a, b)]
    spread = np.sqrt(np.square(centred[0]).sum(-1) * np.square(centred[1]).sum(-1))
    product = (centred[0] * centred[1]).sum(-1)
    return np.where(spread > 0, product / np.where(spread > 0, spread, 1), np.nan)
