"""Deletes the texts of a public server's visitors, and everything computed from them, after public.HOURS_KEPT hours.

What is read from uploads and what is computed of texts lies in memories of the class `Memory`; words of texts also lie
in some results of the store. Uploads, and what a page remembers, go with their session, as Streamlit ends it.
"""

import time
from threading import Event, Thread
from typing import Final
from weakref import ReferenceType, ref

from attention_sieve.cache.memory import forget_everywhere
from attention_sieve.cache.store.store import Store
from attention_sieve.dashboard.public import HOURS_KEPT
from attention_sieve.dashboard.runs import forget_ended

EVERY: Final = 60
"""Seconds between two rounds."""


def forget(store: Store, now: float) -> None:
    """Forget everything that would be older than HOURS_KEPT by the next round.

    Args:
        now: in seconds since 1970.
    """
    before = now + EVERY - 3600 * HOURS_KEPT
    forget_everywhere(before)
    store.forget_words(before)
    forget_ended(before)


def forget_from_now_on(store: Store) -> None:
    """Start a thread that does this for as long as the store is in use."""
    Thread(target=_forget_regularly, args=(ref(store),), name="forget texts", daemon=True).start()


def _forget_regularly(reference: ReferenceType[Store]) -> None:
    pause = Event()
    while (store := reference()) is not None:
        forget(store, time.time())
        del store
        pause.wait(EVERY)
