"""Runs work on a Ray cluster, or on a Ray of its own on this machine: actors that begin once each."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.engines.work import MOST_TRIES, Do, Outcome, Piece, Result, died
from core.errors import AnalysisError, first_line

OWN_RAY: Final = {"worker_niceness": 0}
"""Of a Ray that is started here: by default it lets its workers wait for every other process of the machine."""
SECONDS_TO_CONNECT: Final = 10
"""Before an address counts as one where no Ray is."""


def run_on_ray(
    begin: Callable[[], Do[Piece, Result]],
    pieces: Sequence[Piece],
    *,
    n_workers: int,
    address: str | None = None,
    n_threads: int = 1,
    n_gpus_each: int = 0,
) -> Iterator[Outcome[Result]]:
    """Run pieces of work as `core.engines.work.Engine` says.

    All machines of a cluster have to see the same files under the same paths, and have this program's packages.

    Args:
        begin: as there.
        pieces: as there.
        n_workers: actors.
        address: of a cluster: "auto" for the one of this machine, or host:port; None to start a Ray here.
        n_threads: processor cores that an actor takes.
        n_gpus_each: GPUs that an actor takes.

    Raises: AnalysisError where Ray is not installed, or there is none at the address.
    """
    if not pieces:
        return
    ray = _connected(address, n_workers * n_threads)
    try:
        yield from outcomes_of(ray, begin, pieces, n_workers, n_threads, n_gpus_each)
    finally:
        ray.shutdown()


def _connected(address: str | None, n_cpus: int) -> Any:
    """Ray, with a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
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
            root = str(Path(__file__).parents[1])
            ray.init(address=address, runtime_env={"py_modules": [root]}, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = "on this machine" if address in (None, "auto") else f"at {address}"
        raise AnalysisError(
            f"There is no Ray {where} that answers ({first_line(error)}). Start one with: ray start --head, or leave "
            "--address out."
        ) from None
    return ray


def _check_address(address: str) -> None:
    """Knock at an address, where Ray would wait for minutes.

    Raises: OSError where nobody answers; ValueError for what is no address.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS_TO_CONNECT):
        pass


class _Actor:
    """Begins once, then does one piece of work after the other."""

    def __init__(self, begin: Callable[[], Do[Any, Any]]) -> None:
        self._begin = begin
        self._do: Do[Any, Any] | None = None

    def run(self, place: int, piece: Any) -> Outcome[Any]:
        try:
            do = self._do = self._do or self._begin()
            return Outcome(place=place, result=do(piece))
        except AnalysisError as error:
            return Outcome(place=place, result=None, why=str(error))


def outcomes_of(
    ray: Any,
    begin: Callable[[], Do[Piece, Result]],
    pieces: Sequence[Piece],
    n_workers: int,
    n_threads: int = 1,
    n_gpus_each: int = 0,
) -> Iterator[Outcome[Result]]:
    """The outcomes on a Ray that is connected: each actor gets a piece of work, and another when it is done."""
    actor = ray.remote(num_cpus=n_threads, num_gpus=n_gpus_each)(_Actor)
    begins = ray.put(begin)
    idle = deque(actor.remote(begins) for _ in range(min(n_workers, len(pieces))))
    waiting, tries = deque(range(len(pieces))), [0] * len(pieces)
    running: dict[Any, tuple[int, Any]] = {}
    while waiting or running:
        while waiting and idle:
            place, worker = waiting.popleft(), idle.popleft()
            tries[place] += 1
            running[worker.run.remote(place, pieces[place])] = (place, worker)
        (ready,), _ = ray.wait(list(running), num_returns=1)
        place, worker = running.pop(ready)
        try:
            outcome = ray.get(ready)
        except ray.exceptions.RayActorError:  # its process has ended, and another takes its place
            idle.append(actor.remote(begins))
            if tries[place] < MOST_TRIES:
                waiting.appendleft(place)
                continue
            outcome = Outcome(place=place, result=None, why=died(tries[place]))
        else:
            idle.append(worker)
        yield replace(outcome, n_tries=tries[place])
