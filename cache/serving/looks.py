"""The attention of texts on screen, from memory or the store."""

from typing import Final

from cache.serving.item_requests import ItemRequest, PassResult, read
from cache.store.arrays import unpacked_attention
from cache.store.recent import Recent
from cache.store.record import Record
from cache.store.store import Store
from core.errors import TextTooLong
from core.passes.texts import TextAttention

LOOKS_BYTES: Final = 12 * 2**20
"""Of the latest texts' attention in memory, some eighty sentences: a click on a head asks for the same one again. Older
ones are read from the store."""
LOOKS_ALWAYS: Final = 2
"""Kept whatever their size: with heads switched off a page asks for two, each of 24 MiB where windows are largest."""

Look = tuple[TextAttention, Record]


class Looks:
    """What was looked at before; safe to share between threads."""

    def __init__(self, store: Store) -> None:
        """Begin with what the store has."""
        self._store = store
        self._recent: Recent[ItemRequest, Look] = Recent(LOOKS_BYTES, LOOKS_ALWAYS)

    def kept(self, wanted: ItemRequest) -> Look | None:
        """A look that needs no pass, or None.

        Raises: TextTooLong for a text that is kept as cut, and was not to be cut.
        """
        look = self._recent.get(wanted)
        if look is None and (seen := read(self._store, [wanted]).get(wanted)) is not None:
            look = self.remember(wanted, seen)
        if look is not None and look[1].n_cut and not wanted.truncate:
            n_tokens = look[1].n_tokens
            raise TextTooLong(None, n_tokens, n_tokens - look[1].n_cut)
        return look

    def remember(self, wanted: ItemRequest, seen: PassResult) -> Look:
        """Hold what a pass saw of a text."""
        if seen.attention is None:
            raise RuntimeError("A look was answered without attention.")
        look = unpacked_attention(seen.attention), seen.record
        self._recent.put(wanted, look, sum(2 * array.nbytes for array in seen.attention.values()))
        return look


def moved_back(start: tuple[int, int], first: TextAttention) -> tuple[int, int]:
    """Where the window that is asked for at `start` really begins; (0, 0) where the window is the whole text."""

    def side(begin: int, n_tokens: int, window: tuple[int, int]) -> int:
        return max(0, min(begin, n_tokens - (window[1] - window[0])))

    text, window = first.text, first.window
    queries = side(start[0], len(text.queries.ids), window.queries)
    return queries, side(start[1], len(text.keys.ids), window.keys)
