"""The attention function registered with transformers, through which observers see the attention of a pass.

Models that dispatch through `AttentionInterface` call `observed_attention` with query, key and value in every layer. It
computes the attention probabilities one tile at a time, passes each tile to the observers, and discards it: no
query x key map is stored unless an observer copies it. Without observers it calls PyTorch's fused product, which never
writes probabilities to memory. Models that compute attention in their own code are covered by
`attention_sieve.core.attention.observers.SoftmaxTap`, which feeds the same observers.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from attention_sieve.core.attention.kept_heads import KeptHeads, kept_heads, kept_of, show_all, tile_with_holes
from attention_sieve.core.attention.masks import TileMask, add_tensor, attention_mask_function
from attention_sieve.core.attention.observers import OnOutput, Pass, SoftmaxTap, Tile, WatchingDone, current_pass
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.pauses import pause

ATTENTION_NAME: Final = "attention_sieve"
TILE_ENTRIES: Final = 1 << 20
"""Maximum number of probabilities in a tile, over all heads; roughly the size of a CPU cache."""
GPU_TILE_ENTRIES: Final = 1 << 26
"""The same on a GPU, where each tile costs kernel launches, so few large tiles are faster; 256 MB in float32."""
EVEN_WIDTH: Final = 8
"""The columns of values and indicators are zero-padded to a multiple of this: a matrix product whose rows fill whole
vector registers is faster, even with more columns."""
LEAST_QUERIES: Final = 64
"""Minimum number of queries in a tile, even if it exceeds TILE_ENTRIES: products of few rows are inefficient."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Attention:
    """The inputs of one attention call, converted to the number format of the statistics."""

    query: Float[Tensor, "text head query channel"]
    scale: float
    """What the products of queries and keys are still multiplied by."""
    keys: Float[Tensor, "text kv_head channel key"]
    values: Float[Tensor, "text kv_head key value_channel"]
    mask: TileMask | Tensor | None
    softcap: float | None
    bias: Tensor | None
    sinks: Float[Tensor, " head"] | None
    kept: KeptHeads | None
    """Heads left of an attention from which some were removed; all of the above is of these."""

    @property
    def heads(self) -> Int[Tensor, " head"] | None:
        """Indices of these heads in the layer; None if none was removed."""
        return None if self.kept is None else self.kept.on(self.query.device)

    @property
    def n_heads(self) -> int:
        """Number of heads, removed ones included."""
        return self.query.shape[1] if self.kept is None else self.kept.n_heads

    @property
    def n_keys(self) -> int:
        """Number of keys of the longest text."""
        return self.keys.shape[-1]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Number of texts, of heads, removed ones included, of queries and of keys.

        Tiles are of all heads, so that those of a checkpoint and of its copy without some heads are the same.
        """
        return (len(self.query), self.n_heads, self.query.shape[2], self.n_keys)

    def n_visible_keys(self, queries: slice) -> int:
        """Number of leading keys that at least one of these queries may attend to."""
        return self.n_keys if self.tile_mask is None else self.tile_mask.n_visible_keys(queries, self.n_keys)

    @property
    def tile_mask(self) -> TileMask | None:
        """The mask, if it was built by transformers."""
        return self.mask if isinstance(self.mask, TileMask) else None


def observed_attention(
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
    # Calls are counted: self- and cross-attention of one layer of a decoder have the same layer_idx.
    layer, current.own_layer = current.next_layer(), getattr(module, "layer_idx", None)
    kept = kept_heads(module)
    known = current.known_outputs(layer, len(query))
    # After it is counted: the calls of the layers behind keep their numbers.
    if known is not None:
        return kept_of(known, kept, 2).to(query), None
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    is_plain = softcap is None and position_bias is None and s_aux is None
    # A pass with gradients may treat them by `backward`, which the fused product knows nothing of.
    unseen = is_plain and not current.observers and not torch.is_grad_enabled()
    # The fused product scales by itself; scaled queries would be one more copy.
    # Query and key come as views of "text token head channel"; the products would copy them again for every tile.
    attention = _Attention(
        query=query.to(dtype) if unseen else _scaled(current, query.to(dtype), scale),
        scale=scale if unseen else 1.0,
        keys=(key.to(dtype) if unseen else key.to(dtype).contiguous()).transpose(-1, -2),
        values=value.to(dtype),
        mask=attention_mask,
        softcap=softcap,
        bias=None if position_bias is None else kept_of(position_bias, kept, 1),
        sinks=None if s_aux is None else s_aux.to(dtype),
        kept=kept,
    )
    before, after = (range(0), range(0)) if layer is None else current.without_attention(layer)
    _show_without_attention(current, attention, before)
    output = (_attend_unseen if unseen else _attend)(current, attention, layer)
    if output.requires_grad:
        output.register_hook(lambda _: pause())  # the backward pass pauses between layers, too
    if current.on_output is not None and layer is not None:
        output = _outputs_without_attention(current.on_output, output, attention, len(before))
        output = show_all(current.on_output, output, attention.values, kept)
        output = _outputs_without_attention(current.on_output, output, attention, len(after))
    _show_without_attention(current, attention, after)
    # An exception, because nothing else ends a forward pass of transformers in the middle.
    if current.ends_at(layer):
        raise WatchingDone
    return output.to(query.dtype), None


def _scaled(current: Pass, query: Float[Tensor, "batch head query channel"], scale: float) -> Tensor:
    """Queries times the scale, in the layout that the products read: one copy serves both."""
    held = current.buffer("queries", tuple(query.shape), query)
    return torch.mul(query, scale, out=held).contiguous()


def _attend(current: Pass, attention: _Attention, layer: int | None) -> Float[Tensor, "text query head value_channel"]:
    """Compute one layer's attention tile by tile; returns the output of each head."""
    wants_outputs = layer is not None and current.wants_outputs()
    values, n_channels = attention.values, attention.values.shape[-1]
    # Nobody reads what the last layer gives: its product is needed for the indicators alone.
    if current.ends_at(layer) and not wants_outputs:
        values, n_channels = values[..., :0], 0
    indicators = None if layer is None else current.indicators()
    if indicators is not None:
        values = _with_columns(values, indicators)
    # In the memory layout that the model continues with, so that it is not copied again.
    output = attention.query.new_empty((*attention.query.transpose(1, 2).shape[:3], n_channels))
    for texts, queries in tiles(attention.shape, attention.query.device.type):
        pause()
        logits, probabilities = _softmax_tile(current, attention, texts, queries)
        # First, because the entropy overwrites the logits. Both take rows that sum to 1, as they are without a sink.
        row_sums = None if attention.sinks is None else _row_sums(logits, probabilities, attention.sinks)
        entropy = _entropy(logits, probabilities) if layer is not None and current.wants_entropy() else None
        if row_sums is not None:
            probabilities = probabilities * row_sums[..., None]
        # Before the product, whose gradient then flows through the values alone.
        if current.backward == "constant":
            probabilities = probabilities.detach()
        # A tile of a causal model has no columns for the keys that none of its queries sees.
        product = _by_kv_head(probabilities, values.shape[1]) @ values[texts, :, : probabilities.shape[-1]]
        product = product.view(*probabilities.shape[:3], values.shape[-1])
        outputs = product[..., :n_channels]
        outputs = current.gated(outputs, layer, texts, attention.heads)
        output[texts, queries] = outputs.transpose(1, 2)
        if layer is not None and current.observers:
            tile = Tile(
                layer=layer,
                texts=texts,
                queries=queries,
                probabilities=probabilities,
                row_sums=row_sums,
                indicator_sums=None if indicators is None else product[..., n_channels:][..., : indicators.shape[-1]],
                entropy=entropy,
                outputs=outputs if wants_outputs else None,
                mask=attention.tile_mask,
            )
            current.show(tile if attention.kept is None else tile_with_holes(current, tile, attention.kept))
    return output


