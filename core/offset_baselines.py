"""The parser that knows nothing but distance: the head of every word stands a fixed number of words from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

OFFSETS: Final = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Words from a dependent to the head that is predicted for it. A wider range than the authors', so a baseline at least
as hard to beat."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Of the cases that it gets right."""
    shares: dict[int, float]
    """By offset."""


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, " case"], offsets: Sequence[int] = OFFSETS
) -> Baseline:
    """The offset that is right most often; of several the nearest, and of these the one ahead.

    Args:
        distances: from each dependent to its head, in words.
        rooms: words after each dependent in its segment; an offset that goes beyond them predicts the last word.
        offsets: to choose from.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in offsets}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return Baseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, " case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset gets right; before the segment's first word it predicts a root, which no case has."""
    return np.minimum(offset, rooms) == distances
