"""A control for roles: what a head would score if its attention did not know which key is which."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from core.attention.observers import Observer, Tile
from core.attention.settings import Reach, live_keys
from core.checkpoints.checkpoint import AttentionLayers
from core.passes.batches import to_device
from core.passes.texts import PassText


class PermutedKeys:
    """Shows an observer of scores every row of attention with its live keys in random order.

    The weights of a row and its entropy stay; what is lost is where they lie. Every head, layer and query has an order
    of its own.
    """

    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(self, scores: Observer, texts: Sequence[PassText], attention: AttentionLayers, seed: int) -> None:
        """Prepare for one batch.

        Args:
            scores: observer of the same batch.
            texts: of the batch.
            attention: of the checkpoint, of the kind that is passed.
            seed: of the orders; the same batch has the same orders.
        """
        self._scores = scores
        self._reaches = [attention.reach(layer) for layer in range(attention.n_layers)]
        self._bounds = {reach: _bounds(texts, attention.causal, reach) for reach in dict.fromkeys(self._reaches)}
        self._generator = torch.Generator().manual_seed(seed)

    def observe(self, tile: Tile) -> None:
        """Permute the rows of a tile, and pass it on with its sums and entropy computed anew."""
        attention = tile.probabilities
        bounds = to_device(self._bounds[self._reaches[tile.layer]], str(attention.device))[tile.texts, tile.queries]
        start, end = bounds[:, None, :, :1], bounds[:, None, :, 1:]
        key = torch.arange(attention.shape[-1], device=attention.device)
        is_live = (start <= key) & (key < end)
        permuted = attention.gather(-1, self._order(is_live, start, attention))
        indicators = self._scores.indicators
        sums = None if indicators is None else permuted @ indicators[tile.texts, None, : attention.shape[-1]]
        tiny = torch.finfo(permuted.dtype).tiny
        whole = permuted if tile.row_sums is None else permuted / tile.row_sums[..., None].clamp_min(tiny)
        entropy = torch.special.entr(whole).sum(-1) if self._scores.wants_entropy else None
        self._scores.observe(replace(tile, probabilities=permuted, indicator_sums=sums, entropy=entropy))

    def _order(
        self, is_live: Bool[Tensor, "text 1 query key"], start: Int[Tensor, "text 1 query 1"], attention: Tensor
    ) -> Int[Tensor, "text head query key"]:
        """For each key the key whose attention it gets: a random live one, or itself if it is not live."""
        drawn = torch.rand(attention.shape, generator=self._generator).to(attention.device)
        shuffled = torch.where(is_live, drawn, torch.inf).argsort(dim=-1)  # the live keys first, in random order
        key = torch.arange(attention.shape[-1], device=attention.device)
        place = (key - start).clamp_min(0).expand_as(shuffled)
        return torch.where(is_live, shuffled.gather(-1, place), key)


def _bounds(texts: Sequence[PassText], causal: bool, reach: Reach) -> Int[Tensor, "text query 2"]:
    """First and one-past-last live key of each query; padded queries have none."""
    bounds = np.zeros((len(texts), max(len(text.queries.ids) for text in texts), 2), dtype=np.int64)
    for row, text in enumerate(texts):
        n_own = len(text.queries.ids)
        bounds[row, :n_own] = live_keys(n_own, len(text.keys.ids), causal, reach)
    return torch.from_numpy(bounds)
