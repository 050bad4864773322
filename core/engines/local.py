"""Runs tasks in processes on this machine, each of which is set up once, for example by loading a checkpoint."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from attention_sieve.core.engines.work import MOST_TRIES, PAUSE_EVERY, Do, Done, Piece, TaskOutcome, died
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.pauses import pause

PATIENCE: Final = 5.0
"""Seconds within which a process has to end after it is terminated."""


def run_local(
    begin: Callable[[], Do[Piece, Done]], pieces: Sequence[Piece], *, n_workers: int = 1, gpus: Sequence[int] = ()
) -> Iterator[TaskOutcome[Done]]:
    """Run tasks as specified by `attention_sieve.core.engines.work.Executor`.

    Args:
        begin, pieces: see there.
        n_workers: number of processes; with 1, the tasks run in this process.
        gpus: numbers of the GPUs, assigned to the processes in turn; empty if there are none.
    """
    if not pieces:
        return
    if n_workers == 1:
        function = begin()
        for index, piece in enumerate(pieces):
            pause()
            yield _outcome(function, index, piece)
        return
    pool = _Pool(begin, pieces, n_workers, gpus)
    try:
        yield from pool.outcomes()
    finally:
        pool.end()


def _outcome(function: Do[Piece, Done], index: int, piece: Piece) -> TaskOutcome[Done]:
    try:
        return TaskOutcome(index=index, result=function(piece))
    except AnalysisError as error:
        return TaskOutcome(index=index, result=None, why=str(error))


@dataclass(eq=False, kw_only=True)
class _Worker:
    """A process, and the index of its current task."""

    process: BaseProcess
    connection: Connection
    gpu: int | None
    index: int | None = None


class _Pool:
    """Processes that get one task at a time."""

    def __init__(self, begin: Callable[[], Any], pieces: Sequence[Any], n_workers: int, gpus: Sequence[int]) -> None:
        self._begin, self._pieces, self._gpus = begin, pieces, gpus
        self._n_workers = n_workers
        self._waiting = deque(range(len(pieces)))
        self._tries = [0] * len(pieces)
        self._workers: list[_Worker] = []

    def outcomes(self) -> Iterator[TaskOutcome[Any]]:
        while self._waiting or any(worker.index is not None for worker in self._workers):
            self._fill()
            pause()
            ready = set(wait([worker.connection for worker in self._workers], PAUSE_EVERY))
            for worker in [worker for worker in self._workers if worker.connection in ready]:
                if (outcome := self._received(worker)) is not None:
                    yield outcome

    def end(self) -> None:
        """Terminate all processes, even in the middle of a task."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _fill(self) -> None:
        """Start missing processes, and give tasks to idle ones."""
        n_busy = sum(worker.index is not None for worker in self._workers)
        while len(self._workers) < min(self._n_workers, n_busy + len(self._waiting)):
            self._workers.append(self._started())
        for worker in self._workers:
            if worker.index is None and self._waiting:
                worker.index = self._waiting.popleft()
                self._tries[worker.index] += 1
                with suppress(OSError):  # the process has ended, which is handled when its connection is waited for
                    worker.connection.send((worker.index, self._pieces[worker.index]))

    def _started(self) -> _Worker:
        context = get_context("spawn")  # a fork of a process with threads may deadlock
        own_end, worker_end = context.Pipe()
        used_gpus = [worker.gpu for worker in self._workers]
        gpu = min(self._gpus, key=used_gpus.count) if self._gpus else None
        process = context.Process(target=_serve, args=(worker_end, self._begin, gpu), daemon=True)
        with _without_interrupts():
            process.start()
        worker_end.close()
        return _Worker(process=process, connection=own_end, gpu=gpu)

    def _received(self, worker: _Worker) -> TaskOutcome[Any] | None:
        """The outcome from a process; None if it ended and its task is tried again."""
        try:
            outcome: TaskOutcome[Any] | BaseException = worker.connection.recv()
        except (EOFError, OSError):
            return self._after_end(worker)
        if isinstance(outcome, BaseException):
            raise outcome
        worker.index = None
        return TaskOutcome(
            index=outcome.index, result=outcome.result, why=outcome.why, n_tries=self._tries[outcome.index]
        )

    def _after_end(self, worker: _Worker) -> TaskOutcome[Any] | None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()
        index = worker.index
        if index is None:
            return None
        if self._tries[index] < MOST_TRIES:
            self._waiting.appendleft(index)
            return None
        return TaskOutcome(index=index, result=None, why=died(self._tries[index]), n_tries=self._tries[index])


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Context in which processes are started that Ctrl+C does not reach: the parent ends them.

    An interruption of this process is only delayed. Without such masks, as on Windows, the processes end by themselves.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _serve(connection: Connection, begin: Callable[[], Do[Any, Any]], gpu: int | None) -> None:
    """Main loop of a process: set up once, then run one task after the other."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    try:
        function = begin()
        while True:
            index, piece = connection.recv()
            connection.send(_outcome(function, index, piece))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return
    except AnalysisError as error:
        connection.send(AnalysisError(str(error)))  # a subclass may not be picklable
    except Exception as error:  # reported in the parent process
        connection.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """End this process when its parent ends."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
