"""Runs one batch through two checkpoints in parallel: scores of both, and the divergence of their attention.

Each checkpoint has its own thread, and only one runs at a time: the reference computes a tile and waits, the other
computes the same tile, the divergence of their rows is accumulated, and both continue. No attention map is stored, so
memory is that of two passes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from queue import SimpleQueue
from typing import Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import has_attention_interface, tiles
from attention_sieve.core.attention.observers import Observer, Tile
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText, same_tokens
from attention_sieve.core.roles.measures import TextMeasures
from attention_sieve.core.roles.scores import score_batch

Done = TypeVar("Done")

MOST: Final = math.log(2)
"""Maximum divergence, that of two rows that share no key, in nats."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedBatch:
    """Result of two passes of a batch."""

    a: Sequence[TextMeasures]
    """Measures of each text under the reference."""
    b: Sequence[TextMeasures]
    """Measures of each text under the compared checkpoint."""
    divergence: Float[np.ndarray, "text layer head"] | None
    """Mean over the queries of the Jensen-Shannon divergence between the two rows, in nats, 0 to ln 2; NaN for a text
    whose tokens differ between the two. None if the numbers of layers or heads differ."""


def compare_batch(
    a: Checkpoint,
    b: Checkpoint,
    texts_a: Sequence[PassText],
    texts_b: Sequence[PassText],
    settings_a: PassSettings,
    settings_b: PassSettings,
) -> ComparedBatch:
    """Scores of the same texts under two checkpoints, and the divergence of their attention.

    Args:
        a, b: loaded, on the same device.
        texts_a, texts_b: the same texts, prepared for each.
    """

    def separately(rows: Sequence[int]) -> tuple[list[TextMeasures], list[TextMeasures]]:
        measures_a = score_batch(a, [texts_a[row] for row in rows], settings_a).texts
        return measures_a, score_batch(b, [texts_b[row] for row in rows], settings_b).texts

    def in_step(rows: Sequence[int]) -> tuple[list[TextMeasures], list[TextMeasures], np.ndarray]:
        return _in_step(
            (a, b), ([texts_a[row] for row in rows], [texts_b[row] for row in rows]), (settings_a, settings_b)
        )

    rows = range(len(texts_a))
    shape = _shape(a, settings_a)
    if shape != _shape(b, settings_b):
        measures_a, measures_b = separately(rows)
        return ComparedBatch(a=measures_a, b=measures_b, divergence=None)
    same = [row for row in rows if same_tokens(texts_a[row], texts_b[row])]
    different = [row for row in rows if row not in same]
    parts = [in_step(same)] if same else []
    if different:
        parts.append((*separately(different), np.full((len(different), *shape), np.nan, np.float32)))
    order = np.argsort([*same, *different]).tolist()
    measures_a, measures_b, divergence = (list(chain.from_iterable(sides)) for sides in zip(*parts))
    return ComparedBatch(
        a=[measures_a[index] for index in order],
        b=[measures_b[index] for index in order],
        divergence=np.stack([divergence[index] for index in order]),
    )


def row_divergence(a: Float[Tensor, "*row key"], b: Float[Tensor, "*row key"]) -> Float[Tensor, "*row"]:
    """Jensen-Shannon divergence between rows that sum to 1, in nats.

    Computed as two divergences from the mean of the rows, which is precise for nearly equal rows; a difference of
    entropies is not. Source: Lin 1991.
    """
    middle = ((a + b) / 2).clamp_min(torch.finfo(a.dtype).tiny)
    halves = torch.special.xlogy(a, a / middle) + torch.special.xlogy(b, b / middle)
    return (halves.sum(-1) / 2).clamp(0, MOST)


def _shape(checkpoint: Checkpoint, settings: PassSettings) -> tuple[int, int]:
    attention = checkpoint.attentions[settings.kind]
    return attention.n_layers, attention.n_heads


def _in_step(
    checkpoints: tuple[Checkpoint, Checkpoint],
    texts: tuple[Sequence[PassText], Sequence[PassText]],
    settings: tuple[PassSettings, PassSettings],
) -> tuple[list[TextMeasures], list[TextMeasures], np.ndarray]:
    """Measures of both, and the divergence, for texts that have the same tokens under both."""
    (a, b), (texts_a, texts_b), (settings_a, settings_b) = checkpoints, texts, settings
    sums = _DivergenceSums(a, texts_a, _shape(a, settings_a))
    steps = _Steps(sums.add)
    with ThreadPoolExecutor(1, thread_name_prefix="compared checkpoint") as executor:
        observer_a = _Observes(steps.lead, has_attention_interface(a.model))
        observer_b = _Observes(steps.follow, has_attention_interface(b.model))
        pass_a = partial(score_batch, a, texts_a, settings_a, observers=lambda scores: (scores, observer_a))
        pass_b = partial(score_batch, b, texts_b, settings_b, observers=lambda scores: (scores, observer_b))
        measures_b = executor.submit(steps.follower, lambda: pass_b().texts)
        measures_a = steps.leader(lambda: pass_a().texts, measures_b)
        return measures_a, measures_b.result(), sums.mean()


