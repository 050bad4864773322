"""What is seen of a pass: tiles of attention, the observers that reduce them, and the pass that carries them."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.masks import TileMask
from core.passes import Window


@dataclass(frozen=True, eq=False, kw_only=True)
class Tile:
    """Attention of some texts' consecutive queries, in one layer; valid only while it is being observed."""

    layer: int
    texts: slice
    """Rows of the batch."""
    queries: slice
    """Token positions of the queries."""
    probabilities: Float[Tensor, "text head query key"]
    """As the model uses them: padded keys have 0. Keys from the first on; in a causal model those of the future may be
    left away."""
    row_sums: Float[Tensor, "text head query"] | None
    """Sums of the rows in a model with attention sinks, which take the rest; None where every real row sums to 1."""
    indicator_sums: Float[Tensor, "text head query indicator"] | None
    """Attention summed over the keys of each indicator, where an observer has indicators."""
    entropy: Float[Tensor, "text head query"] | None
    """Entropy in nats of each row, as shares of its sum, where an observer wants it."""
    outputs: Float[Tensor, "text head query channel"] | None
    """What each head hands to the output projection, its gate included, where an observer wants it."""
    mask: TileMask | None = None
    """What hides keys in this layer, as far as transformers made it."""


@runtime_checkable
class Observer(Protocol):
    """Reduces tiles to what is asked for."""

    @property
    def indicators(self) -> Float[Tensor, "text key indicator"] | None:
        """Sets of keys, 1 inside; their sums ride in the product with the values. At most one observer has them."""

    @property
    def wants_entropy(self) -> bool:
        """Whether tiles shall carry the entropy of their rows."""

    @property
    def wants_outputs(self) -> bool:
        """Whether tiles shall carry the outputs of the heads."""

    def observe(self, tile: Tile) -> None:
        """Take what is needed from a tile; it must be neither kept nor changed."""


OnOutput = Callable[[Float[Tensor, "text query head channel"], Float[Tensor, "text kv_head key channel"]], None]
"""Takes what the heads of a watched layer hand to the output projection, and the values it is made from."""


class WatchingDone(Exception):
    """Unwinds the forward pass once the last attention that is watched has been observed."""


@dataclass(eq=False, kw_only=True)
class Pass:
    """What one forward pass through the door carries from one attention to the next."""

    observers: Sequence[Observer] = ()
    layers: Mapping[int, int] | None = field(default_factory=dict)
    """Layer by the number of the call, for the calls that are watched; None watches all, numbered as layers."""
    stops: bool = False
    """Whether to unwind after the last watched call."""
    gates: Float[Tensor, "layer head"] | None = None
    on_output: OnOutput | None = None
    n_calls: int = 0
    _buffers: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)

    def next_layer(self) -> int | None:
        """Count a call of attention; its layer, None where it is not watched."""
        call = self.n_calls
        self.n_calls += 1
        return call if self.layers is None else self.layers.get(call)

    def ends_at(self, layer: int | None) -> bool:
        """Whether nothing after a layer's attention is asked for."""
        return self.stops and self.layers is not None and layer == max(self.layers.values())

    def indicators(self) -> Float[Tensor, "text key indicator"] | None:
        """The sets of keys whose sums are wanted."""
        return next((o.indicators for o in self.observers if o.indicators is not None), None)

    def buffer(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """Scratch space reused by all tiles: fresh memory for each would cost page faults; None for gradients."""
        if torch.is_grad_enabled():
            return None
        n = torch.Size(shape).numel()
        held = self._buffers.get((name, like.dtype))
        if held is None or held.numel() < n:
            held = self._buffers[name, like.dtype] = torch.empty(n, dtype=like.dtype, device=like.device)
        return held[:n].view(shape)

    def show(
        self,
        layer: int,
        texts: slice,
        queries: slice,
        probabilities: Tensor,
        entropy: Callable[[], Tensor],
        mask: TileMask | None = None,
        **rest: Tensor | None,
    ) -> None:
        """Hand a tile to every observer."""
        tile = Tile(
            layer=layer,
            texts=texts,
            queries=queries,
            probabilities=probabilities,
            mask=mask,
            entropy=entropy() if any(o.wants_entropy for o in self.observers) else None,
            **rest,
        )
        for observer in self.observers:
            observer.observe(tile)


class MapObserver:
    """Keeps the attention of one text of a batch: entry by entry in a window, averaged over blocks as a whole."""

    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(self, row: int, n_queries: int, n_keys: int, window: Window | None = None, block: int = 0) -> None:
        """Say what to keep.

        Args:
            row: place of the text in the batch.
            n_queries, n_keys: its tokens, without padding.
            window: what is kept entry by entry; None for all.
            block: tokens of a block, for queries and keys; 0 keeps no averages.
        """
        self._row, self._n_queries, self._n_keys, self._block = row, n_queries, n_keys, block
        self._window = window or Window((0, n_queries), (0, n_keys))
        self._maps: dict[int, Tensor] = {}
        self._sums: dict[int, Tensor] = {}

    def observe(self, tile: Tile) -> None:
        """Copy what lies in the window, and add up blocks."""
        if not tile.texts.start <= self._row < tile.texts.stop:
            return
        queries = slice(tile.queries.start, min(tile.queries.stop, self._n_queries))
        attention = tile.probabilities[self._row - tile.texts.start, :, : queries.stop - queries.start, : self._n_keys]
        if queries.start < queries.stop:
            self._copy(tile.layer, queries, attention)
            if self._block:
                self._add_blocks(tile.layer, queries, attention)

    def _copy(self, layer: int, queries: slice, attention: Float[Tensor, "head query key"]) -> None:
        (first, last), (left, right) = self._window.queries, self._window.keys
        if layer not in self._maps:
            self._maps[layer] = attention.new_zeros((len(attention), last - first, right - left))
        kept = self._maps[layer]
        start, stop = max(first, queries.start), min(last, queries.stop)
        inside = attention[:, start - queries.start : max(start, stop) - queries.start, left:right]
        kept[:, start - first : max(start, stop) - first, : inside.shape[-1]] = inside

    def _add_blocks(self, layer: int, queries: slice, attention: Float[Tensor, "head query key"]) -> None:
        if layer not in self._sums:
            sizes = (len(attention), -(-self._n_queries // self._block), -(-self._n_keys // self._block))
            self._sums[layer] = attention.new_zeros(sizes)
        sums = self._sums[layer]
        n_blocks = -(-attention.shape[-1] // self._block)
        padded = torch.nn.functional.pad(attention, (0, n_blocks * self._block - attention.shape[-1]))
        by_key_block = padded.unflatten(-1, (n_blocks, self._block)).sum(-1)
        block_of = torch.arange(queries.start, queries.stop, device=attention.device) // self._block
        sums[..., :n_blocks].index_add_(1, block_of, by_key_block)

    def attention(self) -> Float[Tensor, "layer head query key"]:
        """The window of all layers, on the device of the pass."""
        return torch.stack([self._maps[layer] for layer in sorted(self._maps)])

    def overview(self) -> Float[Tensor, "layer head query_block key_block"]:
        """Mean attention between the tokens of two blocks; the last block of a side may be shorter."""
        sums = torch.stack([self._sums[layer] for layer in sorted(self._sums)])
        entries = self._in_blocks(self._n_queries)[:, None] * self._in_blocks(self._n_keys)
        return sums / entries.to(sums)

    def _in_blocks(self, n_tokens: int) -> Int[Tensor, " block"]:
        return torch.bincount(torch.arange(n_tokens) // self._block)


current_pass: ContextVar[Pass | None] = ContextVar("attention_pass", default=None)
