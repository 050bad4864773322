"""Available memory, and releasing unused memory."""

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Final

UNKNOWN_BYTES: Final = 8 * 2**30
"""Taken for a machine that does not say how much it has."""
ARENAS: Final = 2
"""Heaps of C's allocator, which by default makes up to eight for each core."""
M_ARENA_MAX: Final = -8
"""Names their number in C's `mallopt`."""
CONTAINER_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def machine_bytes() -> int:
    """Memory of the machine, or of the container that this runs in."""
    known = UNKNOWN_BYTES
    if hasattr(os, "sysconf"):
        known = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = CONTAINER_LIMIT.read_text().strip() if CONTAINER_LIMIT.is_file() else ""
    return min(known, int(limit)) if limit.isdigit() else known


def gpu_bytes() -> int:
    """Memory of the GPU that torch uses."""
    import torch

    return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory


def free_memory(device: str) -> None:
    """Give back what nothing refers to any more."""
    import torch

    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()
    trim_heap()


def few_arenas() -> None:
    """Let the threads of this process share a few heaps.

    The server starts a thread for each run of a page. With a heap for almost each of them, what one thread let go of
    is of no use to the next one, and a server with many visitors grows.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(M_ARENA_MAX, ARENAS)


def trim_heap() -> None:
    """Give the system back what C's allocator holds and nobody uses.

    Results are made in one thread and let go of in many, so its free parts would lie scattered and grow for long.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
