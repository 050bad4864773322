"""The door into every model: its attention function, registered with transformers, and the observers of a pass.

Models that dispatch through `AttentionInterface` call `door` once per layer with query, key and value. It computes the
attention probabilities tile by tile, hands each tile to the observers of the pass, and lets the tile go: no T x T map
outlives its tile unless an observer keeps it.
"""

import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.masks import addend, door_mask

DOOR: Final = "attention_sieve"
TILE_ENTRIES: Final = 1 << 20
"""Probabilities held at once, heads included; about what a CPU's cache holds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tile:
    """Attention of some texts' consecutive queries to all keys, in one layer; valid only while it is being observed."""

    layer: int
    texts: slice
    """Rows of the batch."""
    queries: slice
    """Token positions of the queries."""
    probabilities: Float[Tensor, "text head query key"]
    """Each real row sums to 1; padded keys have 0."""
    indicator_sums: Float[Tensor, "text head query indicator"] | None
    """Attention summed over the keys of each indicator, where an observer has indicators."""
    entropy: Float[Tensor, "text head query"] | None
    """Row entropy in nats, where an observer wants it."""


@runtime_checkable
class Observer(Protocol):
    """Reduces tiles to what is asked for."""

    @property
    def indicators(self) -> Float[Tensor, "text key indicator"] | None:
        """Sets of keys, 1 inside; their sums ride in the product with the values. At most one observer has them."""

    @property
    def wants_entropy(self) -> bool:
        """Whether tiles shall carry the entropy of their rows."""

    def observe(self, tile: Tile) -> None:
        """Take what is needed from a tile; it must be neither kept nor changed."""


class MapObserver:
    """Keeps the whole attention of a batch of one text; for the one text that is on screen."""

    indicators = None
    wants_entropy = False

    def __init__(self) -> None:
        self._layers: dict[int, list[Tensor]] = {}

    def observe(self, tile: Tile) -> None:
        """Copy the tile."""
        self._layers.setdefault(tile.layer, []).append(tile.probabilities[0].clone())

    def attention(self) -> Float[Tensor, "layer head query key"]:
        """All maps seen, on the device of the pass."""
        return torch.stack([torch.cat(tiles, dim=1) for _, tiles in sorted(self._layers.items())])


class _LastLayerSeen(Exception):
    """Unwinds the forward pass once the last layer's attention has been observed."""


