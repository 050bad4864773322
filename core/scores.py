"""Sieve bias scores: the observer that turns tiles of attention into them, and the batches it is fed with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention import observe
from core.checkpoints import AttentionLayers, Checkpoint
from core.measures import ROW_MEASURES, SYNTACTIC_MEASURES
from core.observers import MapObserver, Observer, Tile
from core.passes import PassSettings, PassText, TextAttention, Window
from core.sieves import LOCAL_RADIUS, BatchSieves, batch_sieves
from core.tokens import TokenizedText

BATCH_TOKENS: Final = {"cpu": 1024, "mps": 4096, "cuda": 16384}
"""Tokens of a batch, padding included, by device: on a CPU small batches stay in its cache."""
OVERVIEW_BLOCKS: Final = 128
"""Blocks of the longer side of an overview, at most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchScores:
    """What one pass gives of a batch."""

    measures: Float[np.ndarray, "text measure layer head"]
    """By MEASURES: 1 = uniform attention; NaN where not applicable; `block` is weighted with row entropy in nats."""
    maps: dict[int, TextAttention]
    """By place in the batch, of the texts that were asked for."""


class _Weights:
    """The sieves of a batch as tensors, for the layers of one reach."""

    def __init__(self, sieves: BatchSieves, tensor: Callable[[np.ndarray], Tensor]) -> None:
        self.row = tensor(sieves.row_weights)
        self.entry_at, self.entry = tensor(sieves.entry_at), tensor(sieves.entry_weight)
        self.entry_target = tensor(sieves.entry_at[:, 0] * len(SYNTACTIC_MEASURES) + sieves.entry_measure)
        self._n_queries = sieves.row_weights.shape[1]
        self._entry_place = sieves.entry_at[:, 0] * self._n_queries + sieves.entry_at[:, 1]

    def entries_of(self, tile: Tile) -> slice:
        """A tile holds whole texts or some queries of one text, so its entries are neighbours."""
        first = tile.texts.start * self._n_queries + tile.queries.start
        last = (tile.texts.stop - 1) * self._n_queries + tile.queries.stop
        start, stop = np.searchsorted(self._entry_place, [first, last])
        return slice(int(start), int(stop))


