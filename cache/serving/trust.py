"""Which checkpoints are loaded here without a trial in a process of their own."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import bundled_folder
from core.checkpoints.fingerprints import fingerprint
from core.checkpoints.folders import checkpoints_folder, program_folder
from core.checkpoints.trial_load import try_to_load

TRIED: Final = "tried"
"""Folder of the program's data: a file for each checkpoint that was loaded on trial, named by its fingerprint."""

_trying: Final = Lock()
"""One trial at a time: each may take gigabytes."""


def check_by_trial(files: CheckpointFiles) -> None:
    """Load a checkpoint on trial, once, unless it is trusted.

    Trusted are the bundled one, those that this program made, and those below a folder that ATTENTION_SIEVE_TRUSTED
    names (several are separated as in PATH).

    Raises: CheckpointError.
    """
    named = os.environ.get("ATTENTION_SIEVE_TRUSTED", "").split(os.pathsep)
    trusted = (bundled_folder(), checkpoints_folder(), *(Path(folder) for folder in named if folder))
    if any(files.folder.resolve().is_relative_to(folder.resolve()) for folder in trusted):
        return
    # The same for all random weights of one architecture.
    passed = program_folder() / TRIED / fingerprint(files.states)
    with _trying:
        if not os.path.exists(passed):
            try_to_load(files)
            with suppress(OSError):  # where nothing can be written, it is tried anew next time
                passed.parent.mkdir(parents=True, exist_ok=True)
                passed.touch()
