"""Maps that erase a concept from a vector, and random ones of the same rank."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

NO_COVARIANCE: Final = 1e-8
"""Singular value, relative to the variance of the concept, up to which a direction counts as telling nothing of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Eraser:
    """Takes a part of a vector's distance from the mean away: x - (x - mean) @ removed."""

    mean: Float[np.ndarray, " channel"]
    removed: Float[np.ndarray, "channel channel"]
    rank: int
    """Directions that are erased."""

    def __call__(self, vectors: Float[np.ndarray, "*row channel"]) -> Float[np.ndarray, "*row channel"]:
        """The vectors without them."""
        return vectors - (vectors - self.mean) @ self.removed


def concept_eraser(vectors: Float[np.ndarray, "row channel"], targets: Float[np.ndarray, "row target"]) -> Eraser:
    """The map that changes vectors least and leaves no linear probe anything to tell the targets by.

    Args:
        vectors: that it is fitted to.
        targets: share of each class in the label of each row, or the value of a regression.

    Source: Belrose et al. 2023 (LEACE), theorem 4.3; on the vectors it is fitted to, the erased ones have no covariance
    with the targets.
    """
    mean, whiten, unwhiten = _whitening(vectors)
    centred = targets - targets.mean(axis=0)
    with_targets = whiten @ ((vectors - mean).T @ centred / len(vectors))
    left, sizes, _ = np.linalg.svd(with_targets, full_matrices=False)
    kept = left[:, sizes > NO_COVARIANCE * np.sqrt(np.square(centred).mean())]
    return _eraser(mean, whiten, unwhiten, kept)


def random_eraser(vectors: Float[np.ndarray, "row channel"], rank: int, rng: np.random.Generator) -> Eraser:
    """The same for random directions: as many, drawn evenly where the vectors vary alike in all of them.

    Args:
        vectors: as of `concept_eraser`.
        rank: number of directions; at most those in which the vectors vary.
        rng: draws them.
    """
    mean, whiten, unwhiten = _whitening(vectors)
    drawn, _ = np.linalg.qr(whiten @ unwhiten @ rng.standard_normal((len(mean), rank)))
    return _eraser(mean, whiten, unwhiten, drawn)


def _whitening(
    vectors: Float[np.ndarray, "row channel"],
) -> tuple[Float[np.ndarray, " channel"], Float[np.ndarray, "channel channel"], Float[np.ndarray, "channel channel"]]:
    """Mean of the vectors, and the roots of their inverse covariance and of their covariance."""
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
