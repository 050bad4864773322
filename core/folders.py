"""Where the program keeps what it makes: results, downloaded data, and fine-tuned checkpoints."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def program_folder() -> Path:
    """The folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder; it need not be there yet."""
    return Path(os.environ.get("ATTENTION_SIEVE_CACHE") or user_cache_path("attention-sieve"))


def checkpoints_folder() -> Path:
    """Where checkpoints that were fine-tuned here lie, each in a folder of its name."""
    return program_folder() / "checkpoints"
