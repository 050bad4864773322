"""Training settings of gates, and gates after training; does not import torch."""

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.settings import TrainingSettings

TEMPERATURE: Final = 0.33
STRETCH: Final = (-0.1, 1.1)
"""Parameters of the hard concrete distribution, as in the code of Voita et al. 2019."""


@dataclass(frozen=True)
class GateSettings(TrainingSettings):
    """Training settings of gates.

    Raises: AnalysisError for a number out of range.
    """

    penalty: float = 0.02
    """Weight of the expected number of open gates in the loss: lambda in the paper, where it multiplies the sum over
    all heads; in the authors' code it multiplies the mean over layers of each layer's sum."""
    learning_rate: Annotated[float, "largest step size of the weights, where they are trained, too"] = 5e-5
    gate_rate: Annotated[float, "largest step size of the gates, which need about 50 steps to close"] = 0.1
    start: Annotated[float, "initial value of log alpha for every gate; higher means more open"] = 2.0
    """At 2, a gate is open with a probability of 0.94. The authors draw it around 0, where trained heads begin half
    closed."""
    with_weights: Annotated[bool, "train the weights of the model as well, as in the paper"] = False
    kind: Kind = "self"
    """Kind of attention that gets gates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, is_right, expected in (
            ("penalty", self.penalty, 0 <= self.penalty <= 100, "a number from 0 to 100"),
            ("learning rate of the gates", self.gate_rate, 0 < self.gate_rate <= 10, "a number above 0, up to 10"),
            ("start of the gates", self.start, -10 <= self.start <= 10, "a number from -10 to 10"),
        ):
            if not is_right:
                raise AnalysisError(f"The {name} is {value:,}. Give {expected}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedGates:
    """Gates after training."""

    log_alpha: Float[np.ndarray, "layer head"]
    """Parameter of each gate; NaN for a head that was removed from the checkpoint."""
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
