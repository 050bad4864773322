"""How well a model continues what it has seen, in one text and over several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyOutcomes:
    """How well a model predicts the copied tokens of a text; NaN in a text without any.

    The two numbers are the mean loss in nats, and the share of tokens to which it gives the highest probability.
    """

    n_copied: int
    full: Float[np.ndarray, "2"]
    """With no other heads off than those of the settings."""
    without: Float[np.ndarray, "layer head 2"]
    """With this head off, too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyScore:
    """The same over all copied tokens of some texts."""

    loss: float
    accuracy: float
    loss_without: Float[np.ndarray, "layer head"]
    """Loss with each head off, too."""


def copy_score(outcomes: Sequence[CopyOutcomes]) -> CopyScore:
    """The mean over all copied tokens of some texts, of which at least one has any."""
    weights = np.array([outcome.n_copied for outcome in outcomes], dtype=float)
    full, without = (
        np.average(np.nan_to_num([getattr(outcome, name) for outcome in outcomes]), axis=0, weights=weights)
        for name in ("full", "without")
    )
    return CopyScore(loss=float(full[0]), accuracy=float(full[1]), loss_without=without[..., 0])
