"""Weighted sums of single attention entries, for measures of pairs of words; attention to the first token."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_sieve.core.attention.observers import Observer, Tile
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import tensor_on
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.matched_pairs import MatchedSieves, TextMatches


class EntryWeights:
    """The entries that measures read, as tensors, for layers with the same window."""

    def __init__(
        self,
        at: Int[np.ndarray, "entry 3"],
        target: Int[np.ndarray, " entry"],
        weight: Float[np.ndarray, " entry"],
        n_queries: int,
        tensor: Callable[[np.ndarray], Tensor],
    ) -> None:
        """Targets are rows of the sums that an entry is added to; `n_queries` is that of the longest text."""
        self._at, self._target, self._weight = tensor(at), tensor(target), tensor(weight)
        self._n_queries = n_queries
        self._row = at[:, 0] * n_queries + at[:, 1]

    def add(self, tile: Tile, sums: Float[Tensor, "target head"]) -> None:
        """Add a tile's entries to the sums of its layer."""
        entries = self._of(tile)
        if entries.stop > entries.start:
            text, query, key = self._at[entries].T
            text, query = text - tile.texts.start, query - tile.queries.start
            attention = tile.probabilities[text, :, query, key]
            if tile.row_sums is not None:
                attention = attention / tile.row_sums[text, :, query]
            sums.index_add_(0, self._target[entries], attention * self._weight[entries, None])

    def _of(self, tile: Tile) -> slice:
        """Range of the entries inside a tile, which are contiguous: a tile has whole texts, or queries of one text."""
        first = tile.texts.start * self._n_queries + tile.queries.start
        last = (tile.texts.stop - 1) * self._n_queries + tile.queries.stop
        start, stop = np.searchsorted(self._row, [first, last])
        return slice(int(start), int(stop))


class MatchedObserver(Observer):
    """Scores of pairs of words that a relation joins, and of pairs at the same distance that none joins."""

    def __init__(
        self, sieves: Sequence[MatchedSieves], n_queries: int, n_heads: int, device: str, dtype: torch.dtype
    ) -> None:
        tensor = partial(tensor_on, device=device, dtype=dtype)
        weights = {
            distinct: EntryWeights(distinct.at, distinct.target, distinct.weight, n_queries, tensor)
            for distinct in dict.fromkeys(sieves)
        }
        self._weights = [weights[layer] for layer in sieves]
        self._applicable = np.stack([layer.applicable for layer in sieves], axis=-1)
        n_targets = 2 * self._applicable.shape[0] * self._applicable.shape[1]
        self._sums = torch.zeros((len(sieves), n_targets, n_heads), device=device, dtype=dtype)

    def observe(self, tile: Tile) -> None:
        """Add a tile's entries."""
        self._weights[tile.layer].add(tile, self._sums[tile.layer])

    def results(self) -> list[TextMatches]:
        """Scores of each text."""
        n_layers, _, n_heads = self._sums.shape
        half = self._applicable.shape[1]
        sums = self._sums.view(n_layers, -1, 2 * half, n_heads).permute(1, 2, 0, 3).cpu().numpy()
        both = np.concatenate([self._applicable, self._applicable], axis=1)
        scores = np.where(both[..., None], sums, np.nan).astype(np.float32)
        return [TextMatches(related=text_scores[:half], unrelated=text_scores[half:]) for text_scores in scores]


class FirstToken(Observer):
    """Attention of the first queries of each text to the first token, as the model uses it: rows of a model that has
    sinks of its own sum to less than 1."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText], n_tokens: int) -> None:
        attention = checkpoint.attentions[texts[0].kind]
        self._n_tokens, self._causal = n_tokens, attention.causal
        self._too_short = np.array([len(text.queries.ids) < n_tokens for text in texts])
        shape = (attention.n_layers, len(texts), attention.n_heads)
        self._sums = torch.zeros(shape, device=checkpoint.device, dtype=checkpoint.statistics_dtype)

    def observe(self, tile: Tile) -> None:
        """Add a tile's queries."""
        n_queries = max(0, min(self._n_tokens - tile.queries.start, tile.queries.stop - tile.queries.start))
        self._sums[tile.layer, tile.texts] += tile.probabilities[:, :, :n_queries, 0].sum(-1)

    def results(self) -> list[Float[np.ndarray, "layer head"]]:
        """Means of each text; NaN for one that is too short, and in a model that also looks ahead."""
        means = (self._sums / self._n_tokens).permute(1, 0, 2).cpu().numpy()
        means[self._too_short | (not self._causal)] = np.nan
        return list(means)
