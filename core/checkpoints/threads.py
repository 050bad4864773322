"""Threads and GPUs of a process."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Done = TypeVar("Done")


def use_threads(n_threads: int) -> None:
    """Set the number of threads; the order of additions depends on it."""
    torch.set_num_threads(n_threads)


@contextmanager
def on_threads(n_threads: int) -> Iterator[None]:
    """Context with another number of threads, for work of short operations, whose threads mostly wait for each
    other."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def each_on_one_thread(compute: Callable[[Piece], Done], parts: Sequence[Piece]) -> list[Done]:
    """Compute parts in parallel, one thread per part, rather than one after the other with all threads. Each sees the
    caller's context variables; a single part is computed by all threads.

    For many short operations: threads that share such an operation mostly wait for each other."""
    n_threads = torch.get_num_threads()
    if min(n_threads, len(parts)) == 1:
        return [compute(part) for part in parts]
    contexts = [copy_context() for _ in parts]
    try:
        with ThreadPoolExecutor(min(n_threads, len(parts)), "part", torch.set_num_threads, (1,)) as threads:
            return list(threads.map(lambda context, part: context.run(compute, part), contexts, parts))
    finally:
        # The number is set per thread, but the last one set is also the default of new threads.
        torch.set_num_threads(n_threads)


def n_cuda_devices() -> int:
    """Number of NVIDIA GPUs visible to this process."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
