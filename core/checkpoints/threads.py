"""What a process computes with: threads and GPUs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


def use_threads(n_threads: int) -> None:
    """Compute with so many threads from now on; sums are added in an order that depends on it."""
    torch.set_num_threads(n_threads)


def each_on_one_thread(compute: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Compute parts side by side, each by one thread, rather than each by all threads one after the other.

    For many short operations: threads that share each of them mostly wait for each other.

    Args:
        compute: works on a part.
        parts: one is computed by all threads.
    """
    n_threads = torch.get_num_threads()
    if min(n_threads, len(parts)) == 1:
        return [compute(part) for part in parts]
    try:
        with ThreadPoolExecutor(min(n_threads, len(parts)), "part", torch.set_num_threads, (1,)) as threads:
            return list(threads.map(compute, parts))
    finally:
        # The number is each thread's own, but the last one set is also what new threads begin with.
        torch.set_num_threads(n_threads)


def n_cuda_devices() -> int:
    """NVIDIA GPUs that this process sees."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