class _DivergenceSums:
    """Accumulates the divergence of each text, layer and head over pairs of tiles."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText], shape: tuple[int, int]) -> None:
        n_layers, n_heads = shape
        dtype, device = checkpoint.statistics_dtype, checkpoint.device
        self._n_queries = torch.tensor([len(text.queries.ids) for text in texts], device=device)
        self._sums = torch.zeros((len(texts), n_layers, n_heads), dtype=dtype, device=device)

    def add(self, a: Tile, b: Tile) -> None:
        """Add the rows of a pair of tiles, without padding."""
        if (a.layer, a.texts, a.queries) != (b.layer, b.texts, b.queries):
            raise RuntimeError(f"The passes are out of step: layer {a.layer} of one, layer {b.layer} of the other.")
        rows = row_divergence(*_as_wide(_shares(a), _shares(b)))
        queries = torch.arange(a.queries.start, a.queries.stop, device=rows.device)
        is_real = queries < self._n_queries[a.texts, None]
        self._sums[a.texts, a.layer] += (rows * is_real[:, None]).sum(-1)

    def mean(self) -> Float[np.ndarray, "text layer head"]:
        """Mean over each text's queries."""
        return (self._sums / self._n_queries[:, None, None]).cpu().numpy()


def _shares(tile: Tile) -> Float[Tensor, "text head query key"]:
    if tile.row_sums is None:
        return tile.probabilities
    return tile.probabilities / tile.row_sums[..., None].clamp_min(torch.finfo(tile.row_sums.dtype).tiny)


def _as_wide(a: Tensor, b: Tensor) -> list[Tensor]:
    """Pad both to the same number of keys, because tiles of causal models may omit later keys."""
    width = max(a.shape[-1], b.shape[-1])
    return [torch.nn.functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x for x in (a, b)]


class _Observes(Observer):
    """Passes every tile to a function; the single tile of an intercepted softmax is split as other tiles are."""

    def __init__(self, on_tile: Callable[[Tile], None], has_interface: bool) -> None:
        self._on_tile, self._has_interface = on_tile, has_interface

    def observe(self, tile: Tile) -> None:
        for part in [tile] if self._has_interface else _parts(tile):
            self._on_tile(part)


def _parts(tile: Tile) -> Iterator[Tile]:
    shape = tile.probabilities.shape
    for texts, queries in tiles((shape[0], shape[1], shape[2], shape[3]), tile.probabilities.device.type):
        rows = tile.probabilities[texts, :, queries]
        yield replace(tile, texts=texts, queries=queries, probabilities=rows, indicator_sums=None, entropy=None)


class _Steps:
    """Synchronises two passes that take turns tile by tile; if one fails, the other ends, too."""

    def __init__(self, on_pair: Callable[[Tile, Tile], None]) -> None:
        self._on_pair = on_pair
        self._to_follower: SimpleQueue[Tile | None] = SimpleQueue()
        self._to_leader: SimpleQueue[bool] = SimpleQueue()
        self._tile: Tile | None = None

    def lead(self, tile: Tile) -> None:
        """Offer a tile, and wait until the follower has processed it."""
        self._to_follower.put(tile)
        if not self._to_leader.get():
            raise _PassEnded

    def follow(self, tile: Tile) -> None:
        """Process the leader's tile together with this one, release the leader, and wait for its next tile."""
        if self._tile is None:
            raise _PassEnded
        self._on_pair(self._tile, tile)
        self._tile = None
        self._to_leader.put(True)
        self._tile = self._to_follower.get()

    def leader(self, work: Callable[[], Done], follower: Future) -> Done:
        """Run the reference's pass; raises the error that ended either pass."""
        try:
            return work()
        except _PassEnded:
            follower.result()
            raise
        finally:
            self._to_follower.put(None)

    def follower(self, work: Callable[[], Done]) -> Done:
        """Run the other pass, starting when the leader has its first tile."""
        try:
            self._tile = self._to_follower.get()
            return work()
        finally:
            self._tile = None
            self._to_leader.put(False)


class _PassEnded(RuntimeError):
    """The other pass has ended, by an error or because it has fewer tiles."""

    def __init__(self) -> None:
        super().__init__("The passes are out of step: one of them ended before the other.")
