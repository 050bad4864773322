"""Runs work in processes of this machine, each of which begins once, such as by loading a checkpoint."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from core.engines.work import MOST_TRIES, Do, Outcome, Piece, Result, died
from core.errors import AnalysisError

PATIENCE: Final = 5.0
"""Seconds that a process has to end once it is asked to."""


def run_local(
    begin: Callable[[], Do[Piece, Result]], pieces: Sequence[Piece], *, n_workers: int = 1, gpus: Sequence[int] = ()
) -> Iterator[Outcome[Result]]:
    """Run pieces of work as `core.engines.work.Engine` says.

    Args:
        begin: as there.
        pieces: as there.
        n_workers: processes; 1 for this one, without another.
        gpus: numbers of the GPUs that the processes get, one each in turn; none where there are none.
    """
    if not pieces:
        return
    if n_workers == 1:
        yield from _here(begin, pieces)
        return
    crew = _Crew(begin, pieces, n_workers, gpus)
    try:
        yield from crew.outcomes()
    finally:
        crew.end()


def _here(begin: Callable[[], Do[Piece, Result]], pieces: Sequence[Piece]) -> Iterator[Outcome[Result]]:
    do = begin()
    for place, piece in enumerate(pieces):
        yield _outcome(do, place, piece)


def _outcome(do: Do[Piece, Result], place: int, piece: Piece) -> Outcome[Result]:
    try:
        return Outcome(place=place, result=do(piece))
    except AnalysisError as error:
        return Outcome(place=place, result=None, why=str(error))


@dataclass(eq=False, kw_only=True)
class _Worker:
    """A process, and the place of the piece that it is on."""

    process: BaseProcess
    connection: Connection
    gpu: int | None
    place: int | None = None


class _Crew:
    """Processes that get a piece of work each, and another when it is done."""

    def __init__(self, begin: Callable[[], Any], pieces: Sequence[Any], n_workers: int, gpus: Sequence[int]) -> None:
        self._begin, self._pieces, self._gpus = begin, pieces, gpus
        self._n_workers = n_workers
        self._waiting = deque(range(len(pieces)))
        self._tries = [0] * len(pieces)
        self._workers: list[_Worker] = []

    def outcomes(self) -> Iterator[Outcome[Any]]:
        while self._waiting or any(worker.place is not None for worker in self._workers):
            self._fill()
            ready = set(wait([worker.connection for worker in self._workers]))
            for worker in [each for each in self._workers if each.connection in ready]:
                outcome = self._received(worker)
                if outcome is not None:
                    yield outcome

    def end(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _fill(self) -> None:
        """Start processes that are missing, and give work to those that have none."""
        n_busy = sum(worker.place is not None for worker in self._workers)
        while len(self._workers) < min(self._n_workers, n_busy + len(self._waiting)):
            self._workers.append(self._started())
        for worker in self._workers:
            if worker.place is None and self._waiting:
                self._give(worker, self._waiting.popleft())

    def _give(self, worker: _Worker, place: int) -> None:
        worker.place = place
        self._tries[place] += 1
        try:
            worker.connection.send((place, self._pieces[place]))
        except OSError:
            return  # it has ended, which is seen when it is waited for

    def _started(self) -> _Worker:
        context = get_context("spawn")  # a fork of a process with threads may wait for ever
        here, there = context.Pipe()
        taken = [worker.gpu for worker in self._workers]
        gpu = min(self._gpus, key=taken.count) if self._gpus else None
        process = context.Process(target=_serve, args=(there, self._begin, gpu), daemon=True)
        process.start()
        there.close()
        return _Worker(process=process, connection=here, gpu=gpu)

    def _received(self, worker: _Worker) -> Outcome[Any] | None:
        """What a process says; None where it has ended and its piece is to be begun again."""
        try:
            outcome: Outcome[Any] | BaseException = worker.connection.recv()
        except (EOFError, OSError):
            return self._after_end(worker)
        if isinstance(outcome, BaseException):
            raise outcome
        worker.place = None
        return Outcome(place=outcome.place, result=outcome.result, why=outcome.why, n_tries=self._tries[outcome.place])

    def _after_end(self, worker: _Worker) -> Outcome[Any] | None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()
        place = worker.place
        if place is None:
            return None
        if self._tries[place] < MOST_TRIES:
            self._waiting.appendleft(place)
            return None
        return Outcome(place=place, result=None, why=died(self._tries[place]), n_tries=self._tries[place])


def _serve(connection: Connection, begin: Callable[[], Do[Any, Any]], gpu: int | None) -> None:
    """What a process does: begin, then one piece of work after the other."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    try:
        do = begin()
        while True:
            place, piece = connection.recv()
            connection.send(_outcome(do, place, piece))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return
    except AnalysisError as error:
        connection.send(AnalysisError(str(error)))  # a kind of its own may not survive the way
    except Exception as error:  # told where somebody can do something about it
        connection.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """A process whose parent was killed has nobody to work for."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
