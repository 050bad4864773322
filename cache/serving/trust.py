"""Trusted checkpoints; others are first loaded on trial in a separate process."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import bundled_folder
from attention_sieve.core.checkpoints.fingerprints import fingerprint
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.checkpoints.trial_load import try_to_load

TRIED: Final = "tried"
"""Folder in the program's data with an empty file for each checkpoint that passed its trial, named by fingerprint."""

_trying: Final = Lock()
"""Allows one trial at a time, because each may take gigabytes of memory."""


def check_by_trial(files: CheckpointFiles) -> None:
    """Load a checkpoint on trial, once, unless it is trusted.

    Trusted are the bundled one, those that this program made, and those below a folder that ATTENTION_SIEVE_TRUSTED
    names (several are separated as in PATH).

    Raises: CheckpointError.
    """
    folders = os.environ.get("ATTENTION_SIEVE_TRUSTED", "").split(os.pathsep)
    trusted = (bundled_folder(), checkpoints_folder(), *(Path(folder) for folder in folders if folder))
    if any(files.folder.resolve().is_relative_to(folder.resolve()) for folder in trusted):
        return
    # `states` is the same for all random weights of one architecture.
    record = program_folder() / TRIED / fingerprint(files.all_states)
    with _trying:
        if not os.path.exists(record):
            try_to_load(files)
            with suppress(OSError):  # if it cannot be written, the trial is repeated next time
                record.parent.mkdir(parents=True, exist_ok=True)
                record.touch()
