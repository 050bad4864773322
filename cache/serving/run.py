"""Long work that is watched, stopped, and keeps what it has finished: probes, and whatever takes minutes."""

import math
import time
from collections.abc import Callable
from threading import Thread
from typing import Final, Generic, TypeVar

from cache.serving.failures import let_go

ABANDONED_SECONDS: Final = 300.0
"""After so long without anybody watching, nobody waits for a run any more."""

Progress = TypeVar("Progress")
Results = TypeVar("Results")


class Run(Generic[Progress, Results]):
    """Work in a thread of its own: it continues while its reader looks at other pages, and ends when nobody watches.

    Attributes:
        results: of what is finished so far; None before anything is.
        error: what ended it, if anything did.
        is_stopped: whether it was stopped before its end.
        name: as it was given.
    """

    def __init__(
        self,
        work: Callable[[Callable[[Progress], None], Callable[[Results], None]], None],
        progress: Progress,
        *,
        name: str,
        patience: float | None = ABANDONED_SECONDS,
    ) -> None:
        """Begin.

        Args:
            work: is given two functions to call: one with its progress, several times a second, which raises to stop
                it; and one with its results so far, whenever there are more.
            progress: before the work has told any.
            name: of what is done.
            patience: seconds without anybody watching after which it ends; None if it does not depend on watchers.
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
        """Whether it still works."""
        return self._thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to stop and has not ended yet."""
        return self._wants_stop and self.is_on

    def watch(self) -> Progress:
        """Its latest progress; a run that nobody watches ends once its patience does."""
        self._watched = time.monotonic()
        return self._progress

    def stop(self) -> None:
        """End it soon, keeping its results."""
        self._wants_stop = True

    def wait(self, seconds: float) -> None:
        """Until it has ended, at most so long."""
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
            let_go(error)
            self.error = error


class _Stopped(Exception):
    """Ends the work of a run."""
