"""Training behind the page: it goes on while its reader looks at other things, and ends where nobody looks any more."""

import time
from collections.abc import Callable
from threading import Thread
from typing import Final

from cache.failures import let_go
from cache.probing import ProbeResults, Stand, Tell

ABANDONED_SECONDS: Final = 300.0
"""Without a look, after which nobody waits for a run any more."""

Keep = Callable[[ProbeResults], None]


class ProbeRun:
    """Work in a thread of its own that can be watched and stopped.

    Attributes:
        results: what was found so far; None before the first probe is trained.
        error: what ended it, if anything did.
        is_stopped: whether it was stopped before its end.
    """

    def __init__(self, work: Callable[[Tell, Keep], None]) -> None:
        """Begin.

        Args:
            work: takes what it tells how far it is, which raises to stop it, and what it gives results to.
        """
        self.results: ProbeResults | None = None
        self.error: Exception | None = None
        self.is_stopped = False
        self._stand = Stand("waiting", 0.0)
        self._work, self._wants_stop, self._looked = work, False, time.monotonic()
        self._thread = Thread(target=self._do, name="train probes", daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def look(self) -> Stand:
        """How far it is; a run that nobody looks at ends after ABANDONED_SECONDS."""
        self._looked = time.monotonic()
        return self._stand

    def stop(self) -> None:
        """End it soon, keeping what was learned."""
        self._wants_stop = True

    def wait(self, seconds: float) -> None:
        """Until it has ended, at most so long."""
        self._thread.join(seconds)

    def _tell(self, stand: Stand) -> None:
        self._stand = stand
        if self._wants_stop or time.monotonic() - self._looked > ABANDONED_SECONDS:
            raise _Stopped

    def _keep(self, results: ProbeResults) -> None:
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
