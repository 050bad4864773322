"""Public mode: a server for a class or for everybody offers chosen checkpoints, and changes nothing on its machine.

`make class` starts one. Two environment variables say what it offers; nothing that a visitor sends does:

- `ATTENTION_SIEVE_PUBLIC=1` turns the mode on.
- `ATTENTION_SIEVE_CHECKPOINTS` names the checkpoints, separated as in PATH: `bundled`, hub ids, folders of checkpoints,
  and folders below which checkpoints lie. `bundled` alone where it is not set.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import BUNDLED, find_checkpoint
from core.checkpoints.saved_runs import SavedRun, list_runs
from core.errors import AnalysisError, CheckpointError
from core.texts import text

PUBLIC: Final = "ATTENTION_SIEVE_PUBLIC"
CHECKPOINTS: Final = "ATTENTION_SIEVE_CHECKPOINTS"
DEPTH: Final = 2
"""Folders between a named one and a checkpoint's, at most: a run and its saved steps."""
NOT_HERE: Final = "This server is open to many people, so it trains nothing, keeps no files and starts no programs."
MEGABYTES: Final = 5
"""Of an upload, at most; `make class` gives the server the same bound."""
MAX_TEXTS: Final = 500
"""Texts that a visitor can have computed at once, so that nobody waits long for somebody else's corpus."""
MAX_UPLOADS: Final = 8
"""Uploads of one page that are held at once."""
HOURS_KEPT: Final = 2
"""Hours after which the texts read from an upload are forgotten. The upload itself goes with its page."""


def is_public() -> bool:
    """Whether this server is open to others than the machine's owner."""
    return os.environ.get(PUBLIC) == "1"


def check_not_public() -> None:
    """Raise before whatever starts a program or writes a file at a visitor's wish.

    Raises: AnalysisError on a public server.
    """
    if is_public():
        raise AnalysisError(f"{NOT_HERE} Do it on a machine of your own.")


def upload_megabytes() -> int:
    """Megabytes that an uploaded file may have."""
    return MEGABYTES if is_public() else text.MAX_BYTES // 10**6


def most_texts() -> int:
    """Texts that may be computed at once."""
    return MAX_TEXTS if is_public() else text.MAX_TEXTS


def names() -> tuple[str, ...]:
    """Names of the checkpoints that a public server offers."""
    return tuple(_offered(os.environ.get(CHECKPOINTS) or BUNDLED))


def find_offered(name: str) -> CheckpointFiles:
    """One of these checkpoints, under its name here; where its files lie, nobody is told.

    Raises: CheckpointError for any other name.
    """
    where = _offered(os.environ.get(CHECKPOINTS) or BUNDLED).get(name)
    if where is None:
        raise CheckpointError(f"This server offers these checkpoints: {', '.join(names())}. Choose one of them.")
    try:
        return replace(find_checkpoint(where), name=name)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(where, name)) from None


def runs_here() -> tuple[SavedRun, ...]:
    """Fine-tuning runs of this machine; none of them where others would see their names."""
    return () if is_public() else list_runs()


@lru_cache(maxsize=4)
def _offered(setting: str) -> MappingProxyType[str, str]:
    """What finds each checkpoint, by the name that visitors see."""
    found = {name: where for entry in setting.split(os.pathsep) if entry.strip() for name, where in _of(entry.strip())}
    return MappingProxyType(found)


def _of(entry: str) -> Iterator[tuple[str, str]]:
    folder = Path(os.path.expanduser(entry))
    if entry == BUNDLED or not folder.is_dir():
        yield entry, entry  # a hub id
        return
    folder = folder.resolve()
    for depth in range(DEPTH + 1):
        for path in sorted(folder.glob("/".join((*["*"] * depth, "config.json")))):
            # A link could lead out of the folder that the owner named.
            if path.parent.resolve().is_relative_to(folder):
                yield str(path.parent.relative_to(folder.parent)), str(path.parent)
