"""The door into every model: its attention function, registered with transformers, and the observers of a pass.

Models that dispatch through `AttentionInterface` call `door` for every attention with query, key and value. It
computes the attention probabilities tile by tile, hands each tile to the observers of the pass, and lets the tile go:
no query x key map outlives its tile unless an observer keeps it. Models that compute attention in their own way come
through `core.softmax_tap` instead, to the same observers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from core.errors import AnalysisError
from core.masks import TileMask, add_tensor, door_mask
from core.observers import Observer, OnOutput, Pass, WatchingDone, current_pass
from core.softmax_tap import SoftmaxTap

DOOR: Final = "attention_sieve"
TILE_ENTRIES: Final = 1 << 20
"""Probabilities held at once, heads included; about what a CPU's cache holds."""
GPU_TILE_ENTRIES: Final = 1 << 26
"""On a GPU every tile costs launches and no cache holds one, so few and large ones; 256 MB in float32."""
EVEN_WIDTH: Final = 8
"""Columns of values and indicators come in multiples of this, filled up with zeros: a matrix product whose rows fill
whole vector registers takes less time than one with fewer columns that do not."""
LEAST_QUERIES: Final = 64
"""Queries of a tile where TILE_ENTRIES would allow fewer: products of few rows waste more than a full cache."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Attention:
    """One call of a model's attention, in the number format of the statistics, ready to be computed in tiles."""

    query: Float[Tensor, "text head query channel"]
    """Scaled."""
    keys: Float[Tensor, "text kv_head channel key"]
    values: Float[Tensor, "text kv_head key value_channel"]
    mask: TileMask | Tensor | None
    softcap: float | None
    bias: Tensor | None
    sinks: Float[Tensor, " head"] | None

    @property
    def n_keys(self) -> int:
        """Keys of the longest text."""
        return self.keys.shape[-1]

    def n_visible_keys(self, queries: slice) -> int:
        """Keys from the first on that any of the queries may see."""
        if isinstance(self.mask, TileMask):
            return self.mask.n_visible_keys(queries, self.n_keys)
        return self.n_keys


def door(
    module: nn.Module,
    query: Float[Tensor, "batch head query channel"],
    key: Float[Tensor, "batch kv_head key channel"],
    value: Float[Tensor, "batch kv_head key value_channel"],
    attention_mask: TileMask | Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Float[Tensor, " head"] | None = None,
    **kwargs: Any,
) -> tuple[Float[Tensor, "batch query head value_channel"], None]:
    """Scaled dot-product attention whose probabilities the observers of the current pass see.

    Softmax and sums run in float32 (float64 for float64 models). Outside a pass it computes the same, unobserved.

    Args:
        module, query, key, value, attention_mask, scaling: as transformers calls every attention function. Grouped
            keys and values have fewer heads than queries.
        softcap: bounds the logits smoothly (Gemma 2).
        position_bias: added to the logits (T5).
        s_aux: logit of each head's attention sink, which takes a share of every row (GPT-OSS).
        kwargs: what concerns other attention functions, such as dropout, which is off in evaluation mode.
    """
    current = current_pass.get() or Pass()
    layer = current.next_layer()
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    # Query and key come as views of "text token head channel"; the products would copy them anew for every tile.
    attention = _Attention(
        query=query.to(dtype).contiguous() * (query.shape[-1] ** -0.5 if scaling is None else scaling),
        keys=key.to(dtype).contiguous().transpose(-1, -2),
        values=value.to(dtype),
        mask=attention_mask,
        softcap=softcap,
        bias=position_bias,
        sinks=None if s_aux is None else s_aux.to(dtype),
    )
    output = _attend(current, attention, layer)
    if current.on_output is not None and layer is not None:
        current.on_output(output, attention.values)
    if current.ends_at(layer):
        raise WatchingDone
    return output.to(query.dtype), None