def _with_columns(values: Tensor, indicators: Float[Tensor, "text key indicator"]) -> Tensor:
    """The values with the indicators as further columns: one product reads the probabilities once for both."""
    padded = nn.functional.pad(indicators.to(values), (0, -(values.shape[-1] + indicators.shape[-1]) % EVEN_WIDTH))
    return torch.cat([values, padded[:, None].expand(-1, values.shape[1], -1, -1)], dim=-1)


def _attend_unseen(
    current: Pass, attention: _Attention, layer: int | None
) -> Float[Tensor, "text query head value_channel"]:
    """As `_attend`, but without observers: the probabilities are never written to memory."""
    n_texts, n_heads, n_queries, _ = attention.query.shape
    # What takes memory here is the mask alone: one map for all heads, unless the model brings one for each.
    n_maps = attention.mask.shape[1] if isinstance(attention.mask, Tensor) else 1
    text_tiles: dict[int, list[Tensor]] = {}
    for texts, queries in tiles((n_texts, n_maps, n_queries, attention.n_keys), attention.query.device.type):
        pause()
        query = attention.query[texts, :, queries]
        keys = slice(0, attention.n_visible_keys(queries))
        if isinstance(attention.mask, TileMask):
            addend = attention.mask.addend(texts, queries, keys, query.dtype).to(query.device)
        elif attention.mask is not None:
            addend = query.new_zeros((len(query), n_maps, query.shape[2], keys.stop))
            add_tensor(addend, attention.mask, texts, queries)
        else:
            addend = None
        outputs = nn.functional.scaled_dot_product_attention(
            query,
            attention.keys[texts, ..., keys].mT,  # a view: `keys` are transposed for the products of `_attend`
            attention.values[texts, :, keys],
            addend,
            scale=attention.scale,
            enable_gqa=n_heads != attention.keys.shape[1],
        )
        outputs = current.gated(outputs, layer, texts, attention.heads)
        text_tiles.setdefault(texts.start, []).insert(0, outputs.transpose(1, 2))  # the last queries come first
    wholes = [blocks[0] if len(blocks) == 1 else torch.cat(blocks, 1) for blocks in text_tiles.values()]
    return wholes[0] if len(wholes) == 1 else torch.cat(wholes)