class ScoreObserver:
    """Adds up each measure of each text, layer and head while the tiles pass."""

    wants_entropy: bool
    wants_outputs = False

    def __init__(self, sieves: Sequence[BatchSieves], n_heads: int, device: str, dtype: torch.dtype) -> None:
        """Take the sieves of each layer; layers of one reach share theirs."""

        def tensor(array: np.ndarray) -> Tensor:
            values = torch.from_numpy(array)
            # To the number format first: MPS knows no float64.
            return to_device(values.to(dtype) if values.is_floating_point() else values, device)

        made = {id(of_layer): _Weights(of_layer, tensor) for of_layer in sieves}
        self._weights = [made[id(of_layer)] for of_layer in sieves]
        self.indicators: Tensor | None = tensor(sieves[0].indicators)
        self._applicable = np.stack([of_layer.applicable for of_layer in sieves], axis=-1)
        self.wants_entropy = bool(self._applicable[:, ROW_MEASURES.index("block without entropy")].any())
        n_texts = len(sieves[0].indicators)
        zeros = partial(torch.zeros, device=device, dtype=dtype)
        self._row_sums = zeros((len(sieves), n_texts, n_heads, len(ROW_MEASURES)))
        self._block = zeros((len(sieves), n_texts, n_heads))
        self._syntactic = zeros((len(sieves), n_texts * len(SYNTACTIC_MEASURES), n_heads))

    def observe(self, tile: Tile) -> None:
        """Add a tile's share to every measure."""
        weights = self._weights[tile.layer].row[tile.texts, tile.queries]
        columns = torch.cat([_band_sums(tile)[..., None], _known(tile.indicator_sums)], dim=-1)
        if tile.row_sums is not None:
            # Padding that may look at nothing but padding has a sum of 0, and no weight.
            columns = columns / tile.row_sums[..., None].clamp_min(torch.finfo(columns.dtype).tiny)
        self._row_sums[tile.layer, tile.texts] += columns.flatten(2) @ weights.flatten(1, 2)
        if tile.entropy is not None:
            own_block = (columns * weights[:, None, ..., -1]).sum(-1)
            self._block[tile.layer, tile.texts] += (own_block * tile.entropy).sum(-1)
        self._add_entries(tile, self._weights[tile.layer])

    def _add_entries(self, tile: Tile, weights: _Weights) -> None:
        chosen = weights.entries_of(tile)
        if chosen.stop > chosen.start:
            text, query, key = weights.entry_at[chosen].T
            text, query = text - tile.texts.start, query - tile.queries.start
            attention = tile.probabilities[text, :, query, key]
            if tile.row_sums is not None:
                attention = attention / tile.row_sums[text, :, query]
            weighted = attention * weights.entry[chosen, None]
            self._syntactic[tile.layer].index_add_(0, weights.entry_target[chosen], weighted)

    def scores(self) -> Float[np.ndarray, "text measure layer head"]:
        """Every measure of MEASURES; NaN where it is not applicable to a text. One copy back from the device."""
        n_layers, n_texts, n_heads = self._block.shape
        syntactic = self._syntactic.view(n_layers, n_texts, len(SYNTACTIC_MEASURES), n_heads)
        by_text = [self._row_sums.transpose(2, 3), self._block[:, :, None], syntactic]
        measured = torch.cat(by_text, dim=2).permute(1, 2, 0, 3).detach().cpu().numpy()
        return np.where(self._applicable[..., None], measured, np.nan).astype(measured.dtype)


def _band_sums(tile: Tile) -> Float[Tensor, "text head query"]:
    """Attention of each query inside its local band, read off the tile's diagonals."""
    probabilities = tile.probabilities
    n_queries, n_keys = probabilities.shape[2:]
    sums = probabilities.new_zeros(probabilities.shape[:3])
    for offset in range(tile.queries.start - LOCAL_RADIUS, tile.queries.start + LOCAL_RADIUS + 1):
        if -n_queries < offset < n_keys:
            diagonal = probabilities.diagonal(offset, dim1=2, dim2=3)
            first = max(0, -offset)
            sums[..., first : first + diagonal.shape[-1]] += diagonal
    return sums


