"""Scores the shards of a planned corpus on an engine, and merges the results in the order of the shards.

A shard is scored by a pure function of its texts, the checkpoint and the settings.

Files are written under a temporary name and renamed; the record that the shard is done comes last. So however the
process ends, a shard is either done or as if it had not been started.
"""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from filelock import FileLock, Timeout

from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.answering import Analysis, Reading, Reduction, answer
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.commands import write_whole
from attention_sieve.core.corpus.manifest import (
    FOLDERS,
    STATISTICS,
    CorpusSettings,
    Manifest,
    Shard,
    check_versions,
    record_path,
    score_path,
    statistics_path,
    text_path,
    written,
)
from attention_sieve.core.corpus.plan import sha256_of
from attention_sieve.core.corpus.score_files import write_scores
from attention_sieve.core.corpus.statistics import (
    TOKENS,
    Statistics,
    groups_of,
    merged_statistics,
    open_statistics,
    statistics_of,
    write_statistics,
)
from attention_sieve.core.corpus.texts.inputs import CorpusText
from attention_sieve.core.corpus.texts.text_shards import read_texts
from attention_sieve.core.engines.work import Executor, run_missing
from attention_sieve.core.errors import AnalysisError, NoTokens, TextTooLong
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.passes.texts import PassText, check_settings, prepare, trees
from attention_sieve.core.pauses import pause
from attention_sieve.core.running import Journal
from attention_sieve.core.statistics.series import SCORE_BINS, Series, Values
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text

AnyAnalysis = Analysis[Any, Any, Any, Any, Any]
REDUCTIONS: Final = {
    analysis.name: (analysis, analysis.reduction) for analysis in ANALYSES if analysis.reduction is not None
}
"""The analyses that corpora run, by name."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NAMED: Final = 10
"""Maximum number of shards that a message names."""
LOCK: Final = "run.lock"
"""Lock file of a results folder; the system releases the lock when the writing process ends."""
Soundness = Literal["missing", "done", "damaged", "foreign"]


@dataclass(frozen=True, kw_only=True)
class ShardRecord:
    """Record of a finished shard."""

    key: str
    """Digest of everything that its scores depend on."""
    tokenizer: str
    n_texts: int
    n_too_long: int
    """Texts left out because they are too long."""
    n_without_token: int
    """Texts left out because they have no token of the checkpoint's vocabulary."""
    scores_sha256: str
    statistics_sha256: str


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardScores:
    """Results of a shard."""

    values: Values
    """Numbers of every text, NaN for those left out."""
    columns: Mapping[str, tuple[str, ...]]
    """As in `attention_sieve.core.answering.Reduction`."""
    statistics: Statistics
    n_too_long: int
    n_without_token: int


def scorer(folder: Path, manifest: Manifest) -> Callable[[Shard], ShardRecord]:
    """Load the checkpoint of a corpus and return the function that scores its shards.

    Raises: AnalysisError if the checkpoint cannot be loaded here, or has other files here.
    """
    from attention_sieve.core.checkpoints.threads import use_threads  # imports torch

    settings = manifest.settings
    use_threads(settings.n_threads)
    files = find_checkpoint(manifest.checkpoint)
    files = files if manifest.random_weights is None else randomly_initialised(files, manifest.random_weights)
    if files.fingerprint != manifest.fingerprint:
        raise AnalysisError(
            f"{manifest.checkpoint} has other files than when the corpus was planned. Restore the old ones, or plan "
            "the corpus again in another folder."
        )
    checkpoint = load_checkpoint(files, device=settings.device, dtype=settings.dtype)
    check_settings(checkpoint, settings.pass_settings)
    return lambda shard: score_and_write(checkpoint, folder, manifest, shard)


def score_and_write(checkpoint: Checkpoint, folder: Path, manifest: Manifest, shard: Shard) -> ShardRecord:
    """Score a shard and write its files.

    Raises: AnalysisError, which names the shard, for texts that cannot be scored, and for a full disk.
    """
    try:
        texts = read_texts(text_path(folder, shard))
        shard_scores = score_shard(checkpoint, texts, manifest.settings)
        return _write(folder, manifest, shard, shard_scores)
    except AnalysisError as error:
        raise AnalysisError(f"Shard {shard.name}: {error}") from None
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise AnalysisError(
            f"There is no space left for shard {shard.name} in {folder} ({error.strerror}). Free some space and run "
            "the command again; finished shards are kept."
        ) from None


