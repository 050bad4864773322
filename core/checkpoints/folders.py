"""Folders for the program's data: results, downloads, and fine-tuned checkpoints."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def program_folder() -> Path:
    """The folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder; it may not exist yet."""
    return Path(os.environ.get("ATTENTION_SIEVE_CACHE") or user_cache_path("attention-sieve"))


def checkpoints_folder() -> Path:
    """Folder of the checkpoints fine-tuned with this program, one folder per run."""
    return program_folder() / "checkpoints"
