"""Attention entry by entry: whole maps of the texts of a batch, or all heads' attention of one token."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import MapObserver, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.texts import PassText


class MapCollector:
    """Stores every text's attention maps in full."""

    precision: ClassVar[type[np.floating[Any]]] = np.float16
    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(self, texts: Sequence[PassText]) -> None:
        """Prepare to store the attention of these texts, without padding."""
        self._observers = [
            MapObserver(row, len(text.queries.ids), len(text.keys.ids)) for row, text in enumerate(texts)
        ]

    def observe(self, tile: Tile) -> None:
        """Copy a tile to the maps of its texts."""
        for observer in self._observers[tile.texts]:
            observer.observe(tile)

    def results(self) -> list[Float[np.ndarray, "layer head query key"]]:
        """The maps of each text."""
        return [observer.attention().cpu().numpy().astype(self.precision) for observer in self._observers]


class PreciseMapCollector(MapCollector):
    """The same in single precision, in which rows sum to 1."""

    precision = np.float32


def attention_of_token(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int
) -> Float[np.ndarray, "layer head key"]:
    """Attention of one token of a text to every key, whatever the length of the text.

    Args:
        checkpoint: loaded.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off.
        position: index of the token.

    Returns: NaN for heads that are not there.
    """
    n_queries, n_keys = len(text.queries.ids), len(text.keys.ids)
    row = MapObserver(0, n_queries, n_keys, Window((position, position + 1), (0, n_keys)))
    calls = checkpoint.attentions[text.kind].calls
    of_pass = Pass(observers=[row], calls=calls, gates=gates(checkpoint, settings), stops=True)
    observe(checkpoint.model, model_inputs(checkpoint, [text]), of_pass)
    return row.attention()[:, :, 0].cpu().numpy()
