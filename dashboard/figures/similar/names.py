"""Where the names of chosen heads stand among the marks of all heads: beside their own, and over no other."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

MARK: Final = 18.0
"""Pixels that a mark takes across, with the number in it."""
RING: Final = 24.0
"""The same of a chosen head."""
NAME: Final = (50.0, 15.0)
"""Pixels that a name takes, across and down: "L23 H15" in bold."""
REACHES: Final = (20, 26, 34, 42, 52, 64, 78, 94, 112, 132)
"""Pixels from the middle of a mark to that of its name; the nearest place that is free is taken."""
N_DIRECTIONS: Final = 32


def name_places(
    marks: Float[np.ndarray, "head 2"],
    chosen: Sequence[int],
    half: Float[np.ndarray, " 2"],
    pixels: Sequence[float],
) -> Float[np.ndarray, "chosen 2"]:
    """The middle of each chosen head's name, where it lies over no mark and no other name.

    Args:
        marks: where each head is, from the middle of the picture, in any unit.
        chosen: the heads that are named, as rows of `marks`.
        half: what can be seen on each side of the middle, across and up, in the same unit.
        pixels: to a unit, in each of the sizes that the picture may have, the largest first; a name is free where it
            is in all of them.

    Returns: of each name, in the unit of `marks`. Where nothing around a head is free, its name lies over as few marks
        as can be.
    """
    around = _around() / pixels[0]
    taken: list[np.ndarray] = []
    for head in chosen:
        places = marks[head] + around
        hit = np.zeros(len(places))
        for scale in pixels:
            hit += (np.abs(places) + np.array(NAME) / 2 / scale > half).any(axis=-1) * len(marks)
            sizes = np.full(len(marks), MARK)
            sizes[list(chosen)] = RING
            hit += _n_over(places, marks, sizes[:, None] + np.array(NAME), scale)
            if taken:
                hit += _n_over(places, np.stack(taken), 2 * np.array(NAME), scale)
        taken.append(places[hit.argmin()])
    return np.stack(taken) if taken else np.empty((0, 2))


def line_ends(
    names: Float[np.ndarray, "chosen 2"], marks: Float[np.ndarray, "chosen 2"], pixels: float
) -> Float[np.ndarray, "chosen 2"]:
    """Where the line from each mark meets its name, which it stays clear of; `pixels` to a unit."""
    steps = marks - names
    shares = np.array(NAME) / 2 / pixels / np.maximum(np.abs(steps), 1e-9)
    return names + steps * np.minimum(shares.min(axis=1, keepdims=True), 1)


def _around() -> Float[np.ndarray, "place 2"]:
    """Steps from a mark to where its name may stand, in pixels, the nearest first and upwards first."""
    turns = sorted(range(N_DIRECTIONS), key=lambda turn: min(turn, N_DIRECTIONS - turn))
    angles = 2 * np.pi * np.array(turns) / N_DIRECTIONS
    towards = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return (np.array(REACHES)[:, None, None] * towards).reshape(-1, 2)


def _n_over(
    places: Float[np.ndarray, "place 2"], others: Float[np.ndarray, "other 2"], sizes: np.ndarray, scale: float
) -> Float[np.ndarray, " place"]:
    """Over how many others a name would lie at each place; `sizes` are those of both together, in pixels."""
    apart = np.abs(places[:, None] - others) * scale
    return (2 * apart < sizes).all(axis=-1).sum(axis=1).astype(float)
