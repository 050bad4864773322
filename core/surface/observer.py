"""Surface statistics: the observer that computes them from tiles of attention."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import has_attention_interface
from attention_sieve.core.attention.observers import Tile
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.surface.frequencies import token_words
from attention_sieve.core.surface.per_text import (
    MEASURES,
    NEIGHBOURS,
    SHARES,
    SMOOTHED,
    USUAL_ROWS,
    RowSettings,
    TextSurface,
    key_kinds,
    row_weights,
    uniform_entropies,
)
from attention_sieve.core.texts.tokens import SPECIAL

HIDDEN: Final = -2.0
"""Added to the attention to special tokens and padding, to exclude them from the most attended keys."""

NOWHERE: Final = 1 << 40
"""Index beyond every key."""


class SurfaceObserver:
    """Accumulates every statistic of attention_sieve.core.surface.per_text.TextSurface of a batch during the pass.

    Shares are means over the queries for which they are defined, of rows normalised to sum to 1: `self` over all
    queries, `previous`, `next` and `first` over those with such a key that is another token, the kinds of keys over
    all, `sep from sep` over the separators and `sep from others` over the rest. Statistics that need queries and keys
    of one text are NaN in cross-attention.
    Rows are computed in the number format of the pass and summed in float64 (not on MPS, which lacks it). The error of
    a float32 pass is below 3e-6 for the same maps in float64; maps computed in another way in float32 differ
    themselves, and their statistics by up to 4e-6.
    Source: Clark et al. 2019, section 3; where their code divides by fixed numbers and smoothes rows before it takes
        their entropy, that is `RowSettings.as_in_code`. Confidence: Voita et al. 2019, section 4, who leave out the
        end mark as a key; here all special tokens, as keys and as queries. Distance, and agreement within a layer:
        Michel et al. 2019, their code.
    """

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText], settings: RowSettings = USUAL_ROWS) -> None:
        self.wants_entropy = not settings.as_in_code
        self._texts, self._attention = texts, checkpoint.attentions[texts[0].kind]
        self.wants_outputs = has_attention_interface(checkpoint.model)
        self._same_text = texts[0].queries is texts[0].keys
        self._sum_dtype = torch.float32 if checkpoint.device == "mps" else torch.float64
        self._set_keys(checkpoint, settings)
        shape = (self._attention.n_layers, len(texts), self._attention.n_heads)
        zeros = partial(torch.zeros, device=checkpoint.device, dtype=checkpoint.statistics_dtype)
        n_queries = self._is_real.shape[1]
        self._sums = zeros((*shape, len(MEASURES)), dtype=self._sum_dtype)
        self._agreement = zeros((2, *shape[:2]))
        self._columns = zeros((*shape, self._hidden.shape[1]))
        self._top = torch.zeros((*shape, n_queries), device=checkpoint.device, dtype=torch.int32)
        self._scratch = zeros(0)

    def _set_keys(self, checkpoint: Checkpoint, settings: RowSettings) -> None:
        """Prepare the kinds and weights of the tokens of a batch as tensors."""

        def tensor(rows: Sequence[np.ndarray], fill: float | int = 0, dtype: torch.dtype | None = None) -> Tensor:
            stacked = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), fill, rows[0].dtype)
            for row, rows_of_text in enumerate(rows):
                stacked[row, : len(rows_of_text)] = rows_of_text
            values = torch.from_numpy(stacked)
            target_dtype = dtype or (checkpoint.statistics_dtype if values.is_floating_point() else values.dtype)
            return to_device(values.to(target_dtype), checkpoint.device)

        kinds = [key_kinds(text.keys, settings.punctuation) for text in self._texts]
        causal = self._attention.causal
        weights = [
            row_weights(text, kinds_of_text, causal, settings.as_in_code)
            for text, kinds_of_text in zip(self._texts, kinds)
        ]
        special = [text.keys.segments == SPECIAL for text in self._texts]
        self._applies = np.stack([rows_of_text.any(axis=(0, 1)) for rows_of_text in weights])
        self.indicators: Tensor | None = tensor([rows_of_text.astype(float) for rows_of_text in kinds])
        self._weights = tensor(weights, dtype=self._sum_dtype).transpose(1, 2).contiguous()
        self._from_words = tensor([(text.queries.segments != SPECIAL).astype(float) for text in self._texts])
        self._is_real = tensor([np.ones(len(text.queries.ids)) for text in self._texts])
        self._hidden = tensor([HIDDEN * rows_of_text for rows_of_text in special], HIDDEN)
        self._special_positions = tensor([np.flatnonzero(rows_of_text) for rows_of_text in special], NOWHERE)
        self._spread = tensor([np.full(len(rows_of_text), SMOOTHED / len(rows_of_text)) for rows_of_text in special])

    def observe(self, tile: Tile) -> None:
        """Add a tile's contribution to every statistic."""
        attention, kinds = tile.probabilities, tile.indicator_sums
        assert kinds is not None, "the pass gives the sums that `indicators` ask for"
        if tile.row_sums is not None:
            # Padding that can attend only to padding has a sum of 0, and no weight.
            sums = tile.row_sums[..., None].clamp_min(torch.finfo(attention.dtype).tiny)
            attention, kinds = attention / sums, kinds / sums
        confidence, top = self._most_attended(tile, attention)
        columns = [
            *(self._neighbour(attention, tile.queries.start + offset) for offset in NEIGHBOURS.values()),
            attention[..., 0],
            *kinds.unbind(-1),
            self._entropy(tile, attention),
            confidence,
            self._distance(tile, attention, confidence, top),
        ]
        index, from_words = (tile.layer, tile.texts), self._from_words[tile.texts, None, tile.queries]
        weights = self._weights[tile.texts, :, tile.queries].flatten(1, 2)
        self._sums[index] += torch.stack(columns, 2).flatten(2).to(self._sum_dtype) @ weights
        self._top[index][..., tile.queries] = torch.where(from_words > 0, top, -1).int()
        self._columns[index][..., : attention.shape[-1]] += (from_words[:, :, None] @ attention).squeeze(2)
        self._add_agreement(tile, attention)

    def _most_attended(self, tile: Tile, attention: Tensor) -> tuple[Tensor, Tensor]:
        """Weight and index of the most attended key, special tokens excluded."""
        hidden = self._hidden[tile.texts, None, None, : attention.shape[-1]]
        largest = torch.add(attention, hidden, out=self._like(attention)).max(-1)
        return largest.values, largest.indices

    def _like(self, attention: Tensor) -> Tensor:
        """Scratch memory reused by all tiles, to avoid page faults."""
        if self._scratch.numel() < attention.numel():
            self._scratch = attention.new_empty(attention.numel())
        return self._scratch[: attention.numel()].view(attention.shape)

    def _entropy(self, tile: Tile, attention: Tensor) -> Float[Tensor, "text head query"]:
        """Entropy of each row, or, as in the authors' code, of the smoothed row."""
        if self.wants_entropy:
            assert tile.entropy is not None, "the pass gives what `wants_entropy` asks for"
            return tile.entropy
        spread = self._spread[tile.texts, None, None, : attention.shape[-1]]
        smoothed = torch.mul(attention, 1 - SMOOTHED, out=self._like(attention)).add_(spread)
        return torch.special.entr(smoothed, out=smoothed).sum(-1)

    def _neighbour(self, attention: Tensor, offset: int) -> Float[Tensor, "text head query"]:
        """Attention along a diagonal of the tile, 0 where the diagonal leaves it; offset relative to its first
        query."""
        attention_on_diagonal = attention.new_zeros(attention.shape[:3])
        n_queries, n_keys = attention.shape[2:]
        if self._same_text and -n_queries < offset < n_keys:
            diagonal = attention.diagonal(offset, dim1=2, dim2=3)
            first = max(0, -offset)
            attention_on_diagonal[..., first : first + diagonal.shape[-1]] = diagonal
        return attention_on_diagonal

    def _distance(self, tile: Tile, attention: Tensor, confidence: Tensor, top: Tensor) -> Tensor:
        """Distance in tokens from each query to its most attended key, special tokens included."""
        special_positions = self._special_positions[tile.texts]
        if special_positions.shape[1]:
            positions = special_positions.clamp(0, attention.shape[-1] - 1)
            positions = positions[:, None, None].expand(*attention.shape[:3], -1)
            weights = attention.gather(-1, positions)
            largest = weights.masked_fill(special_positions[:, None, None] != positions, HIDDEN).max(-1)
            special = positions.gather(-1, largest.indices[..., None]).squeeze(-1)
            top = torch.where(largest.values > confidence, special, top)
        queries = torch.arange(tile.queries.start, tile.queries.stop, device=top.device)
        # Where the head was removed, the confidence is NaN, and so is the distance.
        return (top - queries).abs().to(attention.dtype) + 0 * confidence

    def _add_agreement(self, tile: Tile, attention: Tensor) -> None:
        """The mean over all pairs of heads of a product of rows is the square of the mean row."""
        is_real = self._is_real[tile.texts, tile.queries]
        present = slice(None) if tile.kept is None else list(tile.kept)
        attention = attention[:, present]
        n_heads = attention.shape[1]
        rows = attention.mean(1).square_().sum(-1)
        self._agreement[0, tile.layer, tile.texts] += (rows * is_real).sum(-1)
        if tile.outputs is not None:
            outputs = tile.outputs[:, present]
            lengths = outputs.norm(dim=-1).clamp_min(torch.finfo(attention.dtype).tiny)
            mean_output = torch.einsum("bhq,bhqc->bqc", lengths.reciprocal(), outputs) / n_heads
            self._agreement[1, tile.layer, tile.texts] += (mean_output.square().sum(-1) * is_real).sum(-1)

    def results(self) -> list[TextSurface]:
        """Statistics of each text."""
        agreement = (self._agreement / self._is_real.sum(1)).permute(2, 0, 1).cpu().numpy()
        columns = self._columns.masked_fill(self._hidden[:, None] < 0, HIDDEN).argmax(-1).transpose(0, 1).cpu().numpy()
        sums = self._sums.permute(1, 3, 0, 2).cpu().numpy()
        measures = np.where(self._applies[..., None, None], sums, np.nan).astype(sums.dtype)
        top = self._top.transpose(0, 1).cpu().numpy()
        return [
            self._result(text, *arrays)
            for text, *arrays in zip(self._texts, measures, agreement, top, columns, strict=True)
        ]

    def _result(
        self, text: PassText, measures: np.ndarray, agreement: np.ndarray, top: np.ndarray, columns: np.ndarray
    ) -> TextSurface:
        by_measure = dict(zip(MEASURES, measures))
        uniform, cls_uniform = uniform_entropies(text, self._attention)
        return TextSurface(
            shares=measures[: len(SHARES)],
            entropy=by_measure["entropy"],
            cls_entropy=by_measure["cls entropy"],
            uniform_entropy=uniform,
            cls_uniform_entropy=cls_uniform,
            confidence=by_measure["confidence"],
            distance=by_measure["distance"],
            top_key=top[..., : len(text.queries.ids)].astype(np.int16 if len(text.keys.ids) < 1 << 15 else np.int32),
            top_column=columns,
            agreement=agreement[0],
            output_agreement=agreement[1] * (1 if self.wants_outputs else np.nan),
            key_words=token_words(text.keys),
        )
