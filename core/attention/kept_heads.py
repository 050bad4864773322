"""Attention without some of its heads: which are left of a module, and tiles in which those removed are holes."""

from dataclasses import replace
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from core.attention.observers import OnOutput, Pass, Tile

KEPT_SDPA_NAME: Final = "attention_sieve_kept_heads"
"""SDPA for models that share a bias by position among layers from which different heads were removed."""
KEPT: Final = "kept_heads"
BY_HEAD: Final = ("probabilities", "row_sums", "indicator_sums", "entropy", "outputs")
"""Fields of a tile with an axis of heads."""


class KeptHeads:
    """Heads left of an attention from which others were removed."""

    def __init__(self, heads: tuple[int, ...], n_heads: int) -> None:
        """Take the indices of the heads left, and the number of heads before."""
        self.heads, self.n_heads = heads, n_heads
        self._on: dict[torch.device, Int[Tensor, " kept"]] = {}

    def on(self, device: torch.device) -> Int[Tensor, " kept"]:
        """Their indices on a device, copied there once."""
        if device not in self._on:
            with torch.inference_mode(False):  # made inside, it could not take part in a gradient later
                self._on[device] = torch.tensor(self.heads, dtype=torch.long, device=device)
        return self._on[device]


def mark_kept(module: nn.Module, kept: KeptHeads) -> None:
    """Record which heads are left of an attention module."""
    setattr(module, KEPT, kept)


def kept_heads(module: nn.Module) -> KeptHeads | None:
    """Heads left of an attention module; None if none was removed."""
    return getattr(module, KEPT, None)


def kept_of(values: Tensor, kept: KeptHeads | None, dim: int) -> Tensor:
    """Entries of the heads left along an axis of all heads; an axis of one entry, for all heads, stays as it is."""
    if kept is None or values.shape[dim] == 1:
        return values
    return values.index_select(dim, kept.on(values.device))


def tile_with_holes(current: Pass, tile: Tile, kept: KeptHeads) -> Tile:
    """A tile of the heads left as one of all heads, NaN for those removed."""

    def spread(name: str) -> Tensor | None:
        values = getattr(tile, name)
        if values is None:
            return None
        shape = (values.shape[0], kept.n_heads, *values.shape[2:])
        scratch = current.buffer(f"{name} with holes", shape, values)
        into = values.new_empty(shape) if scratch is None else scratch
        return into.fill_(torch.nan).index_copy_(1, kept.on(values.device), values)

    by_head: dict[str, Any] = {name: spread(name) for name in BY_HEAD}
    return replace(tile, **by_head, kept=kept.heads)


def show_all(
    on_output: OnOutput,
    output: Float[Tensor, "text query kept_head channel"],
    values: Float[Tensor, "text kv_head key channel"],
    kept: KeptHeads,
) -> Float[Tensor, "text query kept_head channel"]:
    """Call on_output with outputs and values of all heads, 0 for those removed.

    Returns: the same outputs, computed from what on_output was shown, so that its gradient is theirs.
    """
    of_head = values.repeat_interleave(output.shape[2] // max(1, values.shape[1]), dim=1)
    places = kept.on(output.device)
    shape = (*output.shape[:2], kept.n_heads, output.shape[3])
    every = output.new_zeros(shape).index_copy(2, places, output)
    none = of_head.new_zeros((of_head.shape[0], kept.n_heads, *of_head.shape[2:]))
    on_output(every, none.index_copy(1, places, of_head))
    return every.index_select(2, places)


def kept_sdpa(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' SDPA with the bias by position of the heads left."""
    bias = None if position_bias is None else kept_of(position_bias, kept_heads(module), 1)
    return sdpa_attention_forward(module, query, key, value, attention_mask, position_bias=bias, **kwargs)


AttentionInterface.register(KEPT_SDPA_NAME, kept_sdpa)
AttentionMaskInterface.register(KEPT_SDPA_NAME, sdpa_mask)
