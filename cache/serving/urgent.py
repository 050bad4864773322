"""Urgent work of all workers of an Inference: while it is at work, other work of theirs waits at its pauses."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


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
