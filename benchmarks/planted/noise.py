"""Planted models whose weights are no longer exact: with noise, with blurred attention, or trained."""

from typing import Final

import torch
from transformers import PreTrainedModel

from benchmarks.planted.hosts import is_norm
from benchmarks.planted.measured import loss
from benchmarks.planted.truth import Task

LEVELS: Final = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Standard deviation of Gaussian noise, as a part of the root mean square of the weights that it is added to."""
BLUR: Final = 0.12
"""Factor on the queries of a model whose attention is mixed with an even one."""
STEPS: Final = 60
RATE: Final = 1e-3


@torch.no_grad()
def add_noise(model: PreTrainedModel, level: int, seed: int) -> None:
    """Adds Gaussian noise to all weights.

    Args:
        model: Is changed.
        level: From 1 to 5.
        seed: Decides the noise.
    """
    generator, size = torch.Generator().manual_seed(seed), LEVELS[level - 1]
    parameters = dict(model.named_parameters())
    usual = torch.stack([_rms(value) for name, value in parameters.items() if not is_norm(name)]).median()
    for value in parameters.values():
        # Weights that are 0, such as the MLP's, get what the others get.
        scale = size * (_rms(value) if value.any() else usual)
        value += scale * torch.randn(value.shape, generator=generator)


def _rms(values: torch.Tensor) -> torch.Tensor:
    return values.square().mean().sqrt()


@torch.no_grad()
def blur(model: PreTrainedModel) -> None:
    """Lowers all attention scores, so that attention is mixed with an even one.

    Args:
        model: Is changed.
    """
    width = model.config.hidden_size
    for name, value in model.named_parameters():
        if "c_attn" in name:
            value[..., :width] *= BLUR
        elif ".query." in name or ".q_proj." in name:
            value *= BLUR


def train(model: PreTrainedModel, texts: list[Task]) -> None:
    """Trains a model on its own task, a step for each of the given tasks; the norms stay the identity.

    Args:
        model: Is changed.
        texts: Drawn anew for each step.
    """
    trained = [value for name, value in model.named_parameters() if not is_norm(name)]
    for name, value in model.named_parameters():
        value.requires_grad_(not is_norm(name))
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    model.train()
    for task in texts:
        optimizer.zero_grad()
        loss(model, task).backward()
        optimizer.step()
    model.eval().requires_grad_(True)
