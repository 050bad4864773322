"""Intervals of mean scores by the bootstrap-t, for roles whose scores are too skewed for Student's t."""

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.statistics.means import half_interval, moments, ratio, times_drawn

RESAMPLES: Final = 999
LEAST_TEXTS: Final = 5
"""With fewer texts, resamples have too few different values of t, and the interval stays Student's."""
SAME: Final = 1e-9
"""A resample is constant if its squared deviations are at most this share of those of the texts."""


def with_syntactic_intervals(tests: HeadTests, scores: Float[np.ndarray, "text role layer head"]) -> HeadTests:
    """The tests with bootstrap-t intervals of the syntactic roles; nothing else changes."""
    low, high = tests.low.copy(), tests.high.copy()
    for index, role in enumerate(tests.roles):
        if role in SYNTACTIC:
            low[index], high[index] = bootstrap_t(scores[:, index], tests.settings.alpha)
    return replace(tests, low=low, high=high)


def bootstrap_t(
    scores: Float[np.ndarray, "text *cell"], alpha: float, seed: int = 0
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Two-sided 1 - alpha intervals of means by the studentised bootstrap, which follow the skew of the scores.

    For each resample of the texts with a score, t is its mean minus that of the texts, over its own standard error. The
    interval uses the quantiles of t where Student's uses those of the t distribution. Resamples that are constant (one
    text drawn every time, or texts of one score) have no t and are dropped: with 5 different scores 0.2% of them. With
    fewer than LEAST_TEXTS, and for a constant score, the interval is Student's.

    Args:
        scores: NaN where a text does not take part.
        alpha: intervals cover 1 - alpha.
        seed: of the draws; the same for every cell, so that a cell's interval does not depend on the others.

    Returns: lower and upper ends; NaN with fewer than 2 texts.
    Source: Efron and Tibshirani 1993, section 12.5; Hall 1988.
    """
    values = scores.reshape(len(scores), int(np.prod(scores.shape[1:]))).astype(np.float64)
    texts, mean, squares = moments(values)
    margin = half_interval(texts, squares, alpha)
    low, high = mean - margin, mean + margin
    patterns, pattern_of = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    for number, takes_part in enumerate(patterns.T):
        cells = np.flatnonzero((pattern_of.ravel() == number) & (squares > 0))
        if (n_texts := int(takes_part.sum())) >= LEAST_TEXTS and len(cells):
            ends = _quantiles_of_t(values[takes_part][:, cells], alpha, seed)
            error = np.sqrt(squares[cells] / (n_texts * (n_texts - 1)))
            low[cells], high[cells] = mean[cells] - ends[1] * error, mean[cells] - ends[0] * error
    return low.reshape(scores.shape[1:]), high.reshape(scores.shape[1:])


def _quantiles_of_t(
    values: Float[np.ndarray, "text cell"], alpha: float, seed: int
) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """The alpha / 2 and 1 - alpha / 2 quantiles of t over the resamples that are not constant."""
    n_texts = len(values)
    times = times_drawn(np.random.default_rng(seed), RESAMPLES, n_texts, n_texts)
    centred = values - values.mean(axis=0)
    mean = times @ centred / n_texts
    squares = times @ np.square(centred) - n_texts * np.square(mean)
    squares[squares <= SAME * np.square(centred).sum(axis=0)] = 0
    t = np.sort(ratio(mean, np.sqrt(squares / (n_texts * (n_texts - 1)))), axis=0)  # NaN last
    return _quantile(t, alpha / 2), _quantile(t, 1 - alpha / 2)


def _quantile(ordered: Float[np.ndarray, "resample cell"], level: float) -> Float[np.ndarray, " cell"]:
    """Quantile of the values before the NaN, by linear interpolation."""
    is_value: Bool[np.ndarray, "resample cell"] = ~np.isnan(ordered)
    position = level * (is_value.sum(axis=0) - 1)
    below = np.floor(position).astype(int)
    lower, upper = (
        np.take_along_axis(ordered, rows[None], axis=0)[0] for rows in (below, np.ceil(position).astype(int))
    )
    return lower + (position - below) * (upper - lower)
