"""Peak memory, measured in a separate process."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import torch

STATUS: Final = Path("/proc/self/status")
RESET_PEAK: Final = "5"
"""What /proc/self/clear_refs takes to set VmHWM back to VmRSS."""


def is_measurable(device: str) -> bool:
    """Whether this system reports the memory of a process; prints a message if not."""
    measurable = device == "cuda" or STATUS.exists()
    if not measurable:
        print("Peak memory is read from /proc, which this system does not have.")
    return measurable


def in_own_process(module: str, *case: str | int) -> Any:
    """Output of a benchmark that is run again, in its own process, for a single case."""
    command = [sys.executable, "-m", module, *map(str, case)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def start_peak(device: str) -> int:
    """Reset the recorded peak; returns the bytes in use."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    # Pages that were freed but kept would be used again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    return in_status("VmRSS")


def peak(device: str) -> int:
    """Maximum number of bytes in use since `start_peak`."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else in_status("VmHWM")


def in_status(field: str) -> int:
    """Bytes of one line of the process's status."""
    lines = STATUS.read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])
