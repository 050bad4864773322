"""Commands of this project in a program of their own, begun behind a page."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from core.errors import AnalysisError
from dashboard.public import check_not_public
from dashboard.views.finetune import wording

ROOT: Final = Path(__file__).parents[3]
LAST_BYTES: Final = 4_000
"""Of what a program wrote to standard error: enough for its last line."""


@dataclass(frozen=True, eq=False)
class Program:
    """A program that was begun here."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    """What it writes to standard error."""

    def reason(self, code: int) -> str:
        """The sentence on standard error; with the exit status where it is none of ours."""
        last = next((line for line in reversed(self._end().splitlines()) if line.strip()), "").strip()
        return last if code == 2 and last else wording.ended_badly(code, last)

    def _end(self) -> str:
        """Its last characters, read without moving the place at which the program writes."""
        number = self.errors.fileno()
        start = max(0, os.fstat(number).st_size - LAST_BYTES)
        return os.pread(number, LAST_BYTES, start).decode(errors="replace")


def begin(command: Sequence[str]) -> Program:
    """Run a command of this project.

    Raises: AnalysisError where its program cannot be started, and on a public server.
    """
    check_not_public()
    # A file takes what nobody reads without blocking, and is gone once nobody has it open.
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "core", *command],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # or Ctrl+C would end the run before it is asked to save its step
        )
    except OSError as error:
        errors.close()
        raise AnalysisError(wording.not_started(error.strerror or str(error))) from None
    return Program(process, errors)


def environment() -> dict[str, str]:
    """This program's, with the project found from any working folder: a path means the same to both programs."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
