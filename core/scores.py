"""Sieve bias scores: the observer that turns tiles of attention into them, and the batches it is fed with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention import MapObserver, Tile, observe
from core.checkpoints import Checkpoint
from core.measures import ROW_MEASURES, SYNTACTIC_MEASURES
from core.parses import TokenPair
from core.sieves import LOCAL_RADIUS, BatchSieves, batch_sieves
from core.tokens import TokenizedText

BATCH_TOKENS = {"cpu": 1024, "mps": 4096, "cuda": 16384}
"""Tokens of a batch, padding included, by device: on a CPU small batches stay in its cache."""


class ScoreObserver:
    """Adds up each measure of each text, layer and head while the tiles pass."""

    wants_entropy: bool

    def __init__(self, sieves: BatchSieves, n_layers: int, n_heads: int, device: str, dtype: torch.dtype) -> None:
        def tensor(array: np.ndarray) -> Tensor:
            values = torch.from_numpy(array)
            # To the number format first: MPS knows no float64.
            return (values.to(dtype) if values.is_floating_point() else values).to(device)

        self._sieves = sieves
        self.indicators: Tensor | None = tensor(sieves.indicators)
        self._row_weights = tensor(sieves.row_weights)
        self._entry_at, self._entry_weight = tensor(sieves.entry_at), tensor(sieves.entry_weight)
        n_texts = len(sieves.indicators)
        self._entry_place = sieves.entry_at[:, 0] * sieves.indicators.shape[1] + sieves.entry_at[:, 1]
        self._entry_target = tensor(sieves.entry_at[:, 0] * len(SYNTACTIC_MEASURES) + sieves.entry_measure)
        self.wants_entropy = bool(sieves.applicable[:, ROW_MEASURES.index("block without entropy")].any())
        zeros = partial(torch.zeros, device=device, dtype=dtype)
        self._row_sums = zeros((n_layers, n_texts, n_heads, len(ROW_MEASURES)))
        self._block = zeros((n_layers, n_texts, n_heads))
        self._syntactic = zeros((n_layers, n_texts * len(SYNTACTIC_MEASURES), n_heads))

    def observe(self, tile: Tile) -> None:
        """Add a tile's share to every measure."""
        weights = self._row_weights[tile.texts, tile.queries]
        columns = torch.cat([_band_sums(tile)[..., None], _known(tile.indicator_sums)], dim=-1)
        self._row_sums[tile.layer, tile.texts] += columns.flatten(2) @ weights.flatten(1, 2)
        if tile.entropy is not None:
            own_block = (columns * weights[:, None, ..., -1]).sum(-1)
            self._block[tile.layer, tile.texts] += (own_block * tile.entropy).sum(-1)
        self._add_entries(tile)

    def _add_entries(self, tile: Tile) -> None:
        chosen = self._entries_of(tile)
        if chosen.stop > chosen.start:
            text, query, key = self._entry_at[chosen].T
            attention = tile.probabilities[text - tile.texts.start, :, query - tile.queries.start, key]
            weighted = attention * self._entry_weight[chosen, None]
            self._syntactic[tile.layer].index_add_(0, self._entry_target[chosen], weighted)

    def _entries_of(self, tile: Tile) -> slice:
        """A tile holds whole texts or some queries of one text, so its entries are neighbours."""
        width = self._sieves.indicators.shape[1]
        first = tile.texts.start * width + tile.queries.start
        last = (tile.texts.stop - 1) * width + tile.queries.stop
        start, stop = np.searchsorted(self._entry_place, [first, last])
        return slice(int(start), int(stop))

    def scores(self) -> Float[np.ndarray, "text measure layer head"]:
        """Every measure of MEASURES; NaN where it is not applicable to a text. One copy back from the device."""
        n_layers, n_texts, n_heads = self._block.shape
        syntactic = self._syntactic.view(n_layers, n_texts, len(SYNTACTIC_MEASURES), n_heads)
        by_text = [self._row_sums.transpose(2, 3), self._block[:, :, None], syntactic]
        measured = torch.cat(by_text, dim=2).permute(1, 2, 0, 3).cpu().numpy()
        return np.where(self._sieves.applicable[:, :, None, None], measured, np.nan).astype(measured.dtype)


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


def score_batches(
    checkpoint: Checkpoint, texts: Sequence[TokenizedText], pairs: Sequence[Sequence[TokenPair]]
) -> Iterator[tuple[tuple[int, ...], Float[np.ndarray, "text measure layer head"]]]:
    """Scores of texts, batch by batch as they are done.

    Yields: places of the batch's texts among those given, and their scores by MEASURES (1 = uniform attention; NaN
    where not applicable; `block` is weighted with row entropy in nats).
    Source: Pande et al. 2021; decisions in this project's favour are named in core/sieves.py.
    """
    for batch in plan_batches([len(text.ids) for text in texts], BATCH_TOKENS[checkpoint.device]):
        chosen = [texts[position] for position in batch.positions]
        sieves = batch_sieves(chosen, [pairs[position] for position in batch.positions], checkpoint.causal)
        observer = ScoreObserver(
            sieves, checkpoint.n_layers, checkpoint.n_heads, checkpoint.device, checkpoint.statistics_dtype
        )
        observe(checkpoint.model, *model_inputs(checkpoint, chosen), [observer], last_layer=checkpoint.n_layers - 1)
        yield batch.positions, observer.scores()


def attention_map(checkpoint: Checkpoint, text: TokenizedText) -> Float[np.ndarray, "layer head query key"]:
    """The whole attention of one text, for the screen; rows sum to 1."""
    observer = MapObserver()
    observe(checkpoint.model, *model_inputs(checkpoint, [text]), [observer], last_layer=checkpoint.n_layers - 1)
    return observer.attention().cpu().numpy()


def model_inputs(checkpoint: Checkpoint, texts: Sequence[TokenizedText]) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Ids, padding mask (None when nothing is padded) and type ids (None when the model has none) of a batch."""
    width = max(len(text.ids) for text in texts)
    ids = np.full((len(texts), width), checkpoint.tokenizer.pad_token_id or 0, dtype=np.int64)
    type_ids = np.zeros_like(ids)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        n_tokens = len(text.ids)
        ids[row, :n_tokens], type_ids[row, :n_tokens], mask[row, :n_tokens] = text.ids, text.type_ids, 1

    def tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(checkpoint.device)

    return (
        tensor(ids),
        None if mask.all() else tensor(mask),
        tensor(type_ids) if checkpoint.takes_type_ids else None,
    )
