"""Positions of the names of chosen heads: near their own marks, without overlap with others."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

MARK: Final = 18.0
"""Diameter of a mark with its number, in pixels."""
RING: Final = 24.0
"""The same for a chosen head."""
NAME: Final = (50.0, 15.0)
"""Width and height of a name in pixels: "L23 H15" in bold."""
REACHES: Final = (20, 26, 34, 42, 52, 64, 78, 94, 112, 132)
"""Candidate distances in pixels between the middles of a mark and its name; the smallest without overlap is used."""
N_DIRECTIONS: Final = 32


def name_places(
    marks: Float[np.ndarray, "head 2"],
    chosen: Sequence[int],
    half: Float[np.ndarray, " 2"],
    pixels: Sequence[float],
) -> Float[np.ndarray, "chosen 2"]:
    """The middle of each chosen head's name, such that it overlaps no mark and no other name.

    Args:
        marks: coordinates of each head relative to the middle of the picture, in any unit.
        chosen: the heads that are named, as rows of `marks`.
        half: half the visible width and height, in the same unit.
        pixels: pixels per unit for each possible size of the picture, the largest first; a name must not overlap in
            any of them.

    Returns: coordinates of each name, in the unit of `marks`. If every position overlaps, the one with the fewest
        overlaps.
    """
    # Offsets from a mark to its name in pixels, the nearest and uppermost first.
    directions = sorted(range(N_DIRECTIONS), key=lambda direction: min(direction, N_DIRECTIONS - direction))
    angles = 2 * np.pi * np.array(directions) / N_DIRECTIONS
    vectors = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    offsets = (np.array(REACHES)[:, None, None] * vectors).reshape(-1, 2) / pixels[0]
    placed: list[np.ndarray] = []
    for head in chosen:
        places = marks[head] + offsets
        overlaps = np.zeros(len(places))
        for scale in pixels:
            overlaps += (np.abs(places) + np.array(NAME) / 2 / scale > half).any(axis=-1) * len(marks)
            sizes = np.full(len(marks), MARK)
            sizes[list(chosen)] = RING
            overlaps += _n_overlaps(places, marks, sizes[:, None] + np.array(NAME), scale)
            if placed:
                overlaps += _n_overlaps(places, np.stack(placed), 2 * np.array(NAME), scale)
        placed.append(places[overlaps.argmin()])
    return np.stack(placed) if placed else np.empty((0, 2))


def line_ends(
    names: Float[np.ndarray, "chosen 2"], marks: Float[np.ndarray, "chosen 2"], pixels: float
) -> Float[np.ndarray, "chosen 2"]:
    """End of the line from each mark to its name, at the edge of the name; `pixels` per unit."""
    steps = marks - names
    shares = np.array(NAME) / 2 / pixels / np.maximum(np.abs(steps), 1e-9)
    return names + steps * np.minimum(shares.min(axis=1, keepdims=True), 1)


def _n_overlaps(
    places: Float[np.ndarray, "place 2"], others: Float[np.ndarray, "other 2"], sizes: np.ndarray, scale: float
) -> Float[np.ndarray, " place"]:
    """Number of others that a name would overlap at each place; `sizes` are the sums of both sizes, in pixels."""
    gaps = np.abs(places[:, None] - others) * scale
    return (2 * gaps < sizes).all(axis=-1).sum(axis=1).astype(float)
