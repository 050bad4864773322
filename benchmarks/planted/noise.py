"""Planted models whose weights are no longer exact: with noise, with blurred attention, or trained."""

from collections.abc import Callable
from typing import Final

import torch
from transformers import PreTrainedModel

from benchmarks.planted.hosts import is_norm
from benchmarks.planted.measured import loss
from benchmarks.planted.truth import Task

LEVELS: Final = (0.005, 0.01, 0.05, 0.12, 0.25)
"""Sizes of Gaussian noise."""
BEFORE_TRAINING: Final = 0.02
"""Size of the noise from which a training sets out."""
BLUR: Final = 0.1
"""Factor on the queries of a model whose attention is mixed with an even one."""
STEPS: Final = 40
MOST_ROUNDS: Final = 5
"""Of so many steps each; a training ends after the first at whose end the loss on new texts is below LEARNED."""
LEARNED: Final = 0.03
"""Nats."""
TRAINING_TEXTS: Final = 4
"""Of each step of a training."""
RATE: Final = 5e-4
"""Of learning, at first; falls to 0."""


@torch.no_grad()
def add_noise(model: PreTrainedModel, size: float, seed: int) -> None:
    """Adds Gaussian noise to all weights.

    Args:
        model: Is changed.
        size: Standard deviation, as a part of the root mean square of the weights that it is added to.
        seed: Decides the noise.
    """
    generator = torch.Generator().manual_seed(seed)
    parameters = dict(model.named_parameters())
    sizes = torch.stack([_rms(value) for name, value in parameters.items() if not is_norm(name)])
    usual = sizes[sizes > 0].median()
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


def train(model: PreTrainedModel, drawn: Callable[[], Task]) -> None:
    """Trains a model on its own task, in rounds of STEPS steps, until it has learned it; the norms stay as they are.

    Args:
        model: Is changed.
        drawn: Draws new texts, for each step.
    """
    for _ in range(MOST_ROUNDS):
        _train_round(model, drawn)
        with torch.no_grad():
            if loss(model, drawn()) < LEARNED:
                return


def _train_round(model: PreTrainedModel, drawn: Callable[[], Task]) -> None:
    trained = [value for name, value in model.named_parameters() if not is_norm(name)]
    for name, value in model.named_parameters():
        value.requires_grad_(not is_norm(name))
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=STEPS)
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model, drawn()).backward()
        optimizer.step()
        falling.step()
    model.eval().requires_grad_(True)
