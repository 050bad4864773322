"""Processes of their own, with limited memory and time, for work that a file decides: should it not end, or take all
memory, nothing else is harmed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from attention_sieve import ROOT
from attention_sieve.core.errors import CheckpointError

BETWEEN_LOOKS: Final = 0.02
"""Seconds between two checks of memory and time."""


@dataclass(frozen=True)
class Limits:
    """What a process may take."""

    n_bytes: int
    """Of memory; it may exceed this between two checks."""
    processor_seconds: float
    seconds: float
    """By the clock, for a process that waits for something."""


class Failed(Exception):
    """A process took more than it may, or crashed; the message says what it did, such as "took more than 2 seconds"."""


def started(module: str, arguments: Sequence[str] = (), *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen:
    """A module that runs as a program in a process of its own; its output is a pipe, and it fetches nothing."""
    # Makes the project importable from any working directory.
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def watch(process: subprocess.Popen, limits: Limits, is_done: Callable[[], bool]) -> None:
    """Wait until the work of a process is done, or the process has ended.

    Raises: Failed if it takes too much meanwhile.
    """
    began, watched, before = time.monotonic(), psutil.Process(process.pid), None
    while not is_done():
        try:
            with watched.oneshot():
                resident, times = watched.memory_info().rss, watched.cpu_times()
        except psutil.Error:  # it has just ended
            time.sleep(BETWEEN_LOOKS)
            continue
        used = times.user + times.system
        before = used if before is None else before
        if resident > limits.n_bytes:
            raise Failed(f"took more than {limits.n_bytes / 1e9:,.1f} GB of memory")
        if used - before > limits.processor_seconds:
            raise Failed(f"took more than {limits.processor_seconds:g} seconds of a processor")
        if time.monotonic() - began > limits.seconds:
            raise Failed(f"took more than {limits.seconds:g} seconds")
        time.sleep(BETWEEN_LOOKS)


def reported_error(module: str, arguments: Sequence[str], limits: Limits) -> str:
    """Run a module as a program in a process of its own, until it ends. It prints an object of JSON with its `error`.

    Returns: that error; empty if there was none.
    Raises: Failed.
    """
    with started(module, arguments) as process:
        try:
            watch(process, limits, lambda: process.poll() is not None)
        finally:
            process.kill()
        output = process.stdout.read() if process.stdout else b""
    try:
        return str(json.loads(output)["error"])
    except ValueError:
        raise Failed(f"crashed its process (exit status {process.returncode})") from None


def report_error(work: Callable[[], None]) -> None:
    """Do the work of such a process, and print the message of the CheckpointError that it raises, or an empty one."""
    message = ""
    try:
        work()
    except CheckpointError as error:
        message = str(error)
    print(json.dumps({"error": message}), flush=True)
