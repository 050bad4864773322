"""Scores as smooth shapes: a kernel density on the scale on which scores are drawn."""

from typing import Final

import numpy as np
from jaxtyping import Float

Density = tuple[Float[np.ndarray, "place"], Float[np.ndarray, "place"]]
"""Places on the scale of log(1 + score), evenly spaced, and the density there."""
CELLS: Final = 513
"""Positions that scores are rounded to."""
STEP: Final = 4
"""The density is computed at every fourth of them, few enough to send and enough for a smooth shape."""
REACH: Final = 4
"""Bandwidths beyond the outermost score up to which the density is computed; shapes end at the outermost score."""
LEAST_SPREAD: Final = 1e-6
"""Standard deviation of log(1 + score) up to which scores are one value, drawn as a dot."""
HALF_WIDTH: Final = 0.42
"""Of a shape, where the next place is 1 away."""


def density(values: Float[np.ndarray, "score"]) -> Density | None:
    """Density of log(1 + score): Gaussian kernel with Scott's bandwidth, folded back at 0 so that no mass is lost.

    Args:
        values: scores, not NaN, from 0 upwards.

    Returns: the density; None where there are fewer than 2 scores or all are the same.
    """
    heights = np.log1p(values.astype(np.float64))
    if len(heights) < 2 or heights.std() <= LEAST_SPREAD:
        return None
    bandwidth = heights.std(ddof=1) * len(heights) ** -0.2
    cells = np.linspace(max(0, heights.min() - REACH * bandwidth), heights.max() + REACH * bandwidth, CELLS)
    # Counting by cell makes the cost independent of the number of texts.
    counts = np.bincount(np.rint((heights - cells[0]) / (cells[1] - cells[0])).astype(int), minlength=CELLS)
    places = cells[::STEP]
    folded = (sign * cells - places[:, None] for sign in (1, -1))
    kernel = sum(np.exp(-0.5 * np.square(distance / bandwidth)) for distance in folded)
    return places, kernel @ counts / (len(heights) * bandwidth * np.sqrt(2 * np.pi))


def outline(values: Float[np.ndarray, "score"]) -> tuple[Float[np.ndarray, "place"], Float[np.ndarray, "place"]]:
    """The shape that stands for some scores.

    Args:
        values: scores, not NaN, from 0 upwards.

    Returns: scores from the lowest to the highest, and how far the shape reaches out there, up to HALF_WIDTH; both
        empty where there is no density.
    """
    curve = density(values)
    if curve is None:
        return np.empty(0), np.empty(0)
    scores, heights = np.expm1(curve[0]), curve[1]
    inside = (values.min() <= scores) & (scores <= values.max())
    return scores[inside], HALF_WIDTH * heights[inside] / heights.max()
