"""Points in long-running work at which other work may take precedence, such as between two layers of a pass."""

import _thread
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread, current_thread, main_thread
from typing import Final

EVERY: Final = 0.2
"""Seconds between two pauses in the place of work that has none."""
AGAIN: Final = 1.0
"""Seconds until work that has not ended is interrupted again: what it calls may have caught the first time."""

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


@contextmanager
def interruptible() -> Iterator[None]:
    """Context of work that has no pauses, such as loading weights: a thread pauses in its place, and once that raises,
    the work is interrupted as by Ctrl+C and ends with what was raised.

    Only what the main thread of a program does can be interrupted. Elsewhere nothing happens, as outside `pausing`.
    """
    at_pause = _at_pauses.get()
    if at_pause is None or current_thread() is not main_thread():
        yield
        return
    is_over, raised = Event(), list[Exception]()

    def watch() -> None:
        seconds = EVERY
        while not is_over.wait(seconds):
            try:
                at_pause()
            except Exception as error:
                raised.append(error)
                seconds = AGAIN
                _interrupt()

    watcher = Thread(target=watch, name="pauses", daemon=True)
    token, handler = _at_pauses.set(None), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()
    except KeyboardInterrupt:
        if raised:
            raise raised[0] from None
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
        _at_pauses.reset(token)


def _interrupt() -> None:
    """Interrupt the main thread, also while it sleeps where the system can do that."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
