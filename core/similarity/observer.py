"""Divergence between the attention of any two heads: an observer that stores the maps of a batch and compares them.

Heads of all layers are compared, so the maps of a batch are stored until the end of the pass. Batches are small enough,
and long texts are sampled to few enough rows, to stay within MAP_ENTRIES.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observers import Observer, Tile
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.passes.batches import BATCH_TOKENS, collect, to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.pauses import pause
from attention_sieve.core.similarity.distances import (
    FLOOR,
    MAP_ENTRIES,
    MOST,
    SMOOTHING,
    USUAL_DISTANCES,
    DistanceSettings,
    TextDistances,
    sampled_queries,
)

PAIR_ENTRIES: Final = 1 << 17
"""Entries of pairs of maps that are processed at once; two such arrays fit into a CPU cache."""
GPU_PAIR_ENTRIES: Final = 1 << 24


def text_distances(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    distance_settings: DistanceSettings = USUAL_DISTANCES,
) -> Iterator[list[tuple[int, TextDistances]]]:
    """Run texts through the model and compare the heads, batch by batch.

    Yields: index of the text and its distances; not in input order.

    Source: Clark et al. 2019, section 6; their code smooths the rows, which is a setting here.
    """
    attention = checkpoint.attentions[settings.kind]
    n_heads = attention.n_layers * attention.n_heads
    batch_tokens = max(1, min(BATCH_TOKENS[checkpoint.device], MAP_ENTRIES // (n_heads * distance_settings.rows)))
    collector = partial(DistanceCollector, checkpoint, attention, settings=distance_settings)
    return collect(checkpoint, texts, settings, collector, batch_tokens=batch_tokens)


class DistanceCollector(Observer):
    """Stores the rows of each text of a batch, for all layers and heads, and compares them after the pass."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        attention: AttentionLayers,
        texts: Sequence[PassText],
        settings: DistanceSettings,
    ) -> None:
        shape, device = (attention.n_layers, attention.n_heads), checkpoint.device
        sizes = [(len(text.queries.ids), len(text.keys.ids)) for text in texts]
        self._n_queries = [n_queries for n_queries, _ in sizes]
        self._sampled = [sampled_queries(*size, shape[0] * shape[1], settings.rows) for size in sizes]
        self._sampled_tensors = [to_device(torch.from_numpy(sampled), device) for sampled in self._sampled]
        self._maps = [
            torch.zeros((*shape, len(sampled), n_keys), dtype=checkpoint.statistics_dtype, device=device)
            for sampled, (_, n_keys) in zip(self._sampled, sizes)
        ]
        self._settings = settings

    def observe(self, tile: Tile) -> None:
        """Copy the sampled rows."""
        queries = tile.queries
        for row in range(tile.texts.start, tile.texts.stop):
            first, last = np.searchsorted(self._sampled[row], [queries.start, queries.stop])
            if first == last:
                continue
            # Tiles of causal models may omit later keys; padding is cut off.
            target = self._maps[row][tile.layer, :, first:last, : tile.probabilities.shape[-1]]
            indices = self._sampled_tensors[row][first:last] - queries.start
            rows = tile.probabilities[row - tile.texts.start, :, :, : target.shape[-1]].index_select(1, indices)
            if tile.row_sums is not None:
                rows = rows / tile.row_sums[row - tile.texts.start].index_select(1, indices)[..., None]
            target.copy_(rows)

    def results(self) -> list[TextDistances]:
        """Distances of each text."""
        with torch.inference_mode():
            texts = [self._compare(maps) for maps in self._maps]
            pairs, relative = (torch.stack(arrays).cpu().numpy() for arrays in zip(*texts))
        return [
            TextDistances(pairs=pairs[row], relative=relative[row], n_queries=n_queries)
            for row, n_queries in enumerate(self._n_queries)
        ]

    def _compare(self, maps: Float[Tensor, "layer head row key"]) -> tuple[Tensor, Tensor]:
        if self._settings.smoothed:
            maps.mul_(1 - SMOOTHING).add_(SMOOTHING / maps.shape[-1])
        maps += FLOOR
        information = (maps.log() * maps).sum(-1)
        return divergences(maps.flatten(0, 1), information.flatten(0, 1)), _relative(maps, information)


def divergences(maps: Float[Tensor, "map row key"], information: Float[Tensor, "map row"]) -> Float[Tensor, " pair"]:
    """Jensen-Shannon divergence of every two maps, mean over their rows, in nats.

    Half the sum of (a + b) ln(a + b) is taken from that of a ln a and of b ln b: one logarithm for each entry of a
    pair. Rounding leaves up to 1e-6 in float32 where rows hardly differ.

    Args:
        maps: rows that sum to 1, without zeros.
        information: their negative entropy in nats.

    Returns: 0 to ln 2, in the order of `scipy.spatial.distance.squareform`.
    """
    entries = PAIR_ENTRIES if maps.device.type == "cpu" else GPU_PAIR_ENTRIES
    batch_size = max(1, entries // maps[0].numel())
    sums = maps.new_empty((batch_size, *maps.shape[1:]))
    logs = torch.empty_like(sums)
    parts = [maps.new_empty(0)]
    for first in range(len(maps)):
        pause()
        for start in range(first + 1, len(maps), batch_size):
            stop = min(start + batch_size, len(maps))
            pair_sums = torch.add(maps[start:stop], maps[first], out=sums[: stop - start])
            pair_information = torch.log(pair_sums, out=logs[: stop - start]).mul_(pair_sums).sum(-1)
            parts.append((information[first] + information[start:stop] - pair_information).mean(-1) / 2)
    return (torch.cat(parts) + MOST).clamp_(0, MOST)


def _relative(
    maps: Float[Tensor, "layer head row key"], information: Float[Tensor, "layer head row"]
) -> Float[Tensor, "layer head other_head"]:
    """Divergence of each head from the others of its layer, mean over rows; an entry below FLOOR counts as FLOOR."""
    by_row = maps.transpose(1, 2)
    crossed = by_row @ by_row.log().mT
    return (information.mT[..., None] - crossed).mean(1).clamp_min_(0)
