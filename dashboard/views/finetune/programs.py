"""Commands of this project in a separate process, started in the background."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from attention_sieve import ROOT
from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.public import check_not_public
from attention_sieve.dashboard.views.finetune import wording

LAST_BYTES: Final = 4_000
"""Bytes read from the end of standard error: enough for the last line."""

ENDS_WITHIN: Final = 5.0
"""Seconds for a run to save its step when this program ends."""


@dataclass(frozen=True, eq=False)
class Program:
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    """File that receives its standard error."""
    began: float = field(default_factory=time.monotonic)

    def reason(self, code: int) -> str:
        """The last line on standard error; with the exit status if it is not one of our messages."""
        last_line = self.last_line()
        return last_line if code == 2 and last_line else wording.ended_badly(code, last_line)

    def last_line(self) -> str:
        """The last line on standard error that is not empty; empty if there is none."""
        return next((line.strip() for line in reversed(self._end().splitlines()) if line.strip()), "")

    def _end(self) -> str:
        """The end of standard error, read without moving the write position of the process."""
        number = self.errors.fileno()
        start = max(0, os.fstat(number).st_size - LAST_BYTES)
        return os.pread(number, LAST_BYTES, start).decode(errors="replace")


def begin(command: Sequence[str]) -> Program:
    """Start a command of this project.

    Raises: AnalysisError if its process cannot be started, and on a public server.
    """
    check_not_public()
    # A file never blocks when unread, unlike a pipe, and is deleted when closed.
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "attention_sieve", *command],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # else Ctrl+C would end the run before it can save its step
        )
    except OSError as error:
        errors.close()
        raise AnalysisError(wording.not_started(error.strerror or str(error))) from None
    return Program(process, errors)


def options_of(values: Mapping[str, object]) -> list[str]:
    """Options with their values, as `--option=value`, so that no value is taken for an option; None has no option."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]


def end(program: Program) -> None:
    """Wait until a process that was asked to end has saved its step; terminate it if it does not end."""
    try:
        program.process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        program.process.terminate()
        program.process.wait(ENDS_WITHIN)
    program.errors.close()


def environment() -> dict[str, str]:
    """Environment of this process, with the project on the path, so that the working folder can stay the same."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
