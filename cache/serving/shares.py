"""Limit on how much of the store each session may fill, so that no visitor of a public server evicts others' work."""

import time
from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

from attention_sieve.core.errors import AnalysisError

SECONDS: Final = 3600
"""Period of a share."""
STOPPED_BYTES: Final = 2**16
"""Size counted for each text of a stopped or failed request: about that of a sentence on screen."""


class Quotas:
    """Bytes computed for each session within the last hour; thread-safe."""

    def __init__(
        self, n_bytes: int, session: Callable[[], Hashable], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with nothing used.

        Args:
            n_bytes: limit on the results of one session, before compression.
            session: returns the current session; called in that session's thread.
            clock: returns the time in seconds.
        """
        self._n_bytes, self._session, self._clock = n_bytes, session, clock
        self._used: dict[Hashable, deque[tuple[float, int]]] = {}
        """Time and number of bytes, oldest first."""
        self._lock = Lock()

    def check(self) -> None:
        """Raise if the current session has used its share.

        Raises: AnalysisError, which says when the session can compute again.
        """
        with self._lock:
            self._forget_old()
            used = self._used.get(self._session(), deque())
            if sum(n_bytes for _, n_bytes in used) < self._n_bytes:
                return
            minutes = max(1, round((used[0][0] + SECONDS - self._clock()) / 60))
        megabytes = f"{self._n_bytes / 1e6:,.1f}".removesuffix(".0")
        raise AnalysisError(
            f"This page has had {megabytes} MB of results computed within an hour, which is the limit for one page "
            f"on this server. Wait about {minutes} minute{'s' * (minutes > 1)}, go back to what you have seen "
            "before, or use Attention Sieve on a machine of your own."
        )

    def add(self, n_bytes: int) -> None:
        """Count bytes computed for the current session."""
        with self._lock:
            self._used.setdefault(self._session(), deque()).append((self._clock(), n_bytes))

    def _forget_old(self) -> None:
        expired = self._clock() - SECONDS
        for session, used in list(self._used.items()):
            while used and used[0][0] <= expired:
                used.popleft()
            if not used:
                del self._used[session]
