"""Command-line options that choose the engine."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from attention_sieve.core.engines.local import run_local
from attention_sieve.core.engines.on_ray import run_on_ray
from attention_sieve.core.engines.work import Do, Executor, TaskOutcome
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.progress import ProgressBar

ENGINES: Final = ("local", "ray")
MOST_WORKERS: Final = 10_000


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--engine",
        default="local",
        choices=ENGINES,
        help="where to compute: in processes on this machine, or on a Ray cluster; default: %(default)s",
    )
    parser.add_argument(
        "--address",
        help="address of the Ray cluster: auto, or host:port; default: a cluster is started on this machine",
    )
    parser.add_argument(
        "--workers", type=int, help="number of processes; default: one per GPU, or per CPU core if there is no GPU"
    )


def check_engine(arguments: argparse.Namespace) -> None:
    """Raise for options that cannot be combined, before any work is done.

    Raises: AnalysisError.
    """
    if arguments.address is not None and arguments.engine != "ray":
        raise AnalysisError("--address only applies to a Ray cluster. Add --engine ray, or leave out --address.")
    if arguments.workers is not None and not 1 <= arguments.workers <= MOST_WORKERS:
        raise AnalysisError(f"The number of workers is {arguments.workers}. Choose 1 to {MOST_WORKERS:,}.")


def counted(engine: Executor, unit: str) -> Executor:
    """The engine with its progress on standard error, which also counts failures."""

    def run(begin: Callable[[], Do[Any, Any]], pieces: Sequence[Any]) -> Iterator[TaskOutcome[Any]]:
        n_failed = 0
        with ProgressBar(total=len(pieces), unit=unit) as bar:
            for outcome in engine(begin, pieces):
                n_failed += outcome.result is None
                bar.set_postfix_str(f"{n_failed} failed" if n_failed else "", refresh=False)
                bar.update()
                yield outcome

    return run


def engine_of(arguments: argparse.Namespace, device: str, n_threads: int = 1) -> Executor:
    """The engine chosen by the options.

    Args:
        arguments: parsed options of `add_engine_options`.
        device: device on which tasks compute.
        n_threads: threads per process.
    """
    gpus: tuple[int, ...] = ()
    if device == "cuda":
        from attention_sieve.core.checkpoints.threads import n_cuda_devices  # imports torch

        gpus = tuple(range(n_cuda_devices()))
    n_workers = arguments.workers or len(gpus) or max(1, (os.cpu_count() or 1) // n_threads)
    if arguments.engine == "local":
        return partial(run_local, n_workers=n_workers, gpus=gpus)
    return partial(
        run_on_ray,
        n_workers=n_workers,
        address=arguments.address,
        n_threads=n_threads,
        n_gpus_each=int(device == "cuda"),
    )
