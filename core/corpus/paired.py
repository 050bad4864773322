"""Two checkpoints on the same texts: statistics of the differences of their scores, text by text."""

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.commands import make_folder, write_whole
from attention_sieve.core.comparison.differences import ROUNDING
from attention_sieve.core.corpus.manifest import Shard, score_path
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.corpus.score_files import read_role_scores
from attention_sieve.core.corpus.statistics import (
    Statistics,
    merged_statistics,
    open_statistics,
    statistics_of,
    write_statistics,
)
from attention_sieve.core.corpus.strata import EVERYTHING
from attention_sieve.core.errors import PROGRAM, AnalysisError
from attention_sieve.core.roles.analysis import ROLE_SCORES
from attention_sieve.core.roles.hypotheses import CONSTANT_SPREAD, Criterion, corrected
from attention_sieve.core.statistics.means import half_interval, ratio
from attention_sieve.core.statistics.series import Series, Sums

DIFFERENCES: Final = "differences"
ON_REFERENCE: Final = "roles of the reference"


@dataclass(frozen=True, eq=False, kw_only=True)
class Differences:
    """Compared minus reference, by role, layer and head; NaN if there was nothing to test."""

    texts: Int[np.ndarray, "role layer head"]
    mean_a: Float[np.ndarray, "role layer head"]
    """Mean score under the reference."""
    mean_b: Float[np.ndarray, "role layer head"]
    difference: Float[np.ndarray, "role layer head"]
    low: Float[np.ndarray, "role layer head"]
    """Two-sided 1 - alpha interval of the mean difference."""
    high: Float[np.ndarray, "role layer head"]
    t: Float[np.ndarray, "role layer head"]
    p: Float[np.ndarray, "role layer head"]
    """Two-sided."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    differs: Bool[np.ndarray, "role layer head"]


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
    total = reduce(merged_statistics, (_of_shard(a, b, shard_a, shard_b, rounding) for shard_a, shard_b in pairs))
    path = differences_path(a, b)
    make_folder(path.parent)
    facts = {"reference": a.fingerprint, "compared": b.fingerprint, "texts": a.texts_sha256}
    try:
        write_whole(path, lambda temporary: write_statistics(temporary, total, facts))
    except OSError as error:
        raise AnalysisError(
            f"{path} cannot be written ({error.strerror or error}). Check the free space and the permissions there."
        ) from None
    return path


def _of_shard(a: Results, b: Results, shard_a: Shard, shard_b: Shard, rounding: float) -> Statistics:
    (scores_a, _), (scores_b, _) = (
        read_role_scores(score_path(results.folder, shard), results.settings.roles)
        for results, shard in ((a, shard_a), (b, shard_b))
    )
    if scores_a.shape != scores_b.shape:
        raise AnalysisError(f"{a.checkpoint} and {b.checkpoint} do not have the same heads. Choose two that do.")
    reference, compared = scores_a.astype(np.float64), scores_b.astype(np.float64)
    differences = compared - reference
    differences[np.abs(differences) <= rounding * (1 + np.maximum(np.abs(reference), np.abs(compared)))] = 0
    series = {
        ROLE_SCORES: Series(values=differences),
        ON_REFERENCE: Series(values=np.where(np.isnan(differences), np.nan, reference)),
    }
    return statistics_of(series, {(EVERYTHING,): np.arange(len(differences))})


def read_differences(a: Results, b: Results, settings: Criterion) -> Differences | None:
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
    return _tested(sums[ROLE_SCORES].at(0), sums[ON_REFERENCE].at(0), settings)


def _tested(differences: Sums, reference: Sums, settings: Criterion) -> Differences:
    """As `attention_sieve.core.comparison.differences.paired_tests`, from the sums."""
    from scipy.special import stdtr

    std = np.sqrt(ratio(differences.squares, differences.n - 1))
    constant = std <= CONSTANT_SPREAD * np.abs(differences.mean)
    t = ratio(differences.mean, np.where(constant, 0, std)) * np.sqrt(differences.n)
    p = 2 * stdtr(differences.n - 1, -np.abs(t))
    p_adjusted = corrected(p, settings)
    margin = half_interval(differences.n, differences.squares, settings.alpha)
    return Differences(
        texts=differences.n,
        mean_a=reference.mean,
        mean_b=reference.mean + differences.mean,
        difference=differences.mean,
        low=differences.mean - margin,
        high=differences.mean + margin,
        t=t,
        p=p,
        p_adjusted=p_adjusted,
        differs=np.where(constant, differences.mean != 0, p_adjusted < settings.alpha),
    )