def _attend(current: Pass, attention: _Attention, layer: int | None) -> Float[Tensor, "text query head value_channel"]:
    """One layer's attention, tile by tile; returns the output of each head."""
    n_texts, n_heads, n_queries, _ = attention.query.shape
    wants_outputs = layer is not None and any(o.wants_outputs for o in current.observers)
    values, n_channels = attention.values, attention.values.shape[-1]
    if current.ends_at(layer) and not wants_outputs:
        values, n_channels = values[..., :0], 0
    indicators = None if layer is None else current.indicators()
    n_indicators = 0 if indicators is None else indicators.shape[-1]
    if indicators is not None:
        padded = nn.functional.pad(indicators.to(values.dtype), (0, -(n_channels + n_indicators) % EVEN_WIDTH))
        values = torch.cat([values, padded[:, None].expand(-1, values.shape[1], -1, -1)], dim=-1)
    # Laid out as the model goes on with it, so that it is not copied again.
    output = attention.query.new_empty((n_texts, n_queries, n_heads, n_channels))
    for texts, queries in tiles((n_texts, n_heads, n_queries, attention.n_keys), attention.query.device.type):
        logits, probabilities = _softmax_tile(current, attention, texts, queries)
        entropy, row_sums = (lambda: _entropy(logits, probabilities)), None  # noqa: B023
        if attention.sinks is not None:
            unsunk = probabilities
            entropy = lambda: _entropy(logits, unsunk)  # noqa: B023, E731
            row_sums = torch.sigmoid(_logsumexp(logits, probabilities) - attention.sinks[:, None])
            probabilities = probabilities * row_sums[..., None]
        product = _by_kv_head(probabilities, values.shape[1]) @ values[texts, :, : probabilities.shape[-1]]
        product = product.view(*probabilities.shape[:3], values.shape[-1])
        outputs = product[..., :n_channels]
        if current.gates is not None and layer is not None:
            outputs = outputs * current.gates[layer, :, None, None].to(outputs.dtype)
        output[texts, queries] = outputs.transpose(1, 2)
        if layer is not None and current.observers:
            current.show(
                layer,
                texts,
                queries,
                probabilities,
                entropy,
                mask=attention.mask if isinstance(attention.mask, TileMask) else None,
                row_sums=row_sums,
                indicator_sums=None if indicators is None else product[..., n_channels : n_channels + n_indicators],
                outputs=outputs if wants_outputs else None,
            )
    return output


