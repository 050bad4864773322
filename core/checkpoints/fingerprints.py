"""Digests of a checkpoint's files, one fingerprint over all of them, and detection of changes."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from attention_sieve.core.errors import CheckpointError


@dataclass(frozen=True)
class FileState:
    """State of one file."""

    name: str
    sha256: str
    mark: tuple[int, ...]
    """Size, times and inode: a different mark means that the file was written to, even if its bytes are equal."""


def file_states(name: str, folder: Path, patterns: Sequence[str]) -> tuple[FileState, ...]:
    """State of every file in a folder on which results depend, sorted by name. Files may be links.

    Raises: CheckpointError for an entry that cannot be read as a file.
    """
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    return tuple(_state(name, path) for path in sorted(paths))


def fingerprint(states: Sequence[FileState]) -> str:
    """SHA-256 over file names and contents; independent of the location of the folder."""
    return hashlib.sha256("\n".join(f"{state.name} {state.sha256}" for state in states).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; cached until the file is written to."""
    return _sha256_of(path, _mark(path))


@contextmanager
def held_still(name: str, folder: Path, patterns: Sequence[str], recorded: Sequence[FileState]) -> Iterator[None]:
    """Raise if a file has changed since its state was recorded, or is written to while the block runs.

    Such a change is the most likely cause of any error inside the block, so it is reported instead.

    Raises: CheckpointError that names the first file that changed.
    """
    states_before = file_states(name, folder, patterns)
    _check_same(
        name, [(each.name, each.sha256) for each in recorded], [(each.name, each.sha256) for each in states_before]
    )
    try:
        yield
    finally:
        states_after = file_states(name, folder, patterns)
        _check_same(
            name, [(each.name, each.mark) for each in states_before], [(each.name, each.mark) for each in states_after]
        )


def _check_same(name: str, before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]) -> None:
    changed = sorted({file for file, _ in set(before) ^ set(after)})
    if changed:
        remainder = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        raise CheckpointError(
            f"{changed[0]}{remainder} of {name} changed while the checkpoint was being loaded, so its parts may not "
            "belong together. Wait until nothing writes to its folder, and try again."
        )


def _state(name: str, path: Path) -> FileState:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise CheckpointError(f"{path.name} of {name} is not a regular file. Replace it by the file itself.")
        return FileState(path.name, file_sha256(path), _mark(path))
    except OSError as error:
        raise CheckpointError(
            f"{path.name} of {name} cannot be read ({error.strerror}). Check the file and where a link to it leads."
        ) from None


def _mark(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


@lru_cache(maxsize=512)
def _sha256_of(path: Path, _mark: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
