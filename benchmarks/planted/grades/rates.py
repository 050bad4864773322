"""Shares with their intervals: of single statements, and over models, whose statements are not independent."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binomtest

from benchmarks.planted.grades.records import ModelGrades, Statement

RESAMPLES: Final = 2_000
LEVEL: Final = 0.95


@dataclass(frozen=True)
class Rate:
    """A share of statements."""

    found: int
    of: int
    low: float
    """Of its Clopper-Pearson interval; NaN of no statements."""
    high: float
    models: int
    """With a statement."""
    models_with: int
    """With a statement that is counted as found."""
    low_over_models: float
    """Of its interval over resampled models; NaN of no statements."""
    high_over_models: float

    @property
    def share(self) -> float:
        """The share, NaN of no statements."""
        return self.found / self.of if self.of else float("nan")


@dataclass(frozen=True)
class Mean:
    """A mean over models."""

    value: float
    """NaN without a model."""
    low: float
    high: float
    models: int


def rate(counts: Sequence[tuple[int, int]]) -> Rate:
    """The share of all, with intervals.

    Args:
        counts: Found, and of how many, by model.
    """
    kept = np.array([pair for pair in counts if pair[1]], int).reshape(-1, 2)
    found, of = kept.sum(axis=0).tolist()
    if not of:
        return Rate(0, 0, np.nan, np.nan, 0, 0, np.nan, np.nan)
    exact = binomtest(found, of).proportion_ci(LEVEL, method="exact")
    drawn = kept[_drawn(len(kept))].sum(axis=1)
    low, high = _ends(drawn[:, 0] / drawn[:, 1])
    return Rate(found, of, exact.low, exact.high, len(kept), int((kept[:, 0] > 0).sum()), low, high)


def mean_over(values: Iterable[float]) -> Mean:
    """The mean over models with its interval over resampled models, of those whose value is known."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return Mean(np.nan, np.nan, np.nan, 0)
    return Mean(float(known.mean()), *_ends(known[_drawn(len(known))].mean(axis=1)), len(known))


def rate_of(
    models: Sequence[ModelGrades],
    among: Callable[[Statement], bool],
    is_found: Callable[[Statement], bool],
) -> Rate:
    """The share of some statements of which something is so.

    Args:
        models: Whose statements count.
        among: Which statements.
        is_found: What is counted.
    """
    chosen = [[statement for statement in model.statements if among(statement)] for model in models]
    return rate([(sum(map(is_found, statements)), len(statements)) for statements in chosen])


def _drawn(n_models: int) -> Int[np.ndarray, "resample model"]:
    return np.random.default_rng(0).integers(n_models, size=(RESAMPLES, n_models))


def _ends(values: Float[np.ndarray, " resample"]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high
