"""Sieve bias scores: the observer that computes them from tiles of attention, and the pass of a batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention.observed import observe
from core.attention.observers import MapObserver, Observer, Tile
from core.attention.settings import PassSettings, Window
from core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from core.passes.batches import gates, model_inputs, to_device
from core.passes.texts import PassText, TextAttention
from core.roles.measures import (
    BLOCK,
    ROW_MEASURES,
    ROW_SHARES,
    SYNTACTIC_MEASURES,
    SYNTACTIC_SHARES,
    TextMeasures,
)
from core.roles.observer import EntryWeights
from core.roles.sieves import LOCAL_RADIUS, BatchSieves, batch_sieves

N_ENTRY_MEASURES: Final = len(SYNTACTIC_MEASURES) + len(SYNTACTIC_SHARES)
OVERVIEW_BLOCKS: Final = 128
"""Maximum number of blocks along the longer axis of an overview."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchScores:
    """Result of the pass of one batch."""

    measures: Float[np.ndarray, "text measure layer head"]
    """Sieve bias scores by MEASURES; NaN where not applicable; `block` is weighted with row entropy in nats."""
    shares: Float[np.ndarray, "text share layer head"]
    """Shares above chance by SHARES: 0 for uniform attention, 1 for all attention inside the sieve."""
    uniform: Float[np.ndarray, "text reference layer"]
    """Score of uniform attention by REFERENCES."""
    greatest: Float[np.ndarray, "text reference layer"]
    """Greatest possible score by REFERENCES."""
    maps: dict[int, TextAttention]
    """Attention of the requested texts, by their index in the batch."""

    def of_texts(self) -> list[TextMeasures]:
        """Measures of each text."""
        arrays = zip(self.measures, self.shares, self.uniform, self.greatest)
        return [
            TextMeasures(measures=measures, shares=shares, uniform=uniform, greatest=greatest)
            for measures, shares, uniform, greatest in arrays
        ]


class _Weights:
    """The sieves of a batch as tensors, for layers with the same window."""

    def __init__(self, sieves: BatchSieves, tensor: Callable[[np.ndarray], Tensor]) -> None:
        self.row = tensor(sieves.row_weights)
        target = sieves.entry_at[:, 0] * N_ENTRY_MEASURES + sieves.entry_measure
        n_queries = sieves.row_weights.shape[1]
        self.entries = EntryWeights(sieves.entry_at, target, sieves.entry_weight, n_queries, tensor)


class ScoreObserver:
    """Accumulates each measure of each text, layer and head during the pass."""

    wants_entropy: bool
    wants_outputs = False

    def __init__(self, sieves: Sequence[BatchSieves], n_heads: int, device: str, dtype: torch.dtype) -> None:
        """Store the sieves of each layer; layers with the same window share them."""

        def tensor(array: np.ndarray) -> Tensor:
            values = torch.from_numpy(array)
            # Convert the dtype first: MPS has no float64.
            return to_device(values.to(dtype) if values.is_floating_point() else values, device)

        weights = {distinct: _Weights(distinct, tensor) for distinct in dict.fromkeys(sieves)}
        self._weights = [weights[of_layer] for of_layer in sieves]
        self.indicators: Tensor | None = tensor(sieves[0].indicators)
        self._applicable = np.stack([of_layer.applicable for of_layer in sieves], axis=-1)
        self._at_chance = np.stack([of_layer.at_chance for of_layer in sieves], axis=-1)
        self.wants_entropy = bool(self._applicable[:, BLOCK].any())
        n_texts = len(sieves[0].indicators)
        zeros = partial(torch.zeros, device=device, dtype=dtype)
        self._row_sums = zeros((len(sieves), n_texts, n_heads, len(ROW_MEASURES) + len(ROW_SHARES)))
        self._block = zeros((len(sieves), n_texts, n_heads))
        self._syntactic = zeros((len(sieves), n_texts * N_ENTRY_MEASURES, n_heads))

    def observe(self, tile: Tile) -> None:
        """Add a tile's contribution to every measure."""
        weights = self._weights[tile.layer].row[tile.texts, tile.queries]
        columns = torch.cat([_band_sums(tile)[..., None], _known(tile.indicator_sums)], dim=-1)
        if tile.row_sums is not None:
            # Padding that can attend only to padding has a sum of 0, and no weight.
            columns = columns / tile.row_sums[..., None].clamp_min(torch.finfo(columns.dtype).tiny)
        self._row_sums[tile.layer, tile.texts] += columns.flatten(2) @ weights.flatten(1, 2)
        if tile.entropy is not None:
            own_block = (columns * weights[:, None, ..., BLOCK]).sum(-1)
            self._block[tile.layer, tile.texts] += (own_block * tile.entropy).sum(-1)
        self._weights[tile.layer].entries.add(tile, self._syntactic[tile.layer])

    def scores(self) -> tuple[Float[np.ndarray, "text measure layer head"], Float[np.ndarray, "text share layer head"]]:
        """All of MEASURES and of SHARES, copied from the device at once; NaN where not applicable to a text."""
        n_layers, n_texts, n_heads = self._block.shape
        syntactic = self._syntactic.view(n_layers, n_texts, N_ENTRY_MEASURES, n_heads)
        rows = self._row_sums.transpose(2, 3)
        n_rows, n_entries = len(ROW_MEASURES), len(SYNTACTIC_MEASURES)
        parts = [
            rows[:, :, :n_rows],
            self._block[:, :, None],
            syntactic[:, :, :n_entries],
            rows[:, :, n_rows:],
            syntactic[:, :, n_entries:],
        ]
        measured = torch.cat(parts, dim=2).permute(1, 2, 0, 3).detach().cpu().numpy()
        n_measures = self._applicable.shape[1]
        scores = np.where(self._applicable[..., None], measured[:, :n_measures], np.nan)
        shares = measured[:, n_measures:] - self._at_chance[..., None]
        return scores.astype(measured.dtype), shares.astype(measured.dtype)


