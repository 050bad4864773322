"""Heads that look at a distance through rotary position embeddings, which have no code of a position to compare."""

from functools import cache
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor

from benchmarks.planted.stream import POSITIONS

THETA: Final = 1e9
"""Base of the frequencies: the slow half turns by less than a hundredth of a radian over all positions."""
N_FAST: Final = 30
"""Pairs of dimensions whose turning tells distances; the slower ones compare what tokens hold."""
GREATEST_SUM: Final = 4.0
"""Of the moduli of a head's weights on cosines and sines; what more would sharpen, noise would blur."""
NEAR: Final = 4
"""A head that avoids its own position may avoid distances below this one, too: it finds no copy that is so near."""


class Rotary:
    """The dimensions of a head as rotary embeddings turn them: dimension i with dimension i + size / 2."""

    def __init__(self, size: int) -> None:
        self.size = size

    def fast(self) -> list[int]:
        """The first dimension of each pair whose turning tells distances; a key holds 1 there."""
        return list(range(N_FAST))

    def slow(self) -> list[int]:
        """The dimensions that hardly turn, those that turn least first."""
        half = self.size // 2
        return [first + part for first in range(half - 1, N_FAST - 1, -1) for part in (0, half)]

    def query(self, distance: int, *, is_avoided: bool) -> Float[Tensor, " size"]:
        """The query that scores 1 with the key so many tokens back and less with all others, or -1 and about 0."""
        cosines, sines, _ = distance_weights(self.size, distance, is_avoided)
        query = torch.zeros(self.size)
        query[:N_FAST] = torch.tensor(cosines)
        query[self.size // 2 : self.size // 2 + N_FAST] = -torch.tensor(sines)
        return query


@cache
def distance_weights(
    size: int, distance: int, is_avoided: bool
) -> tuple[Float[np.ndarray, " pair"], Float[np.ndarray, " pair"], float]:
    """Weights on cosines and sines of the distance between query and key, by a linear program.

    Args:
        size: Dimensions of a head.
        distance: Tokens back.
        is_avoided: Score the key at the distance -1 and others 0, not it 1 and others as little as can be.

    Returns: Weights of the cosines, of the sines, and the greatest score at another distance; when avoided, the
        greatest modulus at one that is not near.
    """
    turning = THETA ** (-np.arange(N_FAST) / (size / 2))
    angles = np.outer(np.arange(POSITIONS), turning)
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    others = np.delete(waves, distance, axis=0)
    n = waves.shape[1]
    # Each weight is the difference of two that are not negative; the last variable is the greatest other score.
    rows = [np.hstack([others, -others, -np.ones((len(others), 1))])]
    if is_avoided:
        far = waves[distance + NEAR :]
        rows.append(np.hstack([-far, far, -np.ones((len(far), 1))]))
    rows.append(np.hstack([np.ones((1, 2 * n)), np.zeros((1, 1))]))
    bounds = [0.0] * (sum(map(len, rows)) - 1) + [GREATEST_SUM]
    equal = np.hstack([waves[distance], -waves[distance], 0])[None]
    found = linprog(
        np.r_[np.zeros(2 * n), 1], np.vstack(rows), bounds, equal, [-1.0 if is_avoided else 1.0],
        bounds=[(0, None)] * (2 * n) + [(None, None)],
    )  # fmt: skip
    weights = found.x[:n] - found.x[n : 2 * n]
    return weights[:N_FAST].astype(np.float32), weights[N_FAST:].astype(np.float32), float(found.x[-1])
