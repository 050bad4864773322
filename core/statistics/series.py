"""Series of numbers, one or an array for each text, of which a corpus of any size keeps sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.statistics.histogram import Bins

TAUS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Thresholds for which bets are kept; one more is placed against uniform attention on each text."""
Values = Mapping[str, np.ndarray]
"""Arrays "text *cell" of some texts by name of the series; NaN for missing numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Numbers of the same kind, one or an array for each text; NaN for missing ones."""

    values: Float[np.ndarray, "text *cell"]
    bins: Bins | None = None
    """Bins of the histogram; None for no histogram."""
    uniform: Float[np.ndarray, "text *of"] | None = None
    """Scores of uniform attention, without the axis of heads, if bets are placed on the numbers; otherwise None."""
