"""Points in long-running work at which other work may take precedence, such as between two layers of a pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_at_pauses: Final[ContextVar[Callable[[], None] | None]] = ContextVar("at pauses", default=None)


def pause() -> None:
    """A point at which other work may take precedence; call it where no lock is held. Does nothing outside
    `pausing`."""
    if (work := _at_pauses.get()) is not None:
        work()


@contextmanager
def pausing(work: Callable[[], None]) -> Iterator[None]:
    """Context in which a function is called at each pause, before those of outer contexts.

    Args:
        work: the work to do first; if it raises, the interrupted work ends with that error. It must not compute with
            torch in this thread, which may be recording gradients or intercepting functions.
    """
    outer = _at_pauses.get()

    def both() -> None:
        work()
        if outer is not None:
            outer()

    token = _at_pauses.set(both)
    try:
        yield
    finally:
        _at_pauses.reset(token)
