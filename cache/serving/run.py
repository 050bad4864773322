"""Long work in the background, such as probes: it can be watched and stopped, and keeps its results so far."""

import math
import time
from collections.abc import Callable
from threading import Thread
from typing import Final, Generic, TypeVar

from attention_sieve.cache.serving.requests import log_and_release

ABANDONED_SECONDS: Final = 300.0
"""A run that nobody has watched for this long is abandoned."""

Progress = TypeVar("Progress")
Results = TypeVar("Results")


class Run(Generic[Progress, Results]):
    """Work in a thread of its own: it continues while its reader is on other pages, and ends when nobody watches.

    Attributes:
        results: results so far; None before there are any.
        error: the error that ended it, or None.
        is_stopped: whether it was stopped before its end.
        name: name of the work.
    """

    def __init__(
        self,
        work: Callable[[Callable[[Progress], None], Callable[[Results], None]], None],
        progress: Progress,
        *,
        name: str,
        patience: float | None = ABANDONED_SECONDS,
    ) -> None:
        """Start the work.

        Args:
            work: takes two callbacks: one for its progress, to be called several times a second, which raises to stop
                the work; and one for its results so far.
            patience: seconds without a watcher after which it ends; None for a run that needs no watchers.
        """
        self.results: Results | None = None
        self.error: Exception | None = None
        self.is_stopped = False
        self.name = name
        self._patience = math.inf if patience is None else patience
        self._progress = progress
        self._work, self._wants_stop, self._watched = work, False, time.monotonic()
        self._thread = Thread(target=self._do, name=name, daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether it is still running."""
        return self._thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested and it has not ended yet."""
        return self._wants_stop and self.is_on

    def watch(self) -> Progress:
        """The latest progress; a run that is not watched ends after its patience."""
        self._watched = time.monotonic()
        return self._progress

    def stop(self) -> None:
        """End it soon, keeping its results."""
        self._wants_stop = True

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, for at most this long."""
        self._thread.join(seconds)

    def _tell(self, progress: Progress) -> None:
        self._progress = progress
        if self._wants_stop or time.monotonic() - self._watched > self._patience:
            raise _Stopped

    def _keep(self, results: Results) -> None:
        self.results = results

    def _do(self) -> None:
        try:
            self._work(self._tell, self._keep)
        except _Stopped:
            self.is_stopped = True
        except Exception as error:
            log_and_release(error)
            self.error = error


class _Stopped(Exception):
    """Ends the work of a run."""
