"""Folders for the program's data: results, downloads, trials, and fine-tuned checkpoints."""

import os
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

CONFIGS: Final = ("config.json", "adapter_config.json")
"""Configurations of a whole checkpoint and of an adapter."""
UNFINISHED: Final = ".part"
"""Ends the name of a checkpoint's folder until it is checked."""


def program_folder() -> Path:
    """The folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder; it may not exist yet."""
    named = os.environ.get("ATTENTION_SIEVE_CACHE")
    return Path(os.path.expanduser(named)) if named else user_cache_path("attention-sieve")


def make_private(folder: Path) -> None:
    """Make a folder that others on this machine cannot read; one that is there keeps its permissions."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def checkpoints_folder() -> Path:
    """Folder of the checkpoints made with this program: a folder per fine-tuning run, or per removal of heads."""
    return program_folder() / "checkpoints"


def trials_folder() -> Path:
    """Folder of the rows of trials; it may not exist yet."""
    return program_folder() / "trials"


def holds_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a checkpoint or an adapter."""
    return any(os.path.isfile(folder / name) for name in CONFIGS)


def made_checkpoints() -> tuple[str, ...]:
    """Names of the finished checkpoints and the adapters in `checkpoints_folder()`, sorted."""
    names = sorted({path.parent.name for name in CONFIGS for path in checkpoints_folder().glob(f"*/{name}")})
    return tuple(name for name in names if not name.endswith(UNFINISHED))
