"""How much of the store each session may fill, so that no visitor of a public server pushes out what others keep."""

import time
from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

from core.errors import AnalysisError

SECONDS: Final = 3600
"""A share is for this long; then it is free again."""
STOPPED_BYTES: Final = 2**16
"""What a text counts for where a request was stopped or failed: about what a sentence on screen takes."""


class Shares:
    """What the passes of each session gave within the last hour; thread-safe."""

    def __init__(
        self, n_bytes: int, session: Callable[[], Hashable], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with nothing used.

        Args:
            n_bytes: of results of one session, before compression.
            session: which session asks, called in its own thread.
            clock: seconds.
        """
        self._n_bytes, self._session, self._clock = n_bytes, session, clock
        self._used: dict[Hashable, deque[tuple[float, int]]] = {}
        """When, and how many bytes, oldest first."""
        self._lock = Lock()

    def check(self) -> None:
        """Raise where the session that asks has used its share.

        Raises: AnalysisError, saying when it is free again.
        """
        with self._lock:
            self._forget_old()
            used = self._used.get(self._session(), deque())
            if sum(n_bytes for _, n_bytes in used) < self._n_bytes:
                return
            minutes = max(1, round((used[0][0] + SECONDS - self._clock()) / 60))
        megabytes = f"{self._n_bytes / 1e6:,.1f}".removesuffix(".0")
        raise AnalysisError(
            f"This page has had {megabytes} MB of results computed within an hour, which is all that "
            f"one page may on this server. Wait about {minutes} minute{'s' * (minutes > 1)}, go back to what you have "
            "seen before, or use Attention Sieve on a machine of your own."
        )

    def add(self, n_bytes: int) -> None:
        """Count what was computed for the session that asks."""
        with self._lock:
            self._used.setdefault(self._session(), deque()).append((self._clock(), n_bytes))

    def _forget_old(self) -> None:
        before = self._clock() - SECONDS
        for session, used in list(self._used.items()):
            while used and used[0][0] <= before:
                used.popleft()
            if not used:
                del self._used[session]
