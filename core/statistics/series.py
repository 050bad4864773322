"""Series of numbers, one or an array for each text, of which a corpus of any size keeps sums and histograms.

Those of two sets of texts can be merged: a few numbers per head describe the whole corpus.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.statistics.means import ratio, refuse_infinite

BINS: Final = 128
AT_ONCE: Final = 1 << 21
"""Values that are binned at once."""
TAUS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Thresholds for which bets are kept; one more is placed against uniform attention on each text."""
Values = Mapping[str, np.ndarray]
"""Arrays "text *cell" of some texts by name of the series; NaN for missing numbers."""


@dataclass(frozen=True)
class Bins:
    """BINS of equal width between two values, on the scale of log(1 + value) or on a linear scale."""

    low: float
    high: float
    """Values outside are counted in the outermost bins."""
    is_logarithmic: bool

    @property
    def edges(self) -> Float[np.ndarray, " edge"]:
        """Edges of the bins, as values."""
        low, high = self._scaled(np.array([self.low, self.high]))
        positions = np.linspace(low, high, BINS + 1)
        return np.expm1(positions) if self.is_logarithmic else positions

    def of(self, values: Float[np.ndarray, "*value"]) -> Int[np.ndarray, "*value"]:
        """The bin of each value; BINS for NaN."""
        low, high = self._scaled(np.array([self.low, self.high]))
        with np.errstate(invalid="ignore"):
            position = (self._scaled(values) - low) * (BINS / (high - low))
            bins = np.clip(position, 0, BINS - 1).astype(np.int64)
        bins[np.isnan(values)] = BINS
        return bins

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        """Values on the scale whose bins are of equal width."""
        return np.log1p(np.maximum(values, self.low)) if self.is_logarithmic else values


SCORE_BINS: Final = Bins(0.0, 512.0, is_logarithmic=True)
"""Bins of scores, which are drawn on this scale: 5% of 1 + the score wide, which is 10% of a score of 1, 7% of 3 and 5%
of large ones."""
SHARE_BINS: Final = Bins(-1.0, 1.0, is_logarithmic=False)


def counts_of(values: Float[np.ndarray, "text *cell"], bins: Bins) -> Int[np.ndarray, "*cell bin"]:
    """Number of values of each cell in each bin; NaN is not counted."""
    shape = values.shape[1:]
    n_cells = int(np.prod(shape))
    offsets = np.arange(n_cells) * (BINS + 1)
    counts = np.zeros(n_cells * (BINS + 1), np.int64)
    step = max(1, AT_ONCE // max(1, n_cells))
    for start in range(0, len(values), step):
        numbers = bins.of(values[start : start + step].reshape(-1, n_cells))
        counts += np.bincount((numbers + offsets).ravel(), minlength=len(counts))
    return counts.reshape(*shape, BINS + 1)[..., :BINS]


def quantile(counts: Int[np.ndarray, " bin"], share: float, bins: Bins) -> float:
    """Quantile of a histogram, assuming a uniform distribution within each bin; NaN without values. The share of the
    median is 0.5."""
    if not counts.any():
        return float("nan")
    cumulative = np.concatenate([[0], np.cumsum(counts)])
    return float(np.interp(share * cumulative[-1], cumulative, bins.edges))


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """Sums of the values of each cell."""

    n: Int[np.ndarray, "*cell"]
    """Number of values."""
    total: Float[np.ndarray, "*cell"]
    squares: Float[np.ndarray, "*cell"]
    """Sum of squared deviations from the mean, which loses no digits if the mean is large."""
    least: Float[np.ndarray, "*cell"]
    """Minimum; infinite without values, like the maximum."""
    greatest: Float[np.ndarray, "*cell"]

    @property
    def mean(self) -> Float[np.ndarray, "*cell"]:
        """Mean; NaN without values."""
        return ratio(self.total, self.n)

    def at(self, index: int | slice | None) -> "Sums":
        """The sums of some of the cells, by an index of the first axis; None for a new first axis."""
        n, total, squares, least, greatest = self.parts
        return Sums(
            n=np.asarray(n[index]),
            total=np.asarray(total[index]),
            squares=np.asarray(squares[index]),
            least=np.asarray(least[index]),
            greatest=np.asarray(greatest[index]),
        )

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays in the order of the fields."""
        return self.n, self.total, self.squares, self.least, self.greatest


def no_sums(shape: tuple[int, ...]) -> Sums:
    """The sums of no values."""
    return Sums(
        n=np.zeros(shape, np.int64),
        total=np.zeros(shape),
        squares=np.zeros(shape),
        least=np.full(shape, np.inf),
        greatest=np.full(shape, -np.inf),
    )


def sums_of(values: Float[np.ndarray, "text *cell"]) -> Sums:
    """The sums of values that are not NaN.

    Raises: AnalysisError for an infinite value.
    """
    refuse_infinite(values)
    takes_part = ~np.isnan(values)
    n = np.asarray(takes_part.sum(axis=0), np.int64)
    total = np.asarray(values.sum(axis=0, dtype=np.float64, where=takes_part))
    deviations = values - ratio(total, n)
    return Sums(
        n=n,
        total=total,
        squares=np.asarray(np.square(deviations, out=deviations).sum(axis=0, where=takes_part)),
        least=np.asarray(values.min(axis=0, initial=np.inf, where=takes_part), np.float64),
        greatest=np.asarray(values.max(axis=0, initial=-np.inf, where=takes_part), np.float64),
    )


def merged(a: Sums, b: Sums) -> Sums:
    """Merge two sets of sums; counts and extremes are exact, sums up to float64 rounding.

    Source: Chan, Golub and LeVeque 1983, The American Statistician 37, for the squares.
    """
    n = a.n + b.n
    difference = np.where((a.n > 0) & (b.n > 0), b.mean - a.mean, 0.0)
    between = np.square(difference) * a.n * (b.n / np.maximum(n, 1))
    return Sums(
        n=n,
        total=a.total + b.total,
        squares=a.squares + b.squares + between,
        least=np.minimum(a.least, b.least),
        greatest=np.maximum(a.greatest, b.greatest),
    )


def with_zeros(sums: Sums, n_all: Int[np.ndarray, "..."]) -> Sums:
    """The sums with missing values counted as 0, except in cells without any value. `n_all` counts the values of each
    cell with the missing ones, broadcastable to the cells."""
    missing = np.where(sums.n > 0, np.maximum(n_all - sums.n, 0), 0)
    zeros = np.zeros(missing.shape)
    edge = np.where(missing > 0, 0.0, np.inf)
    return merged(sums, Sums(n=missing, total=zeros, squares=zeros, least=edge, greatest=-edge))


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Numbers of the same kind, one or an array for each text; NaN for missing ones."""

    values: Float[np.ndarray, "text *cell"]
    bins: Bins | None = None
    """Bins of the histogram; None for no histogram."""
    uniform: Float[np.ndarray, "text *of"] | None = None
    """Scores of uniform attention, without the axis of heads, if bets are placed on the numbers; otherwise None."""
