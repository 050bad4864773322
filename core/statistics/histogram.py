"""Histograms of scores with the same bins for every corpus, so that those of two corpora can be added."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

BINS: Final = 128
AT_ONCE: Final = 1 << 21
"""Values that are binned at once."""


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
    """Quantile of a histogram, assuming a uniform distribution within each bin; NaN without values.

    Args:
        counts: counts of one cell.
        share: 0.5 for the median.
        bins: bins of the counts.
    """
    if not counts.any():
        return float("nan")
    cumulative = np.concatenate([[0], np.cumsum(counts)])
    return float(np.interp(share * cumulative[-1], cumulative, bins.edges))
