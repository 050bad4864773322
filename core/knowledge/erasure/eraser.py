"""Affine maps that erase a concept from a vector, and random changes of the same rank and size."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

NO_COVARIANCE: Final = 1e-8
"""Singular value, relative to the spread of the concept, up to which a direction counts as uncorrelated with it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Eraser:
    """Removes directions from a vector's deviation from the mean: x - (x - mean) @ removed."""

    mean: Float[np.ndarray, " channel"]
    removed: Float[np.ndarray, "channel channel"]
    rank: int

    def __call__(self, vectors: Float[np.ndarray, "*row channel"]) -> Float[np.ndarray, "*row channel"]:
        """The vectors without these directions."""
        return vectors - (vectors - self.mean) @ self.removed

    def share(self, spread: Float[np.ndarray, "channel channel"]) -> float:
        """Mean square of the change, as a share of that of the deviations from the mean, of mean product `spread`."""
        return float(np.einsum("ij,ik,kj->", self.removed, spread, self.removed) / np.trace(spread))


def concept_eraser(vectors: Float[np.ndarray, "row channel"], targets: Float[np.ndarray, "row target"]) -> Eraser:
    """The map that changes vectors least such that no linear probe can predict the targets from them.

    Args:
        targets: share of each class in the label of each row, or the value of a regression.

    Source: Belrose et al. 2023 (LEACE), theorem 4.3; on the vectors that it is fitted to, the results have no
    covariance with the targets.
    """
    mean, sizes, axes = _axes(vectors)
    centred = targets - targets.mean(axis=0)
    covariance = (axes / np.sqrt(sizes)).T @ ((vectors - mean).T @ centred / len(vectors))
    directions, strengths, _ = np.linalg.svd(covariance, full_matrices=False)
    return _eraser(mean, sizes, axes, directions[:, strengths > NO_COVARIANCE * np.sqrt(np.square(centred).mean())])


def random_eraser(
    vectors: Float[np.ndarray, "row channel"],
    concept: Eraser,
    spread: Float[np.ndarray, "channel channel"],
    rng: np.random.Generator,
) -> Eraser:
    """A map that changes vectors by as much as the concept's eraser does, along as many random directions.

    The directions are drawn uniformly in the space of whitened vectors, and erased; this change is then multiplied by
    the number that makes its mean square that of the concept's. (Tilting the directions towards those of greater
    variance instead would make them the concept's own, where a concept takes most of it.)

    Args:
        vectors: as for `concept_eraser`.
        concept: sets the number of directions and the size of the change.
        spread: mean product of the deviations from the mean of the vectors that are to be changed.
    """
    if not concept.rank:
        return concept
    mean, sizes, axes = _axes(vectors)
    directions = np.linalg.qr(rng.standard_normal((len(sizes), concept.rank))).Q
    drawn = _eraser(mean, sizes, axes, directions)
    return replace(drawn, removed=drawn.removed * np.sqrt(concept.share(spread) / drawn.share(spread)))


def _axes(
    vectors: Float[np.ndarray, "row channel"],
) -> tuple[Float[np.ndarray, " channel"], Float[np.ndarray, " axis"], Float[np.ndarray, "channel axis"]]:
    """Mean of the vectors, their variances along the principal axes in which they vary, ascending, and these axes."""
    mean = vectors.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.cov(vectors, rowvar=False, bias=True).reshape(len(mean), len(mean)))
    varies = sizes > sizes[-1] * len(sizes) * np.finfo(float).eps
    return mean, sizes[varies], axes[:, varies]


def _eraser(
    mean: Float[np.ndarray, " channel"],
    sizes: Float[np.ndarray, " axis"],
    axes: Float[np.ndarray, "channel axis"],
    directions: Float[np.ndarray, "axis direction"],
) -> Eraser:
    """Erase orthonormal directions of the vectors that are whitened along their principal axes."""
    roots = np.sqrt(sizes)
    removed = ((axes * roots) @ directions @ directions.T @ (axes / roots).T).T
    return Eraser(mean=mean, removed=removed, rank=directions.shape[1])
