"""How gates are trained, and what is known of them afterwards; does not import torch."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from core.attention.settings import Kind
from core.errors import AnalysisError
from core.finetuning.settings import TrainingSettings

TEMPERATURE: Final = 0.33
STRETCH: Final = (-0.1, 1.1)
"""Of the hard concrete distribution; the numbers are those of Voita et al. 2019, their code."""


@dataclass(frozen=True)
class GateSettings(TrainingSettings):
    """How gates are trained.

    Raises: AnalysisError for a number out of range.
    """

    penalty: float = 0.02
    """Weight of the expected number of open gates in the loss: lambda in the paper, where it multiplies the sum over
    all heads; in the authors' code it multiplies the mean over layers of each layer's sum."""
    gate_rate: float = 0.1
    """Learning rate of the gates; `learning_rate` is that of the weights."""
    start: float = 2.0
    """Where every gate begins, as the logarithm of alpha: at 2, a gate is open with a probability of 0.94. The authors
    draw it around 0, where trained heads begin half closed."""
    with_weights: bool = False
    """Whether the weights are trained, too, as in the paper; else the gates alone."""
    kind: Kind = "self"
    """Of the attention that gets gates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, value, is_right, expected in (
            ("penalty", self.penalty, 0 <= self.penalty <= 100, "a number from 0 to 100"),
            ("learning rate of the gates", self.gate_rate, 0 < self.gate_rate <= 10, "a number above 0, up to 10"),
            ("start of the gates", self.start, -10 <= self.start <= 10, "a number from -10 to 10"),
        ):
            if not is_right:
                raise AnalysisError(f"The {what} is {value:,}. Give {expected}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedGates:
    """Gates after training."""

    log_alpha: Float[np.ndarray, "layer head"]
    """Their parameter; NaN for a head that was removed from the checkpoint."""
    p_zero: Float[np.ndarray, "layer head"]
    """Probability that a gate is exactly 0."""
    p_one: Float[np.ndarray, "layer head"]
    """Probability that a gate is exactly 1."""
    gate: Float[np.ndarray, "layer head"]
    """The gate without noise, 0 to 1, as used after training."""

    @property
    def n_open(self) -> int:
        """Number of heads whose gate without noise is above 0."""
        return int((self.gate > 0).sum())
