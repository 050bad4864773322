"""Weights of the output projection by head, located by tracing the heads' outputs and not by module name."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.head_outputs import BY_ZERO
from attention_sieve.core.importance.passes.reuse import copy_sharing_weights
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.readout import model_of
from attention_sieve.core.passes.texts import PassText


def output_projections(checkpoint: Checkpoint, text: PassText) -> Float[np.ndarray, "layer channel_out head channel"]:
    """Weights of the output projection of each layer, by head.

    Args:
        checkpoint: loaded.
        text: short, prepared for the kind of attention; the outputs of its heads are traced.

    Raises: AnalysisError if the outputs of heads cannot be observed, or do not reach a linear layer.
    """
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    attention = checkpoint.attentions[text.kind]
    model = copy_sharing_weights(model_of(checkpoint, "output", text.kind))
    outputs: list[Tensor] = []
    weights: dict[int, Tensor] = {}

    def trace(module: Any, arguments: tuple[Any, ...]) -> None:
        values = arguments[0]
        is_candidate = outputs and values.numel() == outputs[-1].numel()
        if is_candidate and torch.equal(values.flatten(), outputs[-1].to(values).flatten()):
            weights.setdefault(len(outputs) - 1, module.weight if isinstance(module, nn.Linear) else module.weight.T)

    for module in model.modules():
        if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D":
            module.register_forward_pre_hook(trace)

    def collect(head_outputs: Float[Tensor, "text query head channel"], _: Tensor) -> None:
        outputs.append(head_outputs[:, :, _remaining_heads(len(outputs), attention)])

    observe(model, model_inputs(checkpoint, [text]), [], calls=attention.calls, on_output=collect)
    present = [layer for layer, call in enumerate(attention.calls) if call is not None]
    if len(weights) < len(present):
        raise AnalysisError(
            f"The output projection of {type(checkpoint.model).__name__} could not be found in "
            f"{len(present) - len(weights)} of {len(present)} layers, so measures by its weights are "
            "missing. Choose a checkpoint of another family, such as BERT."
        )
    by_layer = {layer: _by_head(weights[layer], layer, attention) for layer in present}
    nothing = np.full_like(by_layer[present[0]], np.nan)
    return np.stack([by_layer.get(layer, nothing) for layer in range(attention.n_layers)])


def _remaining_heads(layer: int, attention: AttentionLayers) -> list[int]:
    return [head for head in range(attention.n_heads) if (layer, head) not in attention.removed]


def _by_head(
    weights: Float[Tensor, "channel_out kept_channel"], layer: int, attention: AttentionLayers
) -> Float[np.ndarray, "channel_out head channel"]:
    """Weights by head; NaN for heads that were removed."""
    heads = _remaining_heads(layer, attention)
    size = weights.shape[1] // max(1, len(heads))
    by_head = np.full((len(weights), attention.n_heads, size), np.nan)
    by_head[:, heads] = weights.detach().double().cpu().numpy().reshape(len(weights), len(heads), -1)
    return by_head
