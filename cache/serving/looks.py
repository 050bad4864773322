"""The attention of texts on screen, from memory or the store."""

from typing import Final

from attention_sieve.cache.serving.item_requests import ItemRequest, PassResult, read
from attention_sieve.cache.store.arrays import unpacked_attention
from attention_sieve.cache.store.recent import Recent
from attention_sieve.cache.store.record import Record
from attention_sieve.cache.store.store import Store
from attention_sieve.core.errors import TextTooLong
from attention_sieve.core.passes.texts import TextAttention

LOOKS_BYTES: Final = 12 * 2**20
"""In-memory cache of recent texts' attention, about 80 sentences, because each click on a head requests it again. Older
ones are read from the store."""
LOOKS_ALWAYS: Final = 2
"""Kept regardless of size: with heads switched off, a page requests two, of up to 24 MiB each."""

Look = tuple[TextAttention, Record]


class Looks:
    """Attention of texts viewed before; thread-safe."""

    def __init__(self, store: Store) -> None:
        """Begin with an empty memory; older attention comes from the store."""
        self._store = store
        self._recent: Recent[ItemRequest, Look] = Recent(LOOKS_BYTES, LOOKS_ALWAYS)

    def kept(self, request: ItemRequest) -> Look | None:
        """A cached look, or None.

        Raises: TextTooLong if the stored text is truncated and the request does not allow truncation.
        """
        look = self._recent.get(request)
        if look is None and (result := read(self._store, [request]).get(request)) is not None:
            look = self.remember(request, result)
        if look is not None and look[1].n_cut and not request.truncate:
            n_tokens = look[1].n_tokens
            raise TextTooLong(None, n_tokens, n_tokens - look[1].n_cut)
        return look

    def remember(self, request: ItemRequest, result: PassResult) -> Look:
        """Keep the result of a pass in memory."""
        if result.attention is None:
            raise RuntimeError("A look was answered without attention.")
        look = unpacked_attention(result.attention), result.record
        self._recent.put(request, look, sum(2 * array.nbytes for array in result.attention.values()))
        return look


def moved_back(start: tuple[int, int], first_look: TextAttention) -> tuple[int, int]:
    """Actual start of the window requested at `start`; (0, 0) if the window covers the whole text."""

    def side(begin: int, n_tokens: int, window: tuple[int, int]) -> int:
        return max(0, min(begin, n_tokens - (window[1] - window[0])))

    text, window = first_look.text, first_look.window
    queries = side(start[0], len(text.queries.ids), window.queries)
    return queries, side(start[1], len(text.keys.ids), window.keys)
