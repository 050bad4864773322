"""Sieve bias scores: the observer that computes them from tiles of attention, and the pass of a batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import MapObserver, Observer, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.passes.batches import gates, model_inputs, tensor_on
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.roles.measures import USUAL, RoleSet, TextMeasures
from attention_sieve.core.roles.observer import EntryWeights
from attention_sieve.core.roles.record import Band
from attention_sieve.core.roles.sieves import BatchSieves, batch_sieves

OVERVIEW_BLOCKS: Final = 128
"""Maximum number of blocks along the longer axis of an overview."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchScores:
    """Result of the pass of one batch."""

    texts: list[TextMeasures]
    maps: dict[int, TextAttention]
    """Attention of the requested texts, by their index in the batch."""


class _Weights:
    """The sieves of a batch as tensors, for layers with the same window."""

    def __init__(self, sieves: BatchSieves, tensor: Callable[[np.ndarray], Tensor]) -> None:
        self.row = tensor(sieves.row_weights)
        roles = sieves.columns.roles
        target = sieves.entry_at[:, 0] * n_entry_measures(roles) + sieves.entry_measure
        n_queries = sieves.row_weights.shape[1]
        self.entries = EntryWeights(sieves.entry_at, target, sieves.entry_weight, n_queries, tensor)


class ScoreObserver(Observer):
    """Accumulates each measure of each text, layer and head during the pass."""

    def __init__(self, sieves: Sequence[BatchSieves], n_heads: int, device: str, dtype: torch.dtype) -> None:
        tensor = partial(tensor_on, device=device, dtype=dtype)
        weights = {distinct: _Weights(distinct, tensor) for distinct in dict.fromkeys(sieves)}
        self._weights = [weights[layer] for layer in sieves]
        self._columns, self._roles = sieves[0].columns, sieves[0].columns.roles
        self.indicators: Tensor | None = tensor(sieves[0].indicators) if self._columns.key_sets else None
        self._applicable = np.stack([layer.applicable for layer in sieves], axis=-1)
        self._at_chance = np.stack([layer.at_chance for layer in sieves], axis=-1)
        self._references = [
            np.stack([layer.uniform for layer in sieves], axis=-1),
            np.stack([layer.greatest for layer in sieves], axis=-1),
        ]
        first_weighted = len(self._roles.row_measures)
        self.wants_entropy = bool(
            self._applicable[:, first_weighted : first_weighted + len(self._roles.weighted)].any()
        )
        n_texts = len(sieves[0].indicators)
        zeros = partial(torch.zeros, device=device, dtype=dtype)
        self._row_sums = zeros((len(sieves), n_texts, n_heads, sieves[0].row_weights.shape[-1]))
        self._weighted_sums = zeros((len(sieves), n_texts, n_heads, len(self._roles.weighted)))
        self._entry_sums = zeros((len(sieves), n_texts * n_entry_measures(self._roles), n_heads))

    def observe(self, tile: Tile) -> None:
        """Add a tile's contribution to every measure."""
        self._weights[tile.layer].entries.add(tile, self._entry_sums[tile.layer])
        if not len(self._columns):
            return
        weights = self._weights[tile.layer].row[tile.texts, tile.queries]
        sums = [_band_sums(tile, band)[..., None] for band in self._columns.bands]
        sums += [] if self.indicators is None else [_known(tile.indicator_sums)]
        columns = torch.cat(sums, dim=-1)
        if tile.row_sums is not None:
            # Padding that can attend only to padding has a sum of 0, and no weight.
            columns = columns / tile.row_sums[..., None].clamp_min(torch.finfo(columns.dtype).tiny)
        self._row_sums[tile.layer, tile.texts] += columns.flatten(2) @ weights.flatten(1, 2)
        if tile.entropy is not None:
            for place, row in enumerate(self._roles.weighted):
                inside = (columns * weights[:, None, ..., row]).sum(-1)
                self._weighted_sums[tile.layer, tile.texts, :, place] += (inside * tile.entropy).sum(-1)

    def results(self) -> list[TextMeasures]:
        """All measures of each text, with their references."""
        measures, shares = self.scores()
        references = (reference.astype(measures.dtype) for reference in self._references)
        arrays = zip(measures, shares, *references, strict=True)
        return [
            TextMeasures(roles=self._roles, measures=values, shares=its_shares, uniform=at_chance, greatest=at_most)
            for values, its_shares, at_chance, at_most in arrays
        ]

    def scores(self) -> tuple[Float[np.ndarray, "text measure layer head"], Float[np.ndarray, "text share layer head"]]:
        """All measures and shares, copied from the device at once; NaN where not applicable to a text."""
        n_layers, n_texts, n_heads, _ = self._weighted_sums.shape
        entries = self._entry_sums.view(n_layers, n_texts, n_entry_measures(self._roles), n_heads)
        rows = self._row_sums.transpose(2, 3)
        n_rows, n_entries = len(self._roles.row_measures), len(self._roles.pair_measures)
        parts = [
            rows[:, :, :n_rows],
            self._weighted_sums.transpose(2, 3),
            entries[:, :, :n_entries],
            rows[:, :, n_rows:],
            entries[:, :, n_entries:],
        ]
        measured = torch.cat(parts, dim=2).permute(1, 2, 0, 3).detach().cpu().numpy()
        n_measures = self._applicable.shape[1]
        scores = np.where(self._applicable[..., None], measured[:, :n_measures], np.nan)
        shares = measured[:, n_measures:] - self._at_chance[..., None]
        return scores.astype(measured.dtype), shares.astype(measured.dtype)


