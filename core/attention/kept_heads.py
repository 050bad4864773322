"""Attention with some heads removed: the remaining heads of a module, and tiles with NaN for the removed ones."""

from dataclasses import replace
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from attention_sieve.core.attention.observers import OnOutput, Pass, Tile

KEPT_SDPA_NAME: Final = "attention_sieve_kept_heads"
"""SDPA for models whose layers share a position bias but have different heads removed."""
KEPT: Final = "kept_heads"
BY_HEAD: Final = ("probabilities", "row_sums", "indicator_sums", "entropy", "outputs")
"""Fields of a tile with an axis of heads."""


class KeptHeads:
    """Remaining heads of an attention module from which others were removed."""

    def __init__(self, heads: tuple[int, ...], n_heads: int) -> None:
        """Store the indices of the remaining heads, and the original number of heads."""
        self.heads, self.n_heads = heads, n_heads
        self._on: dict[torch.device, Int[Tensor, " kept"]] = {}

    def on(self, device: torch.device) -> Int[Tensor, " kept"]:
        """The indices as a tensor on a device, created once."""
        if device not in self._on:
            with torch.inference_mode(False):  # an inference tensor could not be used with gradients later
                self._on[device] = torch.tensor(self.heads, dtype=torch.long, device=device)
        return self._on[device]


def mark_kept(module: nn.Module, kept: KeptHeads) -> None:
    """Record the remaining heads of an attention module."""
    setattr(module, KEPT, kept)


def kept_heads(module: nn.Module) -> KeptHeads | None:
    """Remaining heads of an attention module; None if none was removed."""
    return getattr(module, KEPT, None)


def kept_of(values: Tensor, kept: KeptHeads | None, dim: int) -> Tensor:
    """Entries of the remaining heads along an axis of all heads; an axis of length 1 is unchanged."""
    if kept is None or values.shape[dim] == 1:
        return values
    return values.index_select(dim, kept.on(values.device))


def tile_with_holes(current: Pass, tile: Tile, kept: KeptHeads) -> Tile:
    """Expand a tile of the remaining heads to all heads, with NaN for the removed ones."""

    def spread(name: str) -> Tensor | None:
        values = getattr(tile, name)
        if values is None:
            return None
        shape = (values.shape[0], kept.n_heads, *values.shape[2:])
        scratch = current.buffer(f"{name} with holes", shape, values)
        target = values.new_empty(shape) if scratch is None else scratch
        return target.fill_(torch.nan).index_copy_(1, kept.on(values.device), values)

    by_head: dict[str, Any] = {name: spread(name) for name in BY_HEAD}
    return replace(tile, **by_head, kept=kept.heads)


def show_all(
    on_output: OnOutput,
    output: Float[Tensor, "text query kept_head channel"],
    values: Float[Tensor, "text kv_head key channel"],
    kept: KeptHeads | None,
) -> Float[Tensor, "text query kept_head channel"]:
    """Call on_output with outputs and values of all heads, 0 for those removed.

    Returns: the same outputs, computed from the tensor passed to on_output, so that gradients flow through it.
    """
    if kept is None:
        on_output(output, values)
        return output
    head_values = values.repeat_interleave(output.shape[2] // max(1, values.shape[1]), dim=1)
    indices = kept.on(output.device)
    shape = (*output.shape[:2], kept.n_heads, output.shape[3])
    all_outputs = output.new_zeros(shape).index_copy(2, indices, output)
    none = head_values.new_zeros((head_values.shape[0], kept.n_heads, *head_values.shape[2:]))
    on_output(all_outputs, none.index_copy(1, indices, head_values))
    return all_outputs.index_select(2, indices)


def kept_sdpa(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' SDPA with the position bias of the remaining heads."""
    bias = None if position_bias is None else kept_of(position_bias, kept_heads(module), 1)
    return sdpa_attention_forward(module, query, key, value, attention_mask, position_bias=bias, **kwargs)


AttentionInterface.register(KEPT_SDPA_NAME, kept_sdpa)
AttentionMaskInterface.register(KEPT_SDPA_NAME, sdpa_mask)
