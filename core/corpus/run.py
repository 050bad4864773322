"""Runs a planned corpus on an engine, shard by shard, and merges the results in the order of the shards."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from attention_sieve.core.commands import write_whole
from attention_sieve.core.corpus.manifest import (
    FOLDERS,
    STATISTICS,
    Manifest,
    Shard,
    check_versions,
    statistics_path,
    written,
)
from attention_sieve.core.corpus.shard import ShardRecord, Soundness, clear_unfinished, read_record, scorer, soundness
from attention_sieve.core.corpus.statistics import Statistics, merged_statistics, open_statistics, write_statistics
from attention_sieve.core.engines.work import Executor
from attention_sieve.core.errors import AnalysisError

NAMED: Final = 10
"""Maximum number of shards that a message names."""
LOCK: Final = "run.lock"
"""Lock file of a results folder; the system releases the lock when the writing process ends."""


@dataclass(frozen=True, kw_only=True)
class ShardsDone:
    """How far a run is."""

    n_done: int
    """Finished shards, including those of earlier runs."""
    n_shards: int
    n_texts: int
    """Texts of the shards finished in this run."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a results folder against other runs; the folder is created if necessary.

    Raises: AnalysisError if another run is working there, or the folder cannot be written.
    """
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise AnalysisError(
            f"Another run is in progress in {folder}. Wait until it has ended, or choose another folder by --output."
        ) from None
    except OSError as error:
        raise AnalysisError(
            f"{folder} cannot be written ({error.strerror or error}). Choose another folder by --output."
        ) from None
    try:
        yield
    finally:
        lock.release()


def check(folder: Path, manifest: Manifest) -> dict[str, Soundness]:
    """Whether each shard of a corpus is complete and unchanged, by its name; reads all its files."""
    return {shard.name: soundness(folder, manifest, shard) for shard in manifest.shards}


def run(
    folder: Path,
    manifest: Manifest,
    engine: Executor,
    notify: Callable[[str], None] = lambda _: None,
    report: Callable[[ShardsDone], None] = lambda _: None,
) -> None:
    """Score the shards that are not done, then merge the statistics of all.

    Args:
        engine: scores shards.
        notify: called with messages about damaged or foreign shards.
        report: called with the progress.

    Raises: AnalysisError for the first shard that cannot be scored, and for a full disk; finished shards are kept.
    """
    check_versions(manifest)
    clear_unfinished(folder, (*FOLDERS, "."))
    states = check(folder, manifest)
    for problem, description in (("damaged", "damaged"), ("foreign", "computed with other settings")):
        if names := [name for name, state in states.items() if state == problem]:
            notify(f"{named(names)}: {description}, computed again.")
    missing = [shard for shard in manifest.shards if states[shard.name] != "done"]
    n_done, n_texts = len(manifest.shards) - len(missing), 0
    report(ShardsDone(n_done=n_done, n_shards=len(manifest.shards), n_texts=n_texts))
    for outcome in engine(partial(scorer, folder, manifest), missing):
        if outcome.result is None:
            raise AnalysisError(outcome.why)
        n_done, n_texts = n_done + 1, n_texts + missing[outcome.index].n_texts
        report(ShardsDone(n_done=n_done, n_shards=len(manifest.shards), n_texts=n_texts))
    merge(folder, manifest)


def named(names: list[str]) -> str:
    """Names of some shards, as the beginning of a sentence."""
    remainder = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"Shard{'s' * (len(names) > 1)} {', '.join(names[:NAMED])}{remainder}"


def merge(folder: Path, manifest: Manifest) -> Statistics:
    """Merge the statistics of all shards in their order, so that the sums are bit-identical on any engine.

    Raises: AnalysisError if a shard is not done or was scored with something else, and for a full disk.
    """
    records = [_record(folder, manifest, shard) for shard in manifest.shards]
    total = reduce(merged_statistics, _of_shards(folder, manifest))
    counts = {
        "n_texts": manifest.n_texts,
        "n_too_long": sum(record.n_too_long for record in records),
        "n_without_token": sum(record.n_without_token for record in records),
    }
    facts = manifest.facts() | counts
    path = folder / STATISTICS
    with written(path, "Free some space and run the command again."):
        write_whole(path, lambda temporary: write_statistics(temporary, total, facts))
    return total


def _record(folder: Path, manifest: Manifest, shard: Shard) -> ShardRecord:
    record = read_record(folder, shard)
    if record is None:
        raise AnalysisError(f"Shard {shard.name} is not done. Run the corpus before it is merged.")
    if record.tokenizer != manifest.tokenizer:
        raise AnalysisError(
            f"Shard {shard.name} was scored with another tokenizer than that of {manifest.checkpoint}. Run the corpus "
            "again to compute it."
        )
    if record.key != manifest.key(shard):
        raise AnalysisError(
            f"Shard {shard.name} was scored with another checkpoint, other settings or other packages. Run the corpus "
            "again to compute it."
        )
    return record


def _of_shards(folder: Path, manifest: Manifest) -> Iterator[Statistics]:
    expected = json.loads(json.dumps(manifest.facts()))
    for shard in manifest.shards:
        file = open_statistics(statistics_path(folder, shard))
        if dict(file.facts) != expected:
            raise AnalysisError(f"The statistics of shard {shard.name} are of another corpus. Run the corpus again.")
        yield file.read()
