"""Baseline parser: predicts the head of every word at a fixed distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

OFFSETS: Final = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Offsets in words from a dependent to its predicted head. A wider range than the authors', so the baseline is at least
as strong."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Accuracy, 0 to 1."""
    shares: dict[int, float]
    """Accuracy of each offset."""


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offsets: Sequence[int] = OFFSETS
) -> Baseline:
    """The offset with the highest accuracy; ties are resolved in favour of the smaller, then the positive offset.

    Args:
        distances: from each dependent to its head, in words; the head of a root counts as before the first word.
        rooms: number of words before and after each dependent in its segment.
        offsets: the candidates.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in offsets}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return Baseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset predicts correctly; it is clipped to the last word, and means root before the first."""
    before, after = rooms
    return np.clip(offset, -before - 1, after) == distances
