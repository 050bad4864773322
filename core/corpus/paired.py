"""Two checkpoints on the same texts: statistics of the differences of their scores, text by text."""

from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.commands import make_folder, write_whole
from attention_sieve.core.comparison.differences import ROUNDING, PairedTests, rounded_differences, tests_of_differences
from attention_sieve.core.corpus.manifest import Shard, score_path, written
from attention_sieve.core.corpus.results import Results, moments_of
from attention_sieve.core.corpus.score_files import read_role_scores
from attention_sieve.core.corpus.statistics import (
    EVERYTHING,
    Statistics,
    merged_statistics,
    open_statistics,
    statistics_of,
    write_statistics,
)
from attention_sieve.core.errors import PROGRAM, AnalysisError
from attention_sieve.core.roles.analysis import ROLE_SCORES
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.statistics.series import Series

DIFFERENCES: Final = "differences"
ON_REFERENCE: Final = "roles of the reference"


def check_same_texts(a: Results, b: Results) -> None:
    """Raise if two results have different texts or settings.

    Raises: AnalysisError.
    """
    if a.texts_sha256 != b.texts_sha256:
        raise AnalysisError(
            f"{a.folder.name} and {b.folder.name} contain different texts, or the same texts in different shards. "
            "Run the second checkpoint on the same texts with the same shard size."
        )
    shared = ("roles", "direction", "block_entropy", "scale", "parses", "kind")
    if differing := [name for name in shared if getattr(a.settings, name) != getattr(b.settings, name)]:
        raise AnalysisError(
            f"{a.folder.name} and {b.folder.name} differ in their {differing[0].replace('_', ' ')}. Run the second "
            "with the settings of the first."
        )


def differences_path(a: Results, b: Results) -> Path:
    """File of the differences of two results, in the folder of the compared one."""
    return b.folder / DIFFERENCES / f"{a.fingerprint[:16]}.safetensors"


def write_differences(a: Results, b: Results) -> Path:
    """Read both results' scores shard by shard, and write the statistics of their differences; no model runs.

    Args:
        a: the reference.
        b: the compared checkpoint.

    Raises: AnalysisError if texts or heads differ, or files cannot be read or written.
    """
    check_same_texts(a, b)
    pairs = zip(a.manifest.shards, b.manifest.shards, strict=True)
    rounding = max(ROUNDING[results.settings.dtype] for results in (a, b))
    total = reduce(
        merged_statistics, (_shard_differences(a, b, shard_a, shard_b, rounding) for shard_a, shard_b in pairs)
    )
    path = differences_path(a, b)
    make_folder(path.parent)
    facts = {"reference": a.fingerprint, "compared": b.fingerprint, "texts": a.texts_sha256}
    with written(path):
        write_whole(path, lambda temporary: write_statistics(temporary, total, facts))
    return path


def _shard_differences(a: Results, b: Results, shard_a: Shard, shard_b: Shard, rounding: float) -> Statistics:
    (scores_a, _), (scores_b, _) = (
        read_role_scores(score_path(results.folder, shard), results.settings.roles)
        for results, shard in ((a, shard_a), (b, shard_b))
    )
    if scores_a.shape != scores_b.shape:
        raise AnalysisError(f"{a.checkpoint} and {b.checkpoint} do not have the same heads. Choose two that do.")
    differences = rounded_differences(scores_a, scores_b, rounding)
    series = {
        ROLE_SCORES: Series(values=differences),
        ON_REFERENCE: Series(values=np.where(np.isnan(differences), np.nan, scores_a.astype(np.float64))),
    }
    return statistics_of(series, {(EVERYTHING,): np.arange(len(differences))})


def read_differences(a: Results, b: Results, settings: Criterion) -> PairedTests | None:
    """Paired tests of the differences of two results; None before `write_differences`.

    Raises: AnalysisError if the texts differ, and for a damaged file.
    """
    check_same_texts(a, b)
    path = differences_path(a, b)
    if not path.is_file():
        return None
    file = open_statistics(path)
    if (file.facts.get("compared"), file.facts.get("texts")) != (b.fingerprint, b.texts_sha256):
        return None
    sums = file.read([EVERYTHING]).sums
    shapes = [sums[name].n.shape[1:] for name in (ROLE_SCORES, ON_REFERENCE) if name in sums]
    if len(shapes) < 2 or len(set(shapes)) > 1 or len(shapes[0]) != 3 or shapes[0][0] != len(b.settings.roles):
        raise AnalysisError(f"{path} is damaged (its heads differ). Compare again: {PROGRAM} corpus compare")
    differences, reference = sums[ROLE_SCORES].at(0), sums[ON_REFERENCE].at(0)
    means = reference.mean, reference.mean + differences.mean
    return tests_of_differences(moments_of(differences), means, b.settings.roles, settings)
