"""Tiles of attention, the observers that reduce them to statistics, and the state of the current pass; and the fallback
for models that do not use transformers' attention interface, which intercepts their softmax."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_sieve.core.attention.masks import TileMask
from attention_sieve.core.attention.settings import Window
from attention_sieve.core.pauses import pause


@dataclass(frozen=True, eq=False, kw_only=True)
class Tile:
    """Attention of consecutive queries of some texts in one layer; valid only during the call to an observer."""

    layer: int
    texts: slice
    """Rows of the batch."""
    queries: slice
    """Token positions of the queries."""
    probabilities: Float[Tensor, "text head query key"]
    """As used by the model: 0 for padded keys. Starts at the first key; a causal model may omit later keys, which no
    query of the tile attends to."""
    row_sums: Float[Tensor, "text head query"] | None
    """Row sums in a model with attention sinks, which take the remaining probability; None if real rows sum to 1."""
    indicator_sums: Float[Tensor, "text head query indicator"] | None
    """Attention summed over the keys of each indicator, if an observer has indicators."""
    entropy: Float[Tensor, "text head query"] | None
    """Entropy in nats of each row, normalised to sum to 1, if an observer wants it."""
    outputs: Float[Tensor, "text head query channel"] | None
    """Output of each head before the output projection, its gate applied, if an observer wants it."""
    mask: TileMask | None = None
    """The mask of this layer, if it was built by transformers."""
    kept: tuple[int, ...] | None = None
    """Remaining heads if some were removed, whose entries are NaN; None if none was."""

    def on(self, device: torch.device) -> "Tile":
        """The same on another device."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        moved: dict[str, Any] = {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **moved)


@runtime_checkable
class Observer(Protocol):
    """Reduces tiles of attention to statistics. As a base it asks for nothing more than the tiles."""

    indicators: Float[Tensor, "text key indicator"] | None = None
    """Sets of keys (1 = member), whose attention sums are computed together with the product with the values. At most
    one observer of a pass may have indicators."""
    wants_entropy: bool = False
    """Whether tiles need the entropy of their rows."""
    wants_outputs: bool = False
    """Whether tiles need the outputs of the heads."""

    def observe(self, tile: Tile) -> None:
        """Process a tile, which must not be stored or changed."""


OnOutput = Callable[[Float[Tensor, "text query head channel"], Float[Tensor, "text kv_head key channel"]], None]
"""Called with the outputs of the heads of an observed layer before the output projection, and with its values; both
are 0 for removed heads."""


Backward = Literal["gradient", "constant"]
"""How a backward pass treats attention: ordinary gradient, or constant probabilities."""


class WatchingDone(Exception):
    """Ends the forward pass once the last layer of interest has been observed."""


