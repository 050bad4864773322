"""Fetches checkpoints from the Hugging Face Hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.checks.files import CHECKPOINT_FILES, WRITING_FILES
from attention_sieve.core.checkpoints.saved_runs import may_be_a_run
from attention_sieve.core.errors import CheckpointError, HubOutOfReach

PATTERNS: Final = [*CHECKPOINT_FILES, *WRITING_FILES]
"""Names of the files that are fetched."""
WAIT_SECONDS: Final = 10
"""Timeout for the hub's answer about one file."""
GONE: Final = "If it is a fine-tuning run, it was deleted here or made on another machine"
"""Explanation for a run that is not on this machine."""


def fetch(name: str, *, ask_hub: bool = True) -> tuple[Path, str]:
    """Download the files of a hub checkpoint, or use the local hub cache if the hub cannot be reached, or must not be
    asked.

    Returns: their folder, and the commit.
    Raises: CheckpointError.
    """
    from huggingface_hub import snapshot_download

    with _errors_explained(name):
        folder = Path(
            snapshot_download(name, allow_patterns=PATTERNS, etag_timeout=WAIT_SECONDS, local_files_only=not ask_hub)
        )
    return folder, folder.name


def bytes_to_fetch(name: str) -> int:
    """Size of the files that `fetch` would download; 0 if the hub does not list them, as nothing can be fetched then.

    Asks the hub for names and sizes of files only.

    Raises: CheckpointError for what cannot be a hub id.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import DryRunError

    try:
        with _errors_explained(name):
            files = snapshot_download(name, allow_patterns=PATTERNS, etag_timeout=WAIT_SECONDS, dry_run=True)
    except DryRunError:
        return 0
    return sum(file.file_size or 0 for file in files if file.will_download)


@contextmanager
def _errors_explained(name: str) -> Iterator[None]:
    from httpx2 import HTTPError
    from huggingface_hub.errors import (
        DryRunError,
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        yield
    except DryRunError:
        raise
    except HFValidationError:
        raise CheckpointError(
            f"{name[:100]!r} is neither a folder nor a hub id. Hub ids look like organisation/name, of letters, "
            "digits, - _ ."
        ) from None
    except GatedRepoError:
        raise CheckpointError(
            f"{name} is gated on the hub. Accept its terms there and log in with: hf auth login"
        ) from None
    except RepositoryNotFoundError:
        or_here = f" {GONE}." if may_be_a_run(name) else ""
        raise CheckpointError(
            f"The hub has no checkpoint {name}. Check the spelling, or log in if it is private.{or_here}"
        ) from None
    except (LocalEntryNotFoundError, HTTPError):
        if may_be_a_run(name):
            fetch_it = "if it is a model of the hub, connect to the internet to fetch it."
            raise HubOutOfReach(f"{name} is not on this machine. {GONE}; {fetch_it}") from None
        raise HubOutOfReach(_no_answer(name)) from None
    except OSError as error:
        raise CheckpointError(_no_answer(name, f" ({error.strerror})" if error.strerror else "")) from None


def _no_answer(name: str, reason: str = "") -> str:
    return (
        f"The hub could not be reached for {name}{reason}, and no copy is on this machine. Check the connection, or "
        "give a local folder."
    )


def is_offline() -> bool:
    """Whether this machine is set to stay offline."""
    from huggingface_hub import constants  # the functions that look into its cache take half a second to import

    return constants.HF_HUB_OFFLINE


def has_copy(name: str) -> bool:
    """Whether this machine has a copy of a hub checkpoint."""
    from huggingface_hub import constants

    copies = Path(constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "snapshots")
    return copies.is_dir()
