"""The weights that each head's output goes through next, found by following that output, not by their name."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from core.attention.observed import check_heads_are_seen, observe
from core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from core.errors import AnalysisError
from core.importance.passes.head_outputs import BY_ZERO
from core.importance.passes.reuse import twin
from core.passes.batches import model_inputs
from core.passes.readout import model_of
from core.passes.texts import PassText


def output_projections(checkpoint: Checkpoint, text: PassText) -> Float[np.ndarray, "layer channel_out head channel"]:
    """Weights of the output projection of each layer, by head.

    Args:
        checkpoint: loaded.
        text: short, prepared for the kind of attention; what its heads give out is followed.

    Raises: AnalysisError for a checkpoint whose heads cannot be seen, or whose heads' outputs go elsewhere.
    """
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    attention, model = checkpoint.attentions[text.kind], twin(model_of(checkpoint, "output", text.kind))
    outputs: list[Tensor] = []
    weights: dict[int, Tensor] = {}

    def follow(module: Any, arguments: tuple[Any, ...]) -> None:
        taken = arguments[0]
        is_output = outputs and taken.numel() == outputs[-1].numel()
        if is_output and torch.equal(taken.flatten(), outputs[-1].to(taken).flatten()):
            weights.setdefault(len(outputs) - 1, module.weight if isinstance(module, nn.Linear) else module.weight.T)

    for module in model.modules():
        if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D":
            module.register_forward_pre_hook(follow)

    def remember(of_heads: Float[Tensor, "text query head channel"], _: Tensor) -> None:
        outputs.append(of_heads[:, :, _kept(len(outputs), attention)])

    observe(model, model_inputs(checkpoint, [text]), [], calls=attention.calls, on_output=remember)
    if len(weights) < attention.n_layers:
        raise AnalysisError(
            f"The output projection of {type(checkpoint.model).__name__} could not be found in "
            f"{attention.n_layers - len(weights)} of {attention.n_layers} layers, so measures by its weights are "
            "missing. Choose a checkpoint of another family, such as BERT."
        )
    return np.stack([_of_heads(weights[layer], layer, attention) for layer in range(attention.n_layers)])


def _kept(layer: int, attention: AttentionLayers) -> list[int]:
    return [head for head in range(attention.n_heads) if (layer, head) not in attention.removed]


def _of_heads(
    weights: Float[Tensor, "channel_out kept_channel"], layer: int, attention: AttentionLayers
) -> Float[np.ndarray, "channel_out head channel"]:
    """Weights by head; NaN for heads that were removed."""
    kept = _kept(layer, attention)
    size = weights.shape[1] // max(1, len(kept))
    by_head = np.full((len(weights), attention.n_heads, size), np.nan)
    by_head[:, kept] = weights.detach().double().cpu().numpy().reshape(len(weights), len(kept), -1)
    return by_head
