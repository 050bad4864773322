"""Available memory, and releasing unused memory."""

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Final

UNKNOWN_BYTES: Final = 8 * 2**30
"""Assumed for a machine that does not report its memory."""
ARENAS: Final = 2
"""Heaps of C's allocator, which by default creates up to eight per core."""
M_ARENA_MAX: Final = -8
"""Parameter of C's `mallopt` for their number."""
CONTAINER_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def machine_bytes() -> int:
    """Memory of the machine, or of the container that this runs in."""
    n_bytes = UNKNOWN_BYTES
    if hasattr(os, "sysconf"):
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = CONTAINER_LIMIT.read_text().strip() if CONTAINER_LIMIT.is_file() else ""
    return min(n_bytes, int(limit)) if limit.isdigit() else n_bytes


def gpu_bytes() -> int:
    """Memory of the GPU that torch uses."""
    import torch

    return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory


def free_memory(device: str) -> None:
    """Release memory that nothing refers to any more."""
    import torch

    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()
    trim_heap()


def few_arenas() -> None:
    """Make the threads of this process share a few heaps.

    The server starts a thread for each run of a page. With a heap for almost every thread, memory freed by one cannot
    be reused by the next, and a server with many visitors keeps growing.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(M_ARENA_MAX, ARENAS)


def trim_heap() -> None:
    """Return free memory of C's allocator to the system.

    Results are allocated in one thread and freed in many, so the heap fragments and keeps growing.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
