"""Affine maps that erase a concept from a vector, and random ones of the same rank."""

from dataclasses import dataclass
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
    """Number of erased directions."""

    def __call__(self, vectors: Float[np.ndarray, "*row channel"]) -> Float[np.ndarray, "*row channel"]:
        """The vectors without these directions."""
        return vectors - (vectors - self.mean) @ self.removed


def concept_eraser(vectors: Float[np.ndarray, "row channel"], targets: Float[np.ndarray, "row target"]) -> Eraser:
    """The map that changes vectors least such that no linear probe can predict the targets from them.

    Args:
        vectors: to fit the map to.
        targets: share of each class in the label of each row, or the value of a regression.

    Source: Belrose et al. 2023 (LEACE), theorem 4.3; on the vectors that it is fitted to, the results have no
    covariance with the targets.
    """
    mean, whiten, unwhiten = _whitening(vectors)
    centred = targets - targets.mean(axis=0)
    covariance = whiten @ ((vectors - mean).T @ centred / len(vectors))
    directions, sizes, _ = np.linalg.svd(covariance, full_matrices=False)
    correlated = directions[:, sizes > NO_COVARIANCE * np.sqrt(np.square(centred).mean())]
    return _eraser(mean, whiten, unwhiten, correlated)


def random_eraser(vectors: Float[np.ndarray, "row channel"], rank: int, rng: np.random.Generator) -> Eraser:
    """An eraser of random directions, drawn uniformly in the space of whitened vectors.

    Args:
        vectors: as for `concept_eraser`.
        rank: number of directions; at most the number in which the vectors vary.
        rng: random number generator.
    """
    mean, whiten, unwhiten = _whitening(vectors)
    directions, _ = np.linalg.qr(whiten @ unwhiten @ rng.standard_normal((len(mean), rank)))
    return _eraser(mean, whiten, unwhiten, directions)


def _whitening(
    vectors: Float[np.ndarray, "row channel"],
) -> tuple[Float[np.ndarray, " channel"], Float[np.ndarray, "channel channel"], Float[np.ndarray, "channel channel"]]:
    """Mean of the vectors, and the square roots of their inverse covariance and of their covariance."""
    mean = vectors.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.cov(vectors, rowvar=False, bias=True).reshape(len(mean), len(mean)))
    varies = sizes > sizes[-1] * len(sizes) * np.finfo(float).eps
    roots = np.sqrt(np.where(varies, sizes, 1))
    return mean, (axes * np.where(varies, 1 / roots, 0)) @ axes.T, (axes * np.where(varies, roots, 0)) @ axes.T


def _eraser(
    mean: Float[np.ndarray, " channel"],
    whiten: Float[np.ndarray, "channel channel"],
    unwhiten: Float[np.ndarray, "channel channel"],
    directions: Float[np.ndarray, "channel direction"],
) -> Eraser:
    """Erase orthonormal directions of the whitened vectors."""
    removed = (unwhiten @ directions @ directions.T @ whiten).T
    return Eraser(mean=mean, removed=removed, rank=directions.shape[1])
