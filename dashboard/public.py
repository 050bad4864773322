"""Public mode: a server for a class or for everybody offers selected checkpoints, and changes nothing on its machine.

`make class` starts one. Two environment variables decide what it offers; visitors cannot change that:

- `ATTENTION_SIEVE_PUBLIC=1` turns the mode on.
- `ATTENTION_SIEVE_CHECKPOINTS` names the checkpoints, separated as in PATH: `bundled`, `examples` (what is made beside
  the dashboard, each once it is finished), hub ids, folders of checkpoints, and folders below which checkpoints lie.
  `bundled` alone where it is not set.
"""

import os
from typing import Final

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts import text

PUBLIC: Final = "ATTENTION_SIEVE_PUBLIC"
CHECKPOINTS: Final = "ATTENTION_SIEVE_CHECKPOINTS"
OWN_EXAMPLES: Final = "examples"
NOT_HERE: Final = "This server is open to many people, so it trains nothing, keeps no files and starts no programs."
MEGABYTES: Final = 5
"""Maximum size of an upload; `make class` gives the server the same limit."""
MAX_TEXTS: Final = 500
"""Maximum number of texts in one request, so that nobody waits long for somebody else's corpus."""
SHARE: Final = 0.1
"""Share of the store that results computed for one session within an hour may fill."""
MOST_SEARCHES: Final = 2
"""Maximum number of searches for the fewest heads that run at once; each switches off some hundred sets of heads."""
MAX_UPLOADS: Final = 8
"""Maximum number of uploads that one session holds at once."""
MAX_VISITS: Final = 200
"""Maximum number of pages that are open at once."""
MAX_VISITS_OF_ADDRESS: Final = 40
"""Maximum number of those from one address, which a class may share."""
HOURS_KEPT: Final = 2
"""Hours after which visitors' texts, and everything computed from them, are deleted; uploads end with their session."""


def is_public() -> bool:
    """Whether this server is open to people other than the owner of the machine."""
    return os.environ.get(PUBLIC) == "1"


def check_not_public() -> None:
    """Call this before starting a program or writing a file on behalf of a visitor.

    Raises: AnalysisError on a public server.
    """
    if is_public():
        raise AnalysisError(f"{NOT_HERE} Do it on a machine of your own.")


def upload_megabytes() -> int:
    return MEGABYTES if is_public() else text.MAX_BYTES // 10**6


def share(store_bytes: int) -> int:
    """Bytes of results that may be computed for one session within an hour, for a store of this size."""
    # Imports numpy, which would delay the start of the server.
    from attention_sieve.cache.store.store import DEFAULT_MEGABYTES

    return round(SHARE * (store_bytes or DEFAULT_MEGABYTES * 2**20))


def most_texts() -> int:
    return MAX_TEXTS if is_public() else text.MAX_TEXTS
