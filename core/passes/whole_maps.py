"""Whole attention maps of the texts of a batch."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float16

from attention_sieve.core.attention.observers import MapObserver, Tile
from attention_sieve.core.passes.texts import PassText


class MapCollector:
    """Stores every text's attention maps in full."""

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

    def results(self) -> list[Float16[np.ndarray, "layer head query key"]]:
        """The maps of each text."""
        return [observer.attention().cpu().numpy().astype(np.float16) for observer in self._observers]
