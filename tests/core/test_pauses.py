"""Work without pauses is ended from a thread that pauses in its place."""

import signal
from threading import Event, Thread

import pytest

from attention_sieve.core.pauses import interruptible, pause, pausing

LONG = 60.0


class Over(Exception):
    pass


def end_when(asked):
    def work():
        if asked.is_set():
            raise Over

    return work


def sleep_until_interrupted(asked, sleep):
    with pausing(end_when(asked)), interruptible():
        sleep(LONG)
        pytest.fail("was not interrupted")


def test_work_that_sleeps_ends_with_what_the_pause_raises():
    asked, handler = Event(), signal.getsignal(signal.SIGINT)
    asked.set()
    with pytest.raises(Over):
        sleep_until_interrupted(asked, Event().wait)
    assert signal.getsignal(signal.SIGINT) is handler


def test_work_that_catches_the_first_interruption_is_interrupted_again():
    asked, caught = Event(), []
    asked.set()

    def sleep(seconds):
        try:
            Event().wait(seconds)
        except BaseException as error:
            caught.append(type(error))
        Event().wait(seconds)

    with pytest.raises(Over):
        sleep_until_interrupted(asked, sleep)
    assert caught == [KeyboardInterrupt]


def test_work_that_nobody_ends_goes_on_and_pauses_again_afterwards():
    asked = Event()
    with pausing(end_when(asked)):
        with interruptible(), interruptible():
            pass
        asked.set()
        with pytest.raises(Over):
            pause()


def test_ctrl_c_stays_what_it_is():
    with pytest.raises(KeyboardInterrupt), pausing(lambda: None), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_in_another_thread_nothing_is_interrupted():
    done = []

    def work():
        with pausing(lambda: None), interruptible():
            done.append(signal.getsignal(signal.SIGINT))

    handler = signal.getsignal(signal.SIGINT)
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert done == [handler]