def _show_without_attention(current: Pass, attention: _Attention, layers: range) -> None:
    """Show the observers tiles of NaN for layers without attention, as large as those of the layer at hand."""
    if not current.observers:
        return
    indicators = current.indicators()
    for layer in layers:
        for texts, queries in tiles(attention.shape, attention.query.device.type):
            rows = attention.query[texts, :1, queries, 0]
            # One number seen through strides: a tile of any size takes no memory.
            nothing = rows.new_full((1,), torch.nan).expand(len(rows), attention.n_heads, rows.shape[2])
            by_key = nothing[..., None].expand(*nothing.shape, attention.n_visible_keys(queries))
            n_channels = attention.values.shape[-1]
            current.show(
                Tile(
                    layer=layer,
                    texts=texts,
                    queries=queries,
                    probabilities=by_key,
                    row_sums=None if attention.sinks is None else nothing,
                    indicator_sums=None
                    if indicators is None
                    else nothing[..., None].expand(*nothing.shape, indicators.shape[-1]),
                    entropy=nothing if current.wants_entropy() else None,
                    outputs=nothing[..., None].expand(*nothing.shape, n_channels) if current.wants_outputs() else None,
                    mask=attention.tile_mask,
                    kept=(),
                )
            )


def _outputs_without_attention(
    on_output: OnOutput, output: Float[Tensor, "text query head channel"], attention: _Attention, n_layers: int
) -> Float[Tensor, "text query head channel"]:
    """Call on_output with zeros for layers without attention.

    Returns: the same output, computed from these zeros too, so that their gradient is 0.
    """
    for _ in range(n_layers):
        zeros = output.new_zeros((*output.shape[:2], attention.n_heads, output.shape[3]))
        if torch.is_grad_enabled():
            zeros.requires_grad_()
        on_output(zeros, torch.zeros_like(attention.values))
        if torch.is_grad_enabled():
            output = output + 0 * zeros.sum()
    return output


