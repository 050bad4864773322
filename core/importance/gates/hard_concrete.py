"""The hard concrete distribution of gates: samples, probabilities and density in closed form.

A gate is s = sigmoid((ln u - ln(1 - u) + log alpha) / TEMPERATURE) with uniform u, stretched from (0, 1) to STRETCH and
clipped to [0, 1], so that it is exactly 0 or exactly 1 with a probability above 0.
Source: Louizos, Welling and Kingma 2018, section 2.2.
"""

import math
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.importance.gates.settings import STRETCH, TEMPERATURE, TrainedGates

EDGE: Final = 1e-6
"""Noise, and the probabilities in the penalty, lie between this and 1 minus this."""


def sampled(log_alpha: Float[Tensor, "*gate"], noise: Float[Tensor, "*gate"]) -> Float[Tensor, "*gate"]:
    """Gates for uniform noise between 0 and 1."""
    return stretched(torch.sigmoid((torch.logit(noise) + log_alpha) / TEMPERATURE))


def without_noise(log_alpha: Float[Tensor, "*gate"]) -> Float[Tensor, "*gate"]:
    """Gates without noise, as used after training; without the temperature, as in the authors' code."""
    return stretched(torch.sigmoid(log_alpha))


def stretched(s: Float[Tensor, "*gate"]) -> Float[Tensor, "*gate"]:
    """Values between 0 and 1, stretched to STRETCH and clipped to [0, 1]."""
    low, high = STRETCH
    return (s * (high - low) + low).clamp(0, 1)


def p_zero(log_alpha: Float[Tensor, "*gate"]) -> Float[Tensor, "*gate"]:
    """Probability that a gate is exactly 0."""
    return _below(log_alpha, 0.0)


def p_one(log_alpha: Float[Tensor, "*gate"]) -> Float[Tensor, "*gate"]:
    """Probability that a gate is exactly 1."""
    return 1 - _below(log_alpha, 1.0)


def penalty(log_alpha: Float[Tensor, "*gate"]) -> Float[Tensor, ""]:
    """Expected number of gates that are not 0."""
    return (1 - p_zero(log_alpha)).clamp(EDGE, 1 - EDGE).sum()


def gates_of(log_alpha: Float[np.ndarray, "layer head"]) -> TrainedGates:
    """Gates and their probabilities from the parameters of all gates."""
    values = torch.from_numpy(log_alpha).double()
    return TrainedGates(
        log_alpha=values.numpy(),
        p_zero=p_zero(values).numpy(),
        p_one=p_one(values).numpy(),
        gate=without_noise(values).numpy(),
    )


def densities(
    log_alpha: Float[np.ndarray, " gate"], at: Float[np.ndarray, " point"]
) -> Float[np.ndarray, "gate point"]:
    """Density of each gate at points between 0 and 1; it integrates to 1 less the probabilities of both ends."""
    low, high = STRETCH
    points = torch.from_numpy(at).double()
    s = (points - low) / (high - low)
    below = _below(torch.from_numpy(log_alpha).double()[:, None], points)
    return (below * (1 - below) * TEMPERATURE / (s * (1 - s)) / (high - low)).numpy()


def _below(log_alpha: Tensor, at: Tensor | float) -> Tensor:
    """Probability that a gate, before clipping, is at most some number within STRETCH."""
    low, high = STRETCH
    s = (at - low) / (high - low)
    logit = torch.logit(s) if isinstance(s, Tensor) else math.log(s / (1 - s))
    return torch.sigmoid(TEMPERATURE * logit - log_alpha)
