"""The parser that knows nothing but distance: the head of every word stands a fixed number of words from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

OFFSETS: Final = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Words from a dependent to the head that is predicted for it. A wider range than the authors', so a baseline at least
as hard to beat."""
AUTHORS_OFFSETS: Final = (-3, -2, -1, 1, 2)
"""Those of the authors' code, which tries 0, too: the word itself, which is never right."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Of the cases that it gets right."""
    shares: dict[int, float]
    """By offset."""


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offsets: Sequence[int] = OFFSETS
) -> Baseline:
    """The offset that is right most often; of several the nearest, and of these the one ahead.

    Args:
        distances: from each dependent to its head, in words; a root's head stands before its segment's first word.
        rooms: words before and after each dependent in its segment.
        offsets: to choose from.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in offsets}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return Baseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset gets right; past the segment's last word it predicts that, before the first a root."""
    before, after = rooms
    return np.clip(offset, -before - 1, after) == distances
