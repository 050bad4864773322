"""The dashboard in a separate process, for benchmarks and for the tests in a browser."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

ROOT: Final = Path(__file__).parents[2]
DASHBOARD: Final = ROOT / "dashboard" / "server.py"
ANSWERS_WITHIN: Final = 180
"""Maximum number of seconds for a start, on a busy machine."""
BETWEEN_ASKS: Final = 0.01
"""Seconds."""


@dataclass(frozen=True)
class Dashboard:
    """A running server."""

    address: str
    pid: int
    log: Path

    def resident_bytes(self) -> int:
        """Memory of the server's process."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], check=True, capture_output=True, text=True)
        return 1024 * int(shown.stdout)

    def tracebacks(self) -> int:
        """Number of uncaught errors in the log."""
        return self.log.read_text("utf-8").count("Traceback (most recent call last)")


def prepare(folder: Path) -> None:
    """Prepare a folder as set-up does: with the samples and the example, scored."""
    command = [sys.executable, "-m", "attention_sieve.dashboard.prepare"]
    subprocess.run(command, cwd=ROOT, env=_environment(folder), check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serve(folder: Path, script: Path = DASHBOARD, **environment: str) -> Iterator[Dashboard]:
    """A page as `make app` starts it, on a free port, without the model hub and the package index.

    Args:
        folder: where results and the log, `server.log`, are kept.
        script: what Streamlit runs.
        environment: variables that differ for it.

    Raises: RuntimeError if the server ends or does not answer.
    """
    port = free_port()
    options = ["--server.port", str(port), "--server.address", "localhost", "--server.headless", "true"]
    with started(["-m", "streamlit", "run", str(script), *options], port, folder, ROOT, **environment) as dashboard:
        yield dashboard


def free_port() -> int:
    """A port on which nothing listens."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def started(arguments: list[str], port: int, folder: Path, place: Path, **environment: str) -> Iterator[Dashboard]:
    """A dashboard that Python starts with some arguments.

    Args:
        arguments: of Python.
        port: where it then listens.
        folder: where results and the log, `server.log`, are kept.
        place: the working folder.
        environment: variables that differ for it.

    Raises: RuntimeError if the server ends or does not answer.
    """
    log, known = folder / "server.log", {**_environment(folder), **environment}
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=place, env=known, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(f"http://localhost:{port}", process)
        yield Dashboard(f"http://localhost:{port}", process.pid, log)
    finally:
        process.terminate()
        process.wait(ANSWERS_WITHIN)


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "ATTENTION_SIEVE_CACHE": str(folder),
        "HF_HUB_OFFLINE": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONDONTWRITEBYTECODE": "",  # otherwise each start compiles the project again, though not its dependencies
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
    }


def _wait_for(address: str, process: subprocess.Popen) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"The dashboard ended with {process.returncode}; its log says why.")
        try:
            with urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(BETWEEN_ASKS)  # a refused connection comes back at once
    raise RuntimeError(f"The dashboard did not answer within {ANSWERS_WITHIN} seconds; its log may say why.")