@dataclass(eq=False, kw_only=True)
class Pass:
    """The state of one observed forward pass, shared by its attention calls."""

    observers: Sequence[Observer] = ()
    """Receive every tile of every observed layer, in order."""
    calls: Sequence[int | None] | None = None
    """For each layer, the index of its attention call within the forward pass, or None for a layer without attention,
    of which the observers see NaN; None in all observes all calls of a model with a single stack."""
    stops: bool = False
    """Whether the pass ends after the last observed layer, without computing the model's output."""
    gates: Float[Tensor, "*text layer head"] | None = None
    """Factor for the output of each head in the observed layers, the same for all texts of the batch or of each one; 0
    switches a head off."""
    replacements: Float[Tensor, "layer head channel"] | None = None
    """Replacement of a head's output, weighted by how far its gate is closed; None for 0."""
    known: Mapping[int, Float[Tensor, "known query head channel"]] = field(default_factory=dict)
    """Outputs of all heads of some layers with their gates open, from an earlier pass over the texts that the batch
    contains copies of, one after the other; the attention of these layers is neither computed nor observed."""
    backward: Backward = "gradient"
    """How the backward pass treats attention, in all layers."""
    on_output: OnOutput | None = None
    """Called for every observed layer in order; only for a model that uses the registered function."""
    own_layer: int | None = None
    """Number that the model itself gives to the layer of the current attention call; None where it gives none."""
    n_calls: int = 0
    _layers: Mapping[int, int] | None = field(init=False)
    """Layer of each observed call: of an encoder-decoder, those of one stack or one kind of attention."""
    _buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = field(default_factory=dict)
    _home: torch.device | None = None
    """Device of the first layer that is shown."""

    def __post_init__(self) -> None:
        if self.stops and self.calls is None:
            raise ValueError("A pass stops after the last call that is watched; name the calls.")
        numbered = None if self.calls is None else enumerate(self.calls)
        self._layers = None if numbered is None else {call: layer for layer, call in numbered if call is not None}

    def next_layer(self) -> int | None:
        """Count an attention call and return its layer; None if it is not observed."""
        call = self.n_calls
        self.n_calls += 1
        return call if self._layers is None else self._layers.get(call)

    def without_attention(self, layer: int) -> tuple[range, range]:
        """Layers without attention directly before one with attention, and behind it if it is the last such one."""
        if self.calls is None:
            return range(0), range(0)
        others = [other for other, call in enumerate(self.calls) if call is not None]
        previous = max((other for other in others if other < layer), default=-1)
        return range(previous + 1, layer), range(layer + 1, len(self.calls) if layer == others[-1] else layer + 1)

    def gate(self, layer: int, texts: slice) -> Float[Tensor, "#text head 1 1"] | None:
        """Factor for the output of each head of a layer on some texts; None if all heads are on."""
        if self.gates is None:
            return None
        layer_gates = self.gates[layer] if self.gates.dim() == 2 else self.gates[texts, layer]
        return layer_gates.reshape(-1, self.gates.shape[-1], 1, 1)

    def gated(
        self,
        outputs: Float[Tensor, "text head query channel"],
        layer: int | None,
        texts: slice,
        heads: Int[Tensor, " head"] | None = None,
    ) -> Float[Tensor, "text head query channel"]:
        """Outputs of the heads of a layer on some texts after gates and replacements.

        Args:
            layer: index of the layer; None if it is not observed, and so not gated.
            heads: indices of these heads in the layer; None for all.
        """
        gate = None if layer is None else self.gate(layer, texts)
        if gate is None:
            return outputs
        replacement = None if self.replacements is None else self.replacements[layer]
        if heads is not None:
            heads = heads.to(gate.device)
            gate = gate.index_select(1, heads)
            replacement = None if replacement is None else replacement.index_select(0, heads)
        gate = gate.to(outputs)
        if replacement is None:
            return outputs * gate
        return outputs * gate + replacement[:, None].to(outputs) * (1 - gate)

    def known_outputs(self, layer: int | None, n_texts: int) -> Float[Tensor, "text query head channel"] | None:
        """Gated outputs of a layer that are already known; None if they must be computed."""
        if layer is None or layer not in self.known:
            return None
        outputs = self.known[layer].transpose(1, 2)
        copies = outputs.repeat(n_texts // len(outputs), 1, 1, 1)
        return self.gated(copies, layer, slice(0, n_texts)).transpose(1, 2)

    def ends_at(self, layer: int | None) -> bool:
        """Whether the pass ends after the attention of this layer."""
        return self.stops and self._layers is not None and layer == max(self._layers.values())

    def indicators(self) -> Float[Tensor, "text key indicator"] | None:
        """The sets of keys whose attention sums are needed."""
        return next((o.indicators for o in self.observers if o.indicators is not None), None)

    def wants_entropy(self) -> bool:
        """Whether some observer needs the entropy of the rows."""
        return any(o.wants_entropy for o in self.observers)

    def wants_outputs(self) -> bool:
        """Whether the outputs of the heads are needed, by an observer or by `on_output`."""
        return self.on_output is not None or any(o.wants_outputs for o in self.observers)

    def buffer(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """Scratch memory reused by all tiles, to avoid page faults; None when gradients are recorded."""
        if torch.is_grad_enabled():
            return None
        n = torch.Size(shape).numel()
        key = (name, like.dtype, like.device)
        scratch = self._buffers.get(key)
        if scratch is None or scratch.numel() < n:
            scratch = self._buffers[key] = torch.empty(n, dtype=like.dtype, device=like.device)
        return scratch[:n].view(shape)

    def show(self, tile: Tile) -> None:
        """Pass a tile to every observer.

        Of a model that is spread over several devices, tiles of all layers come to that of the first one, where
        observers have their sums.
        """
        self._home = self._home or tile.probabilities.device
        if tile.probabilities.device != self._home:
            tile = tile.on(self._home)
        for observer in self.observers:
            observer.observe(tile)


class MapObserver(Observer):
    """Stores the attention of one text of a batch: every entry inside a window, and block averages of the whole map."""

    def __init__(self, row: int, n_queries: int, n_keys: int, window: Window | None = None, block: int = 0) -> None:
        """Choose what to store.

        Args:
            n_queries, n_keys: its number of tokens, without padding.
            window: the part to store entry by entry; None for the whole map.
            block: number of queries, and of keys, per block; 0 stores no averages.
        """
        self._row, self._n_queries, self._n_keys, self._block = row, n_queries, n_keys, block
        self._window = window or Window((0, n_queries), (0, n_keys))
        self._maps: dict[int, Tensor] = {}
        self._sums: dict[int, Tensor] = {}

    def observe(self, tile: Tile) -> None:
        """Copy the entries inside the window, and accumulate the block sums."""
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
        window_map = self._maps[layer]
        start, stop = max(first, queries.start), min(last, queries.stop)
        entries = attention[:, start - queries.start : max(start, stop) - queries.start, left:right]
        window_map[:, start - first : max(start, stop) - first, : entries.shape[-1]] = entries

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
        """Attention inside the window in all layers, on the device of the pass."""
        return torch.stack([self._maps[layer] for layer in sorted(self._maps)])

    def overview(self) -> Float[Tensor, "layer head query_block key_block"]:
        """Mean attention between the tokens of two blocks; the last block of a side may be shorter."""
        sums = torch.stack([self._sums[layer] for layer in sorted(self._sums)])
        entries = self._in_blocks(self._n_queries)[:, None] * self._in_blocks(self._n_keys)
        return sums / entries.to(sums)

    def _in_blocks(self, n_tokens: int) -> Int[Tensor, " block"]:
        return torch.bincount(torch.arange(n_tokens) // self._block)


current_pass: ContextVar[Pass | None] = ContextVar("attention_pass", default=None)


SOFTMAXES: Final = frozenset({torch.softmax, torch.nn.functional.softmax, Tensor.softmax})


class SoftmaxTap(TorchFunctionMode):
    """Passes every softmax over a `text head query key` array to the observers of the current pass.

    The model computes the whole array, so memory grows with the square of the length. Gates scale the probabilities,
    which is equivalent to scaling the output of the head.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the intercepted function, and observe the result of a softmax."""
        result = func(*args, **(kwargs or {}))
        if func in SOFTMAXES and result.dim() == 4:
            return _seen(result)
        return result


def _seen(attention: Tensor) -> Tensor:
    """Show one layer's attention to the observers; returns the gated probabilities."""
    current = current_pass.get()
    if current is None or (layer := current.next_layer()) is None:
        return attention
    pause()
    n_texts, _, n_queries, _ = attention.shape
    probabilities = attention if attention.dtype == torch.float64 else attention.float()
    indicators = current.indicators()
    tile = Tile(
        layer=layer,
        texts=slice(0, n_texts),
        queries=slice(0, n_queries),
        probabilities=probabilities,
        row_sums=None,
        indicator_sums=None if indicators is None else probabilities @ indicators[:, None].to(probabilities.dtype),
        entropy=torch.special.entr(probabilities).sum(-1) if current.wants_entropy() else None,
        outputs=None,
    )
    current.show(tile)
    if current.ends_at(layer):
        raise WatchingDone
    gate = current.gate(layer, tile.texts)
    return attention if gate is None else attention * gate.to(attention.dtype)
