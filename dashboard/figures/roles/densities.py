"""Kernel densities of scores, on the scale on which scores are drawn."""

from typing import Final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from attention_sieve.core.roles.measures import Scale

Density = tuple[Float[np.ndarray, "place"], Float[np.ndarray, "place"]]
"""Evenly spaced positions on the scale of the figure, and the density there."""
CELLS: Final = 513
"""Number of positions to which scores are rounded."""
STEP: Final = 4
"""The density is computed at every fourth position: few enough to send, enough for a smooth shape."""
REACH: Final = 4
"""Bandwidths beyond the outermost score up to which the density is computed; shapes end at the outermost score."""
LEAST_SPREAD: Final = 1e-6
"""Standard deviation of positions up to which scores count as one value, drawn as a dot."""
END: Final[dict[Scale, float]] = {"score": 0.0, "share": 1.0}
"""Limit of the positions: log(1 + score) is at least 0, a share at most 1."""
HALF_WIDTH: Final = 0.42
"""Maximum half width of a shape, where the distance to the next one is 1."""


def places_of(scores: ArrayLike, scale: Scale) -> Float[np.ndarray, " score"]:
    """Positions of scores: shares are unchanged, others are log(1 + score), mirrored at 0 for ends of intervals."""
    values = np.atleast_1d(np.asarray(scores, dtype=float))
    return values if scale == "share" else np.sign(values) * np.log1p(np.abs(values))


def density(values: Float[np.ndarray, "score"], scale: Scale = "score") -> Density | None:
    """Density of the positions of scores: Gaussian kernel with Scott's bandwidth, reflected at END to conserve mass.

    Args:
        values: scores from 0 upwards, or shares up to 1; not NaN.

    Returns: the density; None for fewer than 2 scores or equal scores.
    """
    places, end = places_of(values, scale), END[scale]
    if len(places) < 2 or places.std() <= LEAST_SPREAD:
        return None
    bandwidth = places.std(ddof=1) * len(places) ** -0.2
    low, high = places.min() - REACH * bandwidth, places.max() + REACH * bandwidth
    # A share of 1 can be greater by rounding.
    low, high = (max(low, end), high) if scale == "score" else (low, max(min(high, end), places.max()))
    cells = np.linspace(low, high, CELLS)
    # With counts by cell, the cost does not depend on the number of texts.
    counts = np.bincount(np.rint((places - cells[0]) / (cells[1] - cells[0])).astype(int), minlength=CELLS)
    positions = cells[::STEP]
    folded = (side - positions[:, None] for side in (cells, 2 * end - cells))
    kernel = sum(np.exp(-0.5 * np.square(distance / bandwidth)) for distance in folded)
    return positions, kernel @ counts / (len(places) * bandwidth * np.sqrt(2 * np.pi))


def outline(
    values: Float[np.ndarray, "score"], scale: Scale = "score"
) -> tuple[Float[np.ndarray, "place"], Float[np.ndarray, "place"]]:
    """Scores of a shape from the lowest to the highest, and half widths up to HALF_WIDTH; empty without a density."""
    curve = density(values, scale)
    if curve is None:
        return np.empty(0), np.empty(0)
    positions, heights = curve
    scores = positions if scale == "share" else np.expm1(positions)
    inside = (values.min() <= scores) & (scores <= values.max())
    return scores[inside], HALF_WIDTH * heights[inside] / heights.max()