def score_shard(checkpoint: Checkpoint, texts: Sequence[CorpusText], settings: CorpusSettings) -> ShardScores:
    """Scores and statistics of some texts.

    Raises: AnalysisError if any stage fails.
    """
    prepared, n_too_long, n_without_token = _prepared(checkpoint, texts, settings)
    if not prepared:
        raise AnalysisError("every text is either too long or has no tokens. Give other texts, or truncate them.")
    plain_texts = tuple(text.text for text in texts)
    reading = Reading(
        checkpoint=checkpoint, pass_settings=settings.pass_settings, inputs=plain_texts, prepared=prepared
    )
    values: dict[str, np.ndarray] = {}
    series: dict[str, Series] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for analysis, reduction in reductions(settings.questions):
        analysis_settings = settings.analysis_settings(analysis)
        numbers = _numbers(reading, analysis, reduction, analysis_settings)
        values |= numbers
        series |= reduction.series(numbers, analysis_settings)
        columns |= reduction.columns(analysis_settings)
    n_tokens = np.array([prepared[row].n_tokens if row in prepared else 0 for row in range(len(texts))])
    lengths = np.where(n_tokens > 0, n_tokens, np.nan).astype(float)
    series[TOKENS] = Series(values=lengths, bins=SCORE_BINS)
    return ShardScores(
        values=values,
        columns=columns,
        statistics=statistics_of(series, groups_of(texts, n_tokens)),
        n_too_long=n_too_long,
        n_without_token=n_without_token,
    )


def _prepared(
    checkpoint: Checkpoint, texts: Sequence[CorpusText], settings: CorpusSettings
) -> tuple[dict[int, PassText], int, int]:
    """Tokens of each text by its row, and the numbers of texts left out as too long and without a token."""
    prepared: dict[int, PassText] = {}
    n_too_long = n_without_token = 0
    truncate = settings.too_long == "truncate"
    for row, text in enumerate(texts):
        pause()
        try:
            prepared[row] = prepare(checkpoint, text.text, settings.pass_settings, position=row, truncate=truncate)
        except TextTooLong:
            if settings.too_long == "error":
                raise
            n_too_long += 1
        except NoTokens:
            n_without_token += 1
    return prepared, n_too_long, n_without_token


def reductions(names: Sequence[str]) -> list[tuple[AnyAnalysis, Reduction[Any, Any, Any]]]:
    """The analyses with these names, and how their answers are reduced, in the order of ANALYSES.

    Raises: AnalysisError for a name that none of REDUCTIONS has.
    """
    if unknown := [name for name in names if name not in REDUCTIONS]:
        raise AnalysisError(f"There is no question {unknown[0][:40]!r}. Choose among {', '.join(REDUCTIONS)}.")
    return [reduced for name, reduced in REDUCTIONS.items() if name in names]


def _numbers(
    reading: Reading[Text], analysis: AnyAnalysis, reduction: Reduction[Any, Any, Any], settings: Any
) -> dict[str, np.ndarray]:
    """The numbers of every text, in the order of the rows; NaN for those left out."""
    question = analysis.question(settings)
    question.check(reading.pass_settings.kind)
    tokens, read = list(reading.prepared.values()), [reading.inputs[row] for row in reading.prepared]
    items, rows = analysis.items(read, _trees(tokens, read), settings), np.array(list(reading.prepared))
    values: dict[str, np.ndarray] = {}
    for batch in answer(reading.checkpoint, question, items, dict(enumerate(tokens)), reading.pass_settings):
        places, results = zip(*batch, strict=True)
        for name, numbers in reduction.values([items[place] for place in places], results, settings).items():
            if name not in values:
                values[name] = np.full((len(reading.inputs), *numbers.shape[1:]), np.nan, numbers.dtype)
            values[name][rows[list(places)]] = numbers
    return values


def _trees(tokens: Sequence[PassText], texts: Sequence[Text]) -> Iterator[tuple[Text, Dependencies]]:
    """Parsed once the first is read, and so not for analyses that read none; of a text that is cut, the rest is not
    parsed."""
    yield from (parsed for parsed in trees(tokens, texts) if parsed is not None)


