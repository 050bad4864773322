"""Weights of the output projection by head, located by tracing the heads' outputs and not by module name."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.spread import weight_in
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
    model = copy_sharing_weights(model_of(checkpoint, "output", text.kind))
    attention, by_layer = checkpoint.attentions[text.kind], {}
    for layer, module in projection_modules(checkpoint, model, text).items():
        by_layer[layer] = _by_head(weight_of(module), layer, attention)
    nothing = np.full_like(next(iter(by_layer.values())), np.nan)
    return np.stack([by_layer.get(layer, nothing) for layer in range(attention.n_layers)])


def projection_modules(checkpoint: Checkpoint, model: PreTrainedModel, text: PassText) -> dict[int, nn.Module]:
    """The output projection of each layer that has attention.

    Args:
        checkpoint: loaded.
        model: a copy of one of its models, to which nothing stays added.
        text: short, prepared for the kind of attention; the outputs of its heads are traced.

    Raises: AnalysisError if the outputs of heads cannot be observed, or do not reach a linear layer.
    """
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    attention = checkpoint.attentions[text.kind]
    outputs: list[Tensor] = []
    found: dict[int, nn.Module] = {}

    def trace(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        values = arguments[0]
        is_candidate = outputs and values.numel() == outputs[-1].numel()
        if is_candidate and torch.equal(values.flatten(), outputs[-1].to(values).flatten()):
            found.setdefault(len(outputs) - 1, module)

    def collect(head_outputs: Float[Tensor, "text query head channel"], _: Tensor) -> None:
        outputs.append(head_outputs[:, :, remaining_heads(len(outputs), attention)])

    hooks = [module.register_forward_pre_hook(trace) for module in model.modules() if is_linear(module)]
    observe(model, model_inputs(checkpoint, [text]), Pass(calls=attention.calls, on_output=collect))
    for hook in hooks:
        hook.remove()
    present = [layer for layer, call in enumerate(attention.calls) if call is not None]
    if len(found) < len(present):
        raise AnalysisError(
            f"The output projection of {type(checkpoint.model).__name__} could not be found in "
            f"{len(present) - len(found)} of {len(present)} layers, so measures by its weights are "
            "missing. Choose a checkpoint of another family, such as BERT."
        )
    return found


def is_linear(module: nn.Module) -> bool:
    """Whether it multiplies with weights, as Linear and the Conv1D of GPT-2 do."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def weight_of(module: Any) -> Float[Tensor, "channel_out channel_in"]:
    """The weights of an output projection, whichever way round its layer keeps them."""
    return weight_in(module) if isinstance(module, nn.Linear) else weight_in(module).T


def remaining_heads(layer: int, attention: AttentionLayers) -> list[int]:
    """Heads of a layer that were not removed."""
    return [head for head in range(attention.n_heads) if (layer, head) not in attention.removed]


def _by_head(
    weights: Float[Tensor, "channel_out kept_channel"], layer: int, attention: AttentionLayers
) -> Float[np.ndarray, "channel_out head channel"]:
    """Weights by head; NaN for heads that were removed."""
    heads = remaining_heads(layer, attention)
    size = weights.shape[1] // max(1, len(heads))
    by_head = np.full((len(weights), attention.n_heads, size), np.nan)
    by_head[:, heads] = weights.detach().double().cpu().numpy().reshape(len(weights), len(heads), -1)
    return by_head