def _band_sums(tile: Tile) -> Float[Tensor, "text head query"]:
    """Attention of each query inside its local band, from the tile's diagonals."""
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


def score_batch(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    windows: Mapping[int, Window] | None = None,
    observers: Sequence[Observer] = (),
    control: Callable[[Observer], Observer] | None = None,
) -> BatchScores:
    """Run one batch of texts, and compute scores and, for some texts, the attention to draw.

    Args:
        checkpoint: loaded.
        texts: prepared for the kind of attention in the settings.
        settings: which attention, and which heads are off.
        windows: for texts to draw, by index in the batch, the part of their attention to return.
        observers: further observers of the same pass.
        control: an observer that changes the tiles before it passes them on to the observer of scores.

    Source: Pande et al. 2021; differences from their code are documented in core/roles/sieves.py.
    """
    attention = checkpoint.attentions[settings.kind]
    sieves = layer_sieves(texts, attention)
    scores = ScoreObserver(sieves, attention.n_heads, checkpoint.device, checkpoint.statistics_dtype)
    map_observers = {row: _map_observer(texts[row], row, window) for row, window in (windows or {}).items()}
    observe(
        checkpoint.model,
        model_inputs(checkpoint, texts),
        [scores if control is None else control(scores), *map_observers.values(), *observers],
        calls=attention.calls,
        gates=gates(checkpoint, settings),
        stops=True,
    )
    text_attentions = {
        row: _text_attention(texts[row], attention, window, map_observers[row])
        for row, window in (windows or {}).items()
    }
    measures, shares = scores.scores()
    return BatchScores(
        measures=measures,
        shares=shares,
        uniform=np.stack([of_layer.uniform for of_layer in sieves], axis=-1).astype(measures.dtype),
        greatest=np.stack([of_layer.greatest for of_layer in sieves], axis=-1).astype(measures.dtype),
        maps=text_attentions,
    )


def layer_sieves(texts: Sequence[PassText], attention: AttentionLayers) -> list[BatchSieves]:
    """Sieves of a batch for each layer; layers whose windows have the same effect on these texts share one object."""
    n_tokens = max(text.n_tokens for text in texts)
    reaches = [attention.reach(layer).within(n_tokens, attention.causal) for layer in range(attention.n_layers)]
    sieves = {reach: batch_sieves(texts, attention.causal, reach) for reach in dict.fromkeys(reaches)}
    return [sieves[reach] for reach in reaches]


def _map_observer(text: PassText, row: int, window: Window) -> MapObserver:
    return MapObserver(row, len(text.queries.ids), len(text.keys.ids), window, _block(text, window))


def _text_attention(text: PassText, attention: AttentionLayers, window: Window, observer: MapObserver) -> TextAttention:
    block = _block(text, window)
    return TextAttention(
        text=text,
        causal=attention.causal,
        window=window,
        attention=observer.attention().cpu().numpy(),
        block=block,
        overview=observer.overview().cpu().numpy() if block else None,
        reaches=attention.reaches,
    )


def _block(text: PassText, window: Window) -> int:
    """Block size of the overview in tokens; 0 if the window is the whole text."""
    if window == Window((0, len(text.queries.ids)), (0, len(text.keys.ids))):
        return 0
    return -(-text.n_tokens // OVERVIEW_BLOCKS)