def _write(folder: Path, manifest: Manifest, shard: Shard, shard_scores: ShardScores) -> ShardRecord:
    """Write scores, statistics, and last the record."""
    scores, statistics = score_path(folder, shard), statistics_path(folder, shard)
    write_whole(scores, lambda temporary: write_scores(temporary, shard_scores.values, shard_scores.columns))
    write_whole(statistics, lambda temporary: write_statistics(temporary, shard_scores.statistics, manifest.facts()))
    record = ShardRecord(
        key=manifest.key(shard),
        tokenizer=manifest.tokenizer,
        n_texts=shard.n_texts,
        n_too_long=shard_scores.n_too_long,
        n_without_token=shard_scores.n_without_token,
        scores_sha256=sha256_of(scores),
        statistics_sha256=sha256_of(statistics),
    )
    write_whole(record_path(folder, shard), lambda temporary: _write_synced(temporary, json.dumps(asdict(record))))
    return record


def _write_synced(path: Path, content: str) -> None:
    """Write a text and wait until it is on the disk."""
    with path.open("w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_record(folder: Path, shard: Shard) -> ShardRecord | None:
    """The record of a shard; None if there is none that can be read."""
    try:
        return typed_json(record_path(folder, shard).read_bytes(), ShardRecord)
    except (OSError, ValueError):
        return None


def soundness(folder: Path, manifest: Manifest, shard: Shard) -> Soundness:
    """Whether a shard is done and its files are unchanged.

    Returns: "missing" if it is not done; "foreign" if it was scored with something else, such as another checkpoint;
        "damaged" if its files have changed since.
    """
    if not record_path(folder, shard).exists():
        return "missing"
    record = read_record(folder, shard)
    if record is None:
        return "damaged"
    if record.key != manifest.key(shard):
        return "foreign"
    files = (
        (score_path(folder, shard), record.scores_sha256),
        (statistics_path(folder, shard), record.statistics_sha256),
    )
    try:
        is_sound = all(sha256_of(path) == sha256 for path, sha256 in files)
    except OSError:
        return "damaged"
    return "done" if is_sound else "damaged"


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


def check(folder: Path, manifest: Manifest, journal: Journal) -> dict[str, Soundness]:
    """Whether each shard of a corpus is complete and unchanged, by its name; reads all its files."""
    states: dict[str, Soundness] = {}
    for shard in manifest.shards:
        journal.part("Checking the shards", len(states), len(manifest.shards))
        states[shard.name] = soundness(folder, manifest, shard)
    return states


def run(folder: Path, manifest: Manifest, engine: Executor, journal: Journal) -> None:
    """Score the shards that are not done, then merge the statistics of all.

    Args:
        engine: scores shards.
        journal: each shard is a piece; its notes name damaged and foreign shards, as does standard error.

    Raises: AnalysisError for the first shard that cannot be scored, and for a full disk; finished shards are kept.
    """
    check_versions(manifest)
    for name in (*FOLDERS, "."):
        for path in (folder / name).glob("*.part"):  # half written when a process was killed
            path.unlink(missing_ok=True)
    states = check(folder, manifest, journal)
    for problem, description in (("damaged", "damaged"), ("foreign", "computed with other settings")):
        if names := [name for name, state in states.items() if state == problem]:
            note = f"{named(names)}: {description}, computed again."
            journal.note(note)
            print(note, file=sys.stderr)
    missing = {shard.name: shard for shard in manifest.shards if states[shard.name] != "done"}
    sizes = {shard.name: shard.n_texts for shard in manifest.shards}
    run_missing(engine, partial(scorer, folder, manifest), missing, sizes, journal)
    journal.part("Merging the statistics")
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
    total = reduce(merged_statistics, _shard_statistics(folder, manifest))
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


def _shard_statistics(folder: Path, manifest: Manifest) -> Iterator[Statistics]:
    expected = json.loads(json.dumps(manifest.facts()))
    for shard in manifest.shards:
        pause()
        file = open_statistics(statistics_path(folder, shard))
        if dict(file.facts) != expected:
            raise AnalysisError(f"The statistics of shard {shard.name} are of another corpus. Run the corpus again.")
        yield file.read()