def tiles(shape: tuple[int, int, int, int], device: str) -> Iterator[tuple[slice, slice]]:
    """Whole texts while they fit into a tile, else blocks of queries of one text.

    The last queries come first: in a causal model they see most keys, so the buffers are made once, for the largest
    tile.

    Args:
        shape: texts, heads, queries and keys of a batch.
        device: kind of device, such as "cpu".
    """
    n_entries = TILE_ENTRIES if device == "cpu" else GPU_TILE_ENTRIES
    n_texts, n_heads, n_queries, n_keys = shape
    for texts in _even_slices(n_texts, n_entries // (n_heads * n_queries * n_keys)):
        for queries in reversed(_even_slices(n_queries, max(LEAST_QUERIES, n_entries // (n_heads * n_keys)))):
            yield texts, queries


def _even_slices(n: int, at_most: int) -> list[slice]:
    """As few slices as possible, of like length: a last tile of two queries costs nearly as much as a full one."""
    n_slices = math.ceil(n / max(1, at_most))
    return [slice(n * i // n_slices, n * (i + 1) // n_slices) for i in range(n_slices)]


def _softmax_tile(current: Pass, attention: _Attention, texts: slice, queries: slice) -> tuple[Tensor, Tensor]:
    """Logits and probabilities of a tile."""
    query = attention.query[texts, :, queries]
    keys = attention.keys[texts, ..., : attention.n_visible_keys(queries)]
    shape = (*query.shape[:3], keys.shape[-1])
    grouped = _by_kv_head(query, keys.shape[1])
    logits = torch.matmul(grouped, keys, out=current.buffer("logits", (*grouped.shape[:3], shape[-1]), query)).view(
        shape
    )
    if attention.softcap is not None:
        logits = torch.tanh(logits / attention.softcap) * attention.softcap
    if attention.bias is not None:
        add_tensor(logits, attention.bias, texts, queries)
    if isinstance(attention.mask, TileMask):
        attention.mask.add_to(logits, texts, queries)
    elif attention.mask is not None:
        add_tensor(logits, attention.mask, texts, queries)
    return logits, torch.softmax(logits, -1, out=current.buffer("probabilities", shape, query))


def _by_kv_head(rows: Float[Tensor, "text head query any"], n_kv_heads: int) -> Float[Tensor, "text kv_head row any"]:
    """Queries of the heads that share a key head, one below the other."""
    n_texts, n_heads, n_queries, n_channels = rows.shape
    if n_heads == n_kv_heads:
        return rows
    return rows.reshape(n_texts, n_kv_heads, n_heads // n_kv_heads * n_queries, n_channels)


def _logsumexp(logits: Tensor, probabilities: Tensor) -> Float[Tensor, "text head query"]:
    """Read off at each row's maximum, without an exponential per entry."""
    return logits.amax(-1) - probabilities.amax(-1).log()


def _entropy(logits: Tensor, probabilities: Tensor) -> Float[Tensor, "text head query"]:
    """Entropy of each row in nats, without a logarithm per entry; overwrites the logits.

    log p = (logit - largest) + log(largest p), so H = -sum(p * (logit - largest)) - log(largest p): what is added up is
    no larger than the entropy, whatever the size of the logits.
    """
    with torch.no_grad():
        place = None if logits.requires_grad else logits
        below = torch.sub(logits, logits.amax(-1, keepdim=True), out=place)
        return -torch.mul(probabilities, below, out=place).sum(-1) - probabilities.amax(-1).log()


def observe(
    model: PreTrainedModel,
    inputs: Mapping[str, Tensor],
    observers: Sequence[Observer],
    *,
    calls: Sequence[int] | None = None,
    gates: Float[Tensor, "layer head"] | None = None,
    on_output: OnOutput | None = None,
    stops: bool = False,
) -> Any:
    """One forward pass through the door.

    Args:
        model: set to the door (`attn_implementation=DOOR`), or to be tapped; in evaluation mode.
        inputs: arguments of the model by name: ids, masks, type ids of the batch.
        observers: see every tile of every layer, in order.
        calls: numbers of the calls of attention that are watched, by layer; None watches all of a model with one stack.
        gates: multiply the output of each head of the watched calls; 0 switches a head off. Where they require
            gradients, the output carries them.
        on_output: called with every watched layer in order, for a model behind the door.
        stops: unwind once the last watched call has been observed; the model's output is then not computed.

    Returns: the model's output, or None when stopped.

    Raises: RuntimeError for a model in training mode, whose dropout would falsify what is observed; AnalysisError for
    an observer that wants the outputs of heads in a model that is tapped; ValueError for stopping without calls.
    """
    if model.training:
        raise RuntimeError("The model is in training mode; call model.eval() before observing its attention.")
    if stops and calls is None:
        raise ValueError("A pass stops after the last call that is watched; name the calls.")
    if not is_behind_door(model) and any(observer.wants_outputs for observer in observers):
        raise AnalysisError(
            f"{type(model).__name__} computes attention in its own way, so the outputs of single heads cannot be seen. "
            "Choose a checkpoint of another family, such as BERT."
        )
    layers = None if calls is None else {call: layer for layer, call in enumerate(calls)}
    token = current_pass.set(Pass(observers=observers, layers=layers, stops=stops, gates=gates, on_output=on_output))
    try:
        with (
            torch.enable_grad() if gates is not None and gates.requires_grad else torch.inference_mode(),
            nullcontext() if is_behind_door(model) else SoftmaxTap(),
        ):
            return model(**inputs)
    except WatchingDone:
        return None
    finally:
        current_pass.reset(token)


def is_behind_door(model: PreTrainedModel) -> bool:
    """Whether a model calls the door; if not, its softmax is tapped."""
    return model.config._attn_implementation == DOOR


AttentionInterface.register(DOOR, door)
AttentionMaskInterface.register(DOOR, door_mask)
