"""Checkpoints and runs that this server offers: all, or on a public server those that its owner names."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.checkpoints.folders import CONFIGS
from attention_sieve.core.checkpoints.saved_runs import SavedRun, list_runs, read_progress, run_and_step
from attention_sieve.core.errors import CheckpointError
from attention_sieve.dashboard.public import CHECKPOINTS, is_public

DEPTH: Final = 2
"""Maximum depth of a checkpoint below a named folder: a run and its saved steps."""


def checkpoint_names() -> tuple[str, ...]:
    return tuple(_checkpoint_sources(os.environ.get(CHECKPOINTS) or BUNDLED))


def offered_checkpoint(name: str) -> CheckpointFiles:
    """One of these checkpoints under its public name; visitors do not see the path of its files.

    Raises: CheckpointError for any other name.
    """
    source = _checkpoint_sources(os.environ.get(CHECKPOINTS) or BUNDLED).get(name)
    if source is None:
        raise CheckpointError(
            f"This server offers these checkpoints: {', '.join(checkpoint_names())}. Choose one of them."
        )
    try:
        files = find_checkpoint(source)
        base = files.base and replace(files.base, name=Path(files.base.name).name)
        return replace(files, name=name, base=base)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(source, name)) from None


def runs_here(checkpoint: str = "") -> tuple[SavedRun, ...]:
    """Fine-tuning runs of this machine, and the run of the laboratory that a checkpoint is a step of; none on a public
    server, where others would see their names."""
    own, _ = run_and_step(checkpoint)
    return () if is_public() else tuple(run for run in list_runs() if run.is_fine_tuning or run.name == own)


def laboratory_runs() -> tuple[SavedRun, ...]:
    """Runs of the laboratory with a saved step: those of this machine, or on a public server those that it offers."""
    if is_public():
        folders = (
            (name, Path(folder)) for name, folder in _checkpoint_sources(os.environ.get(CHECKPOINTS) or BUNDLED).items()
        )
        read = ((name, folder, read_progress(folder)) for name, folder in folders)
        runs = tuple(SavedRun(name, folder, progress) for name, folder, progress in read if progress is not None)
    else:
        runs = list_runs()
    return tuple(run for run in runs if not run.is_fine_tuning and run.progress.saved)


@lru_cache(maxsize=4)
def _checkpoint_sources(setting: str) -> MappingProxyType[str, str]:
    """Folder or hub id of each checkpoint, by public name."""
    sources = {
        name: source
        for entry in setting.split(os.pathsep)
        if entry.strip()
        for name, source in _checkpoints_of(entry.strip())
    }
    return MappingProxyType(sources)


def _checkpoints_of(entry: str) -> Iterator[tuple[str, str]]:
    folder = Path(os.path.expanduser(entry))
    if entry == BUNDLED or not folder.is_dir():
        yield entry, entry  # a hub id
        return
    folder = folder.resolve()
    for depth in range(DEPTH + 1):
        patterns = ["/".join((*["*"] * depth, config)) for config in CONFIGS]
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            # A link could lead out of the folder that the owner named.
            if path.parent.resolve().is_relative_to(folder):
                yield str(path.parent.relative_to(folder.parent)), str(path.parent)
