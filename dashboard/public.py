"""Public mode: a server for a class or for everybody offers chosen checkpoints, and changes nothing on its machine.

`make class` starts one. Two environment variables say what it offers; nothing that a visitor sends does:

- `ATTENTION_SIEVE_PUBLIC=1` turns the mode on.
- `ATTENTION_SIEVE_CHECKPOINTS` names the checkpoints, separated as in PATH: `bundled`, hub ids, folders of checkpoints,
  and folders below which checkpoints lie. `bundled` alone where it is not set.
"""

import os
from typing import Final

from core.errors import AnalysisError
from core.texts import text

PUBLIC: Final = "ATTENTION_SIEVE_PUBLIC"
CHECKPOINTS: Final = "ATTENTION_SIEVE_CHECKPOINTS"
NOT_HERE: Final = "This server is open to many people, so it trains nothing, keeps no files and starts no programs."
MEGABYTES: Final = 5
"""Of an upload, at most; `make class` gives the server the same bound."""
MAX_TEXTS: Final = 500
"""Texts that a visitor can have computed at once, so that nobody waits long for somebody else's corpus."""
SHARE: Final = 0.1
"""Of the store, that the results computed for one open page within an hour may fill."""
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


def share(store_bytes: int) -> int:
    """Bytes of results that one open page can have computed within an hour, for a store of some size."""
    from cache.store.store import DEFAULT_MEGABYTES  # brings numpy, for which the server would listen later

    return round(SHARE * (store_bytes or DEFAULT_MEGABYTES * 2**20))


def most_texts() -> int:
    """Texts that may be computed at once."""
    return MAX_TEXTS if is_public() else text.MAX_TEXTS