def tiles(shape: tuple[int, int, int, int], device: str) -> Iterator[tuple[slice, slice]]:
    """Split a batch into tiles: whole texts if they fit into a tile, otherwise blocks of queries of one text.

    The last queries come first: in a causal model they attend to the most keys, so the buffers are allocated once, for
    the largest tile.

    Yields: the texts and the queries of each tile.
    """
    n_entries = TILE_ENTRIES if device == "cpu" else GPU_TILE_ENTRIES
    n_texts, n_heads, n_queries, n_keys = shape
    for texts in _even_slices(n_texts, n_entries // (n_heads * n_queries * n_keys)):
        for queries in reversed(_even_slices(n_queries, max(LEAST_QUERIES, n_entries // (n_heads * n_keys)))):
            yield texts, queries


def _even_slices(n: int, at_most: int) -> list[slice]:
    """As few slices as possible, of similar length: a last tile of two queries costs nearly as much as a full one."""
    n_slices = math.ceil(n / max(1, at_most))
    return [slice(n * i // n_slices, n * (i + 1) // n_slices) for i in range(n_slices)]


def _softmax_tile(current: Pass, attention: _Attention, texts: slice, queries: slice) -> tuple[Tensor, Tensor]:
    query = attention.query[texts, :, queries]
    keys = attention.keys[texts, ..., : attention.n_visible_keys(queries)]
    shape = (*query.shape[:3], keys.shape[-1])
    # Heads that share keys become rows of one product: repeating the keys for each head would copy them.
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
    # Into memory of its own: the entropy needs the logits beside the probabilities.
    return logits, torch.softmax(logits, -1, out=current.buffer("probabilities", shape, query))


def _by_kv_head(rows: Float[Tensor, "text head query any"], n_kv_heads: int) -> Float[Tensor, "text kv_head row any"]:
    """Group the queries by key/value head, concatenated along the rows."""
    n_texts, n_heads, n_queries, n_channels = rows.shape
    if n_heads == n_kv_heads:
        return rows
    return rows.reshape(n_texts, n_kv_heads, n_heads // n_kv_heads * n_queries, n_channels)


def _row_sums(logits: Tensor, probabilities: Tensor, sinks: Float[Tensor, " head"]) -> Float[Tensor, "text head query"]:
    """The share of each row that attention sinks leave.

    The log-sum-exp of a row comes from its largest entry alone, which avoids an exponential per entry.
    """
    # log p = logit - log-sum-exp holds for each entry; of the largest, p is at least 1 / keys, so its log is finite.
    totals = logits.amax(-1) - probabilities.amax(-1).log()
    return torch.sigmoid(totals - sinks[:, None])


def _entropy(logits: Tensor, probabilities: Tensor) -> Float[Tensor, "text head query"]:
    """Entropy of each row in nats, without a logarithm per entry; overwrites the logits.

    log p = (logit - largest) + log(largest p), so H = -sum(p * (logit - largest)) - log(largest p). The terms of the
    sum never exceed the entropy, however large the logits are.
    """
    with torch.no_grad():
        # A masked key adds p * (logit - largest) = 0 times a finite number: minus infinity would make it NaN.
        place = None if logits.requires_grad else logits
        below = torch.sub(logits, logits.amax(-1, keepdim=True), out=place)
        return -torch.mul(probabilities, below, out=place).sum(-1) - probabilities.amax(-1).log()


def observe(model: PreTrainedModel, inputs: Mapping[str, Tensor], observed_pass: Pass) -> Any:
    """Run one forward pass with observers.

    Args:
        model: in evaluation mode, with `attn_implementation=ATTENTION_NAME`; otherwise its softmax is tapped.
        inputs: keyword arguments of the model: ids, masks, type ids of the batch.
        observed_pass: what is observed and changed; a new one for every pass. If its gates require gradients, the pass
            records them.

    Returns: the model's output, or None if the pass was ended early.

    Raises: AnalysisError for a model in training mode, because dropout would distort its attention, and if an observer
    or a replacement needs the outputs of single heads and the model does not use the registered function.
    """
    if model.training:
        raise AnalysisError(
            f"{type(model).__name__} is in training mode, in which its output is random. It is switched to evaluation "
            "before it runs: something in it calls train(). Take that call out."
        )
    gates = observed_pass.gates
    if observed_pass.replacements is not None or any(observer.wants_outputs for observer in observed_pass.observers):
        check_heads_are_seen(model)
    # A context variable, because not every model hands arguments of ours on to its attention.
    token = current_pass.set(observed_pass)
    try:
        with (
            # Tensors of inference mode could not be used with gradients later, but are faster where there are none.
            torch.enable_grad() if gates is not None and gates.requires_grad else torch.inference_mode(),
            nullcontext() if has_attention_interface(model) else SoftmaxTap(),
        ):
            return model(**inputs)
    except WatchingDone:
        return None
    finally:
        current_pass.reset(token)


def has_attention_interface(model: PreTrainedModel) -> bool:
    """Whether a model calls the registered attention function; if not, its softmax is intercepted."""
    return model.config._attn_implementation == ATTENTION_NAME


def check_heads_are_seen(model: PreTrainedModel, instead: str = "Choose") -> None:
    """Refuse a model whose heads' outputs do not pass through the registered function. The sentence on what to do
    begins with `instead`, up to another checkpoint.

    Raises: AnalysisError.
    """
    if not has_attention_interface(model):
        raise AnalysisError(
            f"{type(model).__name__} has its own attention code, so the outputs of single heads cannot be observed. "
            f"{instead} a checkpoint of another family, such as BERT."
        )


AttentionInterface.register(ATTENTION_NAME, observed_attention)
AttentionMaskInterface.register(ATTENTION_NAME, attention_mask_function)
