"""What each visitor gets of a server: turns at a model, of which urgent ones go first, and a share of the store."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from statistics import median
from threading import Condition, Lock
from typing import Final

from attention_sieve.core.errors import AnalysisError

STEP_SECONDS: Final = 0.25
"""Model time of a batch while others wait. One text may take longer; it is interrupted for typed texts."""
ALONE_SECONDS: Final = 2.0
"""Model time of a batch while nobody else waits: fewer batches cost less."""
HALF_LIFE_SECONDS: Final = 10.0
"""After this time, half as much of a visitor's model time counts."""
WAITING_SHARE: Final = 0.1
"""Seconds of model time for which a second of waiting makes up: nobody waits for ever, however many visitors come."""
FORGOTTEN_SECONDS: Final = 0.001
"""Model time that counts as none."""
TIMED_BATCHES: Final = 5
"""Latest batches whose median is the pace of a question."""
TIMED_QUESTIONS: Final = 256
QUOTA_SECONDS: Final = 3600
"""Period of a quota."""
STOPPED_BYTES: Final = 2**16
"""Size counted for each text of a stopped or failed request: about that of a sentence on screen."""


class ModelTime:
    """Whose turn it is: of the visitors who wait, those who have had least model time; not thread-safe.

    The longer ago it was, the less it counts.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing used; the clock returns the time in seconds."""
        self._clock = clock
        self._used: dict[Hashable, float] = {}
        """Seconds that count at the time of the latest charge."""
        self._at = clock()
        self._since: dict[Hashable, float] = {}
        """When each visitor who waits was last charged, or began to wait."""

    def ranks(self, waiting: Collection[Hashable]) -> dict[Hashable, float]:
        """Rank of each of the visitors who wait, who are all named; the lowest comes first."""
        now = self._clock()
        self._since = {visitor: self._since.get(visitor, now) for visitor in waiting}
        return {
            visitor: self._used.get(visitor, 0.0) - WAITING_SHARE * (now - since)
            for visitor, since in self._since.items()
        }

    def charge(self, visitors: Collection[Hashable], seconds: float) -> None:
        """Count model time, equal parts of it for each of the visitors who waited for the same."""
        now = self._clock()
        share = 0.5 ** ((now - self._at) / HALF_LIFE_SECONDS)
        used = {visitor: share * before for visitor, before in self._used.items()}
        for visitor in visitors:
            used[visitor] = used.get(visitor, 0.0) + seconds / len(visitors)
            if visitor in self._since:
                self._since[visitor] = now
        self._used = {visitor: left for visitor, left in used.items() if left > FORGOTTEN_SECONDS}
        self._at = now


class Paces:
    """Seconds per character of the latest batches of each question; written by one thread, and read by any."""

    def __init__(self) -> None:
        """Begin with nothing measured."""
        self._latest: OrderedDict[str, deque[float]] = OrderedDict()

    def note(self, question: str, seconds: float, n_characters: int) -> None:
        """Count a batch of a question with this name."""
        self._latest.setdefault(question, deque(maxlen=TIMED_BATCHES)).append(seconds / n_characters)
        self._latest.move_to_end(question)
        if len(self._latest) > TIMED_QUESTIONS:
            self._latest.popitem(last=False)

    def of(self, question: str) -> float | None:
        """Median over the latest batches; None before the first."""
        latest = list(self._latest.get(question, ()))  # empty while the other thread notes the first one
        return median(latest) if latest else None


class UrgentWork:
    """Counts urgent turns; thread-safe."""

    def __init__(self) -> None:
        """Begin with none at work."""
        self._n_turns = 0
        self._ended = Condition()

    @property
    def is_at_work(self) -> bool:
        """Whether a worker's urgent turn is at work."""
        return self._n_turns > 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Context of an urgent turn."""
        with self._ended:
            self._n_turns += 1
        try:
            yield
        finally:
            with self._ended:
                self._n_turns -= 1
                self._ended.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until no urgent turn is at work, for at most this long."""
        with self._ended:
            self._ended.wait_for(lambda: not self._n_turns, seconds)


class Quotas:
    """Bytes computed for each session within the last hour; thread-safe."""

    def __init__(
        self, n_bytes: int, session: Callable[[], Hashable], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with nothing used.

        Args:
            n_bytes: limit on the results of one session, before compression.
            session: returns the current session; called in that session's thread.
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
            minutes = max(1, round((used[0][0] + QUOTA_SECONDS - self._clock()) / 60))
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
        expired = self._clock() - QUOTA_SECONDS
        for session, used in list(self._used.items()):
            while used and used[0][0] <= expired:
                used.popleft()
            if not used:
                del self._used[session]