class AfterFirst(Observer):
    """Passes attention on to an observer of scores whose sieves leave the first token out."""

    indicators = None  # a pass takes those of one observer, whose sums hold the first token

    def __init__(self, scores: ScoreObserver, indicators: Float[Tensor, "text key indicator"] | None) -> None:
        """`indicators` are those of the pass, of which the sums come."""
        self._scores, self.wants_entropy = scores, scores.wants_entropy
        self._to_first = None if indicators is None else indicators[:, None, None, 0]

    def observe(self, tile: Tile) -> None:
        """Take what the first token gets out of a tile and of its sums, and pass the tile on."""
        probabilities, sums = tile.probabilities.clone(), tile.indicator_sums
        if sums is not None and self._to_first is not None:
            sums = sums - probabilities[..., :1] * self._to_first[tile.texts]
        probabilities[..., 0] = 0
        self._scores.observe(replace(tile, probabilities=probabilities, indicator_sums=sums))


def n_entry_measures(roles: RoleSet) -> int:
    """Number of measures and shares that are sums of single entries of attention."""
    return len(roles.pair_measures) + len(roles.pair_shares)


def _band_sums(tile: Tile, band: Band) -> Float[Tensor, "text head query"]:
    """Attention of each query inside a band around it, from the tile's diagonals."""
    probabilities = tile.probabilities
    n_queries, n_keys = probabilities.shape[2:]
    sums = probabilities.new_zeros(probabilities.shape[:3])
    for offset in range(tile.queries.start + band.first, tile.queries.start + band.last + 1):
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
    observers: Callable[[Observer], Sequence[Observer]] = lambda scores: (scores,),
    roles: RoleSet = USUAL,
    after_first: bool = False,
) -> BatchScores:
    """Run one batch of texts, and compute scores and, for some texts, the attention to draw.

    Args:
        texts: prepared for the kind of attention in the settings.
        windows: for texts to draw, by index in the batch, the part of their attention to return.
        observers: the observers of the pass, given that of the scores: with further ones beside it, or with one that
            changes the tiles before it passes them on.
        after_first: whether to score also with the first token in no sieve; for causal attention as it is.

    Source: Pande et al. 2021; differences from their code are documented in core/roles/sieves.py.
    """
    attention = checkpoint.attentions[settings.kind]
    sieves = layer_sieves(texts, attention, roles)
    observer = partial(
        ScoreObserver, n_heads=attention.n_heads, device=checkpoint.device, dtype=checkpoint.statistics_dtype
    )
    scores = observer(sieves)
    rest = observer(layer_sieves(texts, attention, roles, first_key=1)) if after_first else None
    beside = [] if rest is None else [AfterFirst(rest, scores.indicators)]
    map_observers = {
        row: MapObserver(row, len(texts[row].queries.ids), len(texts[row].keys.ids), window, _block(texts[row], window))
        for row, window in (windows or {}).items()
    }
    observe(
        checkpoint.model,
        model_inputs(checkpoint, texts),
        Pass(
            observers=[*observers(scores), *beside, *map_observers.values()],
            calls=attention.calls,
            gates=gates(checkpoint, settings),
            stops=True,
        ),
    )
    text_attentions = {
        row: _text_attention(texts[row], attention, window, map_observers[row])
        for row, window in (windows or {}).items()
    }
    by_text = scores.results()
    if rest is not None:
        by_text = [replace(text, after_first=other) for text, other in zip(by_text, rest.results(), strict=True)]
    return BatchScores(texts=by_text, maps=text_attentions)


def text_attention(checkpoint: Checkpoint, text: PassText, settings: PassSettings) -> TextAttention:
    """The whole attention of one text, to be drawn; a text of n tokens has n x n weights for every head."""
    whole = Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
    return score_batch(checkpoint, [text], settings, windows={0: whole}).maps[0]


def layer_sieves(
    texts: Sequence[PassText], attention: AttentionLayers, roles: RoleSet = USUAL, first_key: int = 0
) -> list[BatchSieves]:
    """Sieves of a batch for each layer; layers whose windows have the same effect on these texts share one object."""
    n_tokens = max(text.n_tokens for text in texts)
    reaches = [attention.reach(layer).within(n_tokens, attention.causal) for layer in range(attention.n_layers)]
    sieves = {reach: batch_sieves(texts, attention.causal, reach, roles, first_key) for reach in dict.fromkeys(reaches)}
    return [sieves[reach] for reach in reaches]


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
