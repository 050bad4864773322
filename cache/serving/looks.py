"""The attention of texts on screen, from memory or the store."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from attention_sieve.cache.answers import Record
from attention_sieve.cache.memory import Memory
from attention_sieve.cache.serving.item_requests import ItemRequest, read
from attention_sieve.cache.store.arrays import unpacked_attention
from attention_sieve.cache.store.store import Store
from attention_sieve.core.errors import TextTooLong
from attention_sieve.core.passes.texts import TextAttention

LOOKS_BYTES: Final = 12 * 2**20
"""Limit of the looks in memory, about 80 sentences. They have a memory of their own: every typed text brings one, which
the store holds as it is, and they would push out what takes long to compute."""

Look = tuple[TextAttention, Record]


class Looks:
    """Attention of texts viewed before; thread-safe."""

    def __init__(self, store: Store, session: Callable[[], object | None]) -> None:
        """Begin with none in memory, where each click on a head requests it again; older ones come from the store.

        Args:
            store: where they are kept.
            session: as for `Memory`.
        """
        self._store, self._memory = store, Memory(LOOKS_BYTES, session)

    def kept(self, request: ItemRequest) -> Look | None:
        """A cached look, or None.

        Raises: TextTooLong if the stored text is truncated and the request does not allow truncation.
        """
        look: Look | None = self._memory.get("look", request)
        if look is None and (record := read(self._store, [request]).get(request)) is not None:
            look = self.remember(request, record)
        if look is not None and look[1].n_cut and not request.truncate:
            n_tokens = look[1].n_tokens
            raise TextTooLong(None, n_tokens, n_tokens - look[1].n_cut)
        return look

    def remember(self, request: ItemRequest, record: Record) -> Look:
        """Keep the result of a pass in memory."""
        if record.attention is None:
            raise RuntimeError("A look was answered without attention.")
        look = unpacked_attention(record.attention), replace(record, attention=None)
        return self._memory.put("look", request, look)


def moved_back(start: tuple[int, int], first_look: TextAttention) -> tuple[int, int]:
    """Actual start of the window requested at `start`; (0, 0) if the window covers the whole text."""

    def side(begin: int, n_tokens: int, window: tuple[int, int]) -> int:
        return max(0, min(begin, n_tokens - (window[1] - window[0])))

    text, window = first_look.text, first_look.window
    queries = side(start[0], len(text.queries.ids), window.queries)
    return queries, side(start[1], len(text.keys.ids), window.keys)