@dataclass(eq=False, kw_only=True)
class _Pass:
    """What one forward pass through the door carries from layer to layer."""

    observers: Sequence[Observer]
    last_layer: int | None
    layer: int = 0
    _buffers: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)
    _masks: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def buffer(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Scratch space reused by all tiles: fresh memory for each would cost page faults."""
        n = torch.Size(shape).numel()
        held = self._buffers.get((name, like.dtype))
        if held is None or held.numel() < n:
            held = self._buffers[name, like.dtype] = torch.empty(n, dtype=like.dtype, device=like.device)
        return held[:n].view(shape)

    def additive(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        """The mask as numbers to add; made once per pass, since all layers get the same one."""
        held = self._masks.get(id(mask))
        if held is None:
            held = self._masks[id(mask)] = (mask, addend(mask, dtype))
        return held[1]


_current: ContextVar[_Pass | None] = ContextVar("attention_pass", default=None)


def door(
    module: torch.nn.Module,
    query: Float[Tensor, "batch head query channel"],
    key: Float[Tensor, "batch kv_head key channel"],
    value: Float[Tensor, "batch kv_head key value_channel"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Float[Tensor, "batch query head value_channel"], None]:
    """Scaled dot-product attention whose probabilities the observers of the current pass see.

    Softmax and sums run in float32 (float64 for float64 models). Outside a pass it is transformers' own SDPA.
    """
    current = _current.get()
    if current is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    # Query and key come as views of "text token head channel"; the products would copy them anew for every tile.
    scaled = query.to(dtype).contiguous() * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    repeats = query.shape[1] // key.shape[1]
    keys = key.to(dtype).repeat_interleave(repeats, 1).contiguous().transpose(-1, -2)
    values = value.to(dtype).repeat_interleave(repeats, 1)
    mask = None if attention_mask is None else current.additive(attention_mask, dtype)
    output = _attend(current, scaled, keys, values, mask)
    if current.layer == current.last_layer:
        raise _LastLayerSeen
    current.layer += 1
    return output.to(query.dtype), None


def _attend(
    current: _Pass, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
) -> Float[Tensor, "text query head value_channel"]:
    """One layer's attention, tile by tile; returns the output of each head."""
    n_texts, n_heads, n_queries, _ = query.shape
    n_channels = values.shape[-1]
    indicators = next((o.indicators for o in current.observers if o.indicators is not None), None)
    if indicators is not None:
        per_head = indicators[:, None].to(values.dtype).expand(-1, n_heads, -1, -1)
        values = torch.cat([values, per_head], dim=-1)
    # Laid out as the model goes on with it, so that it is not copied again.
    output = query.new_empty((n_texts, n_queries, n_heads, n_channels))
    for texts, queries in _tiles(n_texts, n_heads, n_queries, keys.shape[-1]):
        logits, probabilities = _softmax_tile(current, query[texts, :, queries], keys[texts], mask, texts, queries)
        product = probabilities @ values[texts]
        output[texts, queries] = product[..., :n_channels].transpose(1, 2)
        tile = Tile(
            layer=current.layer,
            texts=texts,
            queries=queries,
            probabilities=probabilities,
            indicator_sums=None if indicators is None else product[..., n_channels:],
            entropy=_entropy(logits, probabilities) if any(o.wants_entropy for o in current.observers) else None,
        )
        for observer in current.observers:
            observer.observe(tile)
    return output


def _tiles(n_texts: int, n_heads: int, n_queries: int, n_keys: int) -> Iterator[tuple[slice, slice]]:
    """Whole texts while they fit into a tile, else blocks of queries of one text."""
    for texts in _even_slices(n_texts, TILE_ENTRIES // (n_heads * n_queries * n_keys)):
        for queries in _even_slices(n_queries, TILE_ENTRIES // (n_heads * n_keys)):
            yield texts, queries


def _even_slices(n: int, at_most: int) -> Iterator[slice]:
    """As few slices as possible, of like length: a last tile of two queries costs nearly as much as a full one."""
    n_slices = math.ceil(n / max(1, at_most))
    for i in range(n_slices):
        yield slice(n * i // n_slices, n * (i + 1) // n_slices)


def _softmax_tile(
    current: _Pass, query: Tensor, keys: Tensor, mask: Tensor | None, texts: slice, queries: slice
) -> tuple[Tensor, Tensor]:
    shape = (*query.shape[:3], keys.shape[-1])
    logits = torch.matmul(query, keys, out=current.buffer("logits", shape, query))
    if mask is not None:
        rows = mask[texts] if mask.shape[0] > 1 else mask
        logits += rows[:, :, queries] if rows.shape[2] > 1 else rows
    return logits, torch.softmax(logits, -1, out=current.buffer("probabilities", shape, query))


def _entropy(logits: Tensor, probabilities: Tensor) -> Float[Tensor, "text head query"]:
    """Entropy of each row in nats, without a logarithm per entry; overwrites the logits.

    log p = logit - logsumexp, so H = logsumexp - sum(p * logit), and logsumexp is read off at each row's maximum.
    """
    logsumexp = logits.amax(-1) - probabilities.amax(-1).log()
    return logsumexp - torch.mul(probabilities, logits, out=logits).sum(-1)


def observe(
    model: PreTrainedModel,
    ids: Int[Tensor, "text token"],
    attention_mask: Int[Tensor, "text token"] | None,
    type_ids: Int[Tensor, "text token"] | None,
    observers: Sequence[Observer],
    *,
    last_layer: int | None = None,
) -> Any:
    """One forward pass through the door.

    Args:
        model: set to the door (`attn_implementation=DOOR`), in evaluation mode.
        ids, attention_mask, type_ids: the batch; no mask when nothing is padded, no type ids when the model has none.
        observers: see every tile of every layer, in order.
        last_layer: stop once this layer's attention has been observed; its output is then not computed.

    Returns: the model's output, or None when stopped.

    Raises: RuntimeError for a model in training mode, whose dropout would falsify what is observed.
    """
    if model.training:
        raise RuntimeError("The model is in training mode; call model.eval() before observing its attention.")
    arguments = {"input_ids": ids, "attention_mask": attention_mask, "token_type_ids": type_ids}
    token = _current.set(_Pass(observers=observers, last_layer=last_layer))
    try:
        with torch.inference_mode():
            return model(**{name: value for name, value in arguments.items() if value is not None})
    except _LastLayerSeen:
        return None
    finally:
        _current.reset(token)


AttentionInterface.register(DOOR, door)
AttentionMaskInterface.register(DOOR, door_mask)
