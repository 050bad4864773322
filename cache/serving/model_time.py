"""Seconds of model time: what each visitor has had lately, and what a character of each question takes."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable
from statistics import median
from typing import Final

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
        latest = self._latest.get(question)
        return None if latest is None else median(list(latest))