def _known(sums: Tensor | None) -> Tensor:
    if sums is None:
        raise RuntimeError("The pass gave no indicator sums to the score observer.")
    return sums


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts that are passed together."""

    positions: tuple[int, ...]
    """Places of the texts among those given."""
    width: int
    """Tokens of the longest."""


def plan_batches(lengths: Sequence[int], budget: int) -> list[Batch]:
    """Texts of like length together, each batch within a budget of tokens, padding included; at least one text each."""
    batches: list[Batch] = []
    current: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if current and (len(current) + 1) * lengths[position] > budget:
            batches.append(Batch(tuple(current), lengths[current[-1]]))
            current = []
        current.append(position)
    return [*batches, Batch(tuple(current), lengths[current[-1]])] if current else batches


def score_batch(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    windows: Mapping[int, Window] | None = None,
    observers: Sequence[Observer] = (),
) -> BatchScores:
    """Scores of texts that are passed together, and the attention of those that are drawn.

    Args:
        checkpoint: loaded.
        texts: of the kind that the settings name.
        settings: which attention, and which heads are off.
        windows: by place in the batch, the part of a text's attention to keep.
        observers: see the same tiles, after the scores' own.

    Source: Pande et al. 2021; decisions in this project's favour are named in core/sieves.py.
    """
    attention = checkpoint.attentions[settings.kind]
    sieves = layer_sieves(texts, attention)
    scores = ScoreObserver(sieves, attention.n_heads, checkpoint.device, checkpoint.statistics_dtype)
    maps = {row: _map_observer(texts[row], row, window) for row, window in (windows or {}).items()}
    observe(
        checkpoint.model,
        model_inputs(checkpoint, texts),
        [scores, *maps.values(), *observers],
        calls=attention.calls,
        gates=gates(checkpoint, settings),
        stops=True,
    )
    seen = {row: _seen(texts[row], attention.causal, window, maps[row]) for row, window in (windows or {}).items()}
    return BatchScores(measures=scores.scores(), maps=seen)


def layer_sieves(texts: Sequence[PassText], attention: AttentionLayers) -> list[BatchSieves]:
    """Sieves of a batch for each layer; one object for all layers whose windows these texts fit into."""
    n_tokens = max(text.n_tokens for text in texts)
    reaches = [attention.reach(layer).within(n_tokens, attention.causal) for layer in range(attention.n_layers)]
    made = {reach: batch_sieves(texts, attention.causal, reach) for reach in dict.fromkeys(reaches)}
    return [made[reach] for reach in reaches]


def _map_observer(text: PassText, row: int, window: Window) -> MapObserver:
    return MapObserver(row, len(text.queries.ids), len(text.keys.ids), window, _block(text, window))


def _seen(text: PassText, causal: bool, window: Window, observer: MapObserver) -> TextAttention:
    block = _block(text, window)
    return TextAttention(
        text=text,
        causal=causal,
        window=window,
        attention=observer.attention().cpu().numpy(),
        block=block,
        overview=observer.overview().cpu().numpy() if block else None,
    )


def _block(text: PassText, window: Window) -> int:
    """Tokens of a block of the overview; 0 where the window holds the whole text."""
    if window == Window((0, len(text.queries.ids)), (0, len(text.keys.ids))):
        return 0
    return -(-text.n_tokens // OVERVIEW_BLOCKS)


def gates(checkpoint: Checkpoint, settings: PassSettings) -> Float[Tensor, "layer head"] | None:
    """1 for heads that are on and 0 for those off; None where all are on."""
    if not settings.off:
        return None
    attention = checkpoint.attentions[settings.kind]
    values = torch.ones((attention.n_layers, attention.n_heads))
    for layer, head in settings.off:
        values[layer, head] = 0
    return to_device(values, checkpoint.device)


def model_inputs(checkpoint: Checkpoint, texts: Sequence[PassText]) -> dict[str, Tensor]:
    """Arguments of the model for a batch: ids, padding masks where something is padded, type ids where it has them."""
    inputs = _padded(checkpoint, [text.source for text in texts])
    if checkpoint.takes_type_ids:
        inputs["token_type_ids"] = _stacked([text.source.type_ids for text in texts], 0, checkpoint.device)
    targets = [text.target for text in texts if text.target is not None]
    if targets:
        inputs |= {f"decoder_{name}": value for name, value in _padded(checkpoint, targets).items()}
    return inputs


def _padded(checkpoint: Checkpoint, texts: Sequence[TokenizedText]) -> dict[str, Tensor]:
    inputs = {"input_ids": _stacked([text.ids for text in texts], checkpoint.padding_id, checkpoint.device)}
    lengths = {len(text.ids) for text in texts}
    if len(lengths) > 1:
        inputs["attention_mask"] = _stacked([np.ones_like(text.ids) for text in texts], 0, checkpoint.device)
    return inputs


def _stacked(rows: Sequence[np.ndarray], padding: int, device: str) -> Tensor:
    stacked = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for row, values in enumerate(rows):
        stacked[row, : len(values)] = values
    return to_device(torch.from_numpy(stacked), device)


def to_device(values: Tensor, device: str) -> Tensor:
    """Move to a device; to a GPU through pinned memory, so that the processor need not wait."""
    return values.pin_memory().to(device, non_blocking=True) if device == "cuda" else values.to(device)
