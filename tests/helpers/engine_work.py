"""Work for tests of engines, in a module of its own so that other processes can import it."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import attention_sieve
from attention_sieve.core.errors import AnalysisError


def begin(folder):
    return partial(do, Path(folder))


def begin_not():
    raise AnalysisError("It cannot begin.")


def do(folder, piece):
    if piece == "wait":
        with (folder / "fifo").open("w") as fifo:
            fifo.write(f"{os.getpid()}\n")
            fifo.flush()
            time.sleep(600)
    if piece == "package":
        folder = Path(attention_sieve.__file__).parent
        return folder, {room.name for room in folder.iterdir() if room.is_dir()} - {"__pycache__"}
    if piece == "gpu":
        return os.environ.get("CUDA_VISIBLE_DEVICES")
    if piece == "always":
        os.kill(os.getpid(), signal.SIGKILL)
    if piece == "once":
        if not (folder / "once").exists():
            (folder / "once").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"
    if not isinstance(piece, int):
        raise AnalysisError(f"{piece} is no number.")
    return piece * piece
