"""Sums of values from which means, intervals and tests follow; those of two sets of values can be merged.

So a few numbers per head describe a corpus of any size: the merged sums of its parts.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.statistics.means import ratio, refuse_infinite


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
    """The sums with missing values counted as 0, except in cells without any value.

    Args:
        sums: sums of the values.
        n_all: number of values of each cell including the missing ones, broadcastable to the cells.
    """
    missing = np.where(sums.n > 0, np.maximum(n_all - sums.n, 0), 0)
    zeros = np.zeros(missing.shape)
    edge = np.where(missing > 0, 0.0, np.inf)
    return merged(sums, Sums(n=missing, total=zeros, squares=zeros, least=edge, greatest=-edge))
