"""Runs tasks on a Ray cluster, or on a local Ray started here, in actors that are set up once each."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import Any, Final

from attention_sieve import ROOT
from attention_sieve.core.engines.work import MOST_TRIES, PAUSE_EVERY, Do, Done, Piece, TaskOutcome, died
from attention_sieve.core.errors import AnalysisError, first_line
from attention_sieve.core.pauses import pause

OWN_RAY: Final = {"worker_niceness": 0}
"""Configuration of a local Ray: by default, its workers have a lower priority than all other processes."""
RUNTIME_ENV: Final = {"py_modules": [str(ROOT / "attention_sieve")], "excludes": ["/cache", "/calls", "/dashboard"]}
"""What the actors of a cluster import: this package without the pages, the calls and the store."""
SECONDS_TO_CONNECT: Final = 10
"""Timeout for connecting to an address."""


def run_on_ray(
    begin: Callable[[], Do[Piece, Done]],
    pieces: Sequence[Piece],
    *,
    n_workers: int,
    address: str | None = None,
    n_threads: int = 1,
    n_gpus_each: int = 0,
) -> Iterator[TaskOutcome[Done]]:
    """Run tasks as specified by `attention_sieve.core.engines.work.Executor`.

    All machines of a cluster must have the same files under the same paths, and this program's packages.

    Args:
        begin, pieces: see there.
        n_workers: number of actors.
        address: address of a cluster: "auto" for the one on this machine, or host:port; None to start a local Ray.
        n_threads: processor cores per actor.
        n_gpus_each: GPUs per actor.

    Raises: AnalysisError if Ray is not installed, or there is none at the address.
    """
    if not pieces:
        return
    with _connection(address, n_workers * n_threads) as ray:
        yield from outcomes_of(ray, begin, pieces, n_workers, n_threads, n_gpus_each)


@contextmanager
def _connection(address: str | None, n_cpus: int) -> Iterator[Any]:
    """Context of the module ray, connected in a thread, for which this one waits with pauses.

    The thread stays, since the processes of a local Ray end with the thread that began them. It is not interrupted
    while Ray starts, or some of them would stay: where a pause raises, it ends Ray once that has started, unless this
    program ends before, and they with it.
    """
    connecting, is_over = Future[Any](), Event()

    def connected() -> None:
        try:
            ray = _connected(address, n_cpus)
        except BaseException as error:
            connecting.set_exception(error)
            return
        connecting.set_result(ray)
        is_over.wait()
        ray.shutdown()

    thread = Thread(target=connected, name="Ray", daemon=True)
    thread.start()
    try:
        while not connecting.done():
            pause()
            wait([connecting], PAUSE_EVERY)
        yield connecting.result()
    finally:
        is_over.set()
        if connecting.done():
            thread.join()


def _connected(address: str | None, n_cpus: int) -> Any:
    """The module ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise AnalysisError("Ray is not installed. Install it with: make ray") from None
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            ray.init(num_cpus=n_cpus, include_dashboard=False, _system_config=OWN_RAY, **quiet)
        else:
            _check_address(address)
            ray.init(address=address, runtime_env=RUNTIME_ENV, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        location = "on this machine" if address in (None, "auto") else f"at {address}"
        raise AnalysisError(
            f"No Ray cluster answers {location} ({first_line(error)}). Start one with: ray start --head, or "
            "leave --address out."
        ) from None
    return ray


def _check_address(address: str) -> None:
    """Test the connection to an address; Ray itself would wait for minutes.

    Raises: OSError if nothing answers; ValueError for an invalid address.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS_TO_CONNECT):
        pass


class _Actor:
    """Is set up once, then runs one task after the other."""

    def __init__(self, begin: Callable[[], Do[Any, Any]]) -> None:
        self._begin = begin
        self._do: Do[Any, Any] | None = None

    def run(self, index: int, piece: Any) -> TaskOutcome[Any]:
        try:
            function = self._do = self._do or self._begin()
            return TaskOutcome(index=index, result=function(piece))
        except AnalysisError as error:
            return TaskOutcome(index=index, result=None, why=str(error))


def outcomes_of(
    ray: Any,
    begin: Callable[[], Do[Piece, Done]],
    pieces: Sequence[Piece],
    n_workers: int,
    n_threads: int = 1,
    n_gpus_each: int = 0,
) -> Iterator[TaskOutcome[Done]]:
    """Run tasks on a connected Ray; each actor gets one task at a time."""
    actor = ray.remote(num_cpus=n_threads, num_gpus=n_gpus_each)(_Actor)
    begin_reference = ray.put(begin)
    idle = deque(actor.remote(begin_reference) for _ in range(min(n_workers, len(pieces))))
    pending, tries = deque(range(len(pieces))), [0] * len(pieces)
    running: dict[Any, tuple[int, Any]] = {}
    while pending or running:
        while pending and idle:
            index, worker = pending.popleft(), idle.popleft()
            tries[index] += 1
            running[worker.run.remote(index, pieces[index])] = (index, worker)
        pause()
        finished, _ = ray.wait(list(running), num_returns=1, timeout=PAUSE_EVERY)
        if not finished:
            continue
        index, worker = running.pop(finished[0])
        try:
            outcome = ray.get(finished[0])
        except ray.exceptions.RayActorError:  # its process has ended and is replaced
            idle.append(actor.remote(begin_reference))
            if tries[index] < MOST_TRIES:
                pending.appendleft(index)
                continue
            outcome = TaskOutcome(index=index, result=None, why=died(tries[index]))
        else:
            idle.append(worker)
        yield replace(outcome, n_tries=tries[index])
