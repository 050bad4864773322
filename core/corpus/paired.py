"""Two checkpoints on the same texts: statistics of the differences of their scores, text by text."""

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.commands import make_folder, write_whole
from core.comparison.differences import ROUNDING
from core.corpus.manifest import Shard, score_path
from core.corpus.questions import ROLE_SCORES
from core.corpus.results import Results
from core.corpus.score_files import read_role_scores
from core.corpus.statistics import (
    Series,
    Statistics,
    merged_statistics,
    open_statistics,
    statistics_of,
    write_statistics,
)
from core.corpus.strata import EVERYTHING
from core.errors import AnalysisError
from core.roles.hypotheses import CONSTANT_SPREAD, Criterion, corrected
from core.roles.roles import ROLES
from core.statistics.means import half_interval, ratio
from core.statistics.sums import Sums

DIFFERENCES: Final = "differences"
ON_REFERENCE: Final = "roles of the reference"


@dataclass(frozen=True, eq=False, kw_only=True)
class Differences:
    """Compared minus reference, by role, layer and head; NaN where there was nothing to test."""

    texts: Int[np.ndarray, "role layer head"]
    mean_a: Float[np.ndarray, "role layer head"]
    """Of the reference."""
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
    """Refuse two results that are not of the same texts, or were not scored alike.

    Raises: AnalysisError.
    """
    if a.texts_sha256 != b.texts_sha256:
        raise AnalysisError(
            f"{a.folder.name} and {b.folder.name} hold other texts, or the same ones in other shards. Run the second "
            "checkpoint on the same texts with the same shard size."
        )
    alike = ("direction", "block_entropy", "scale", "parses", "kind")
    if other := [name for name in alike if getattr(a.settings, name) != getattr(b.settings, name)]:
        raise AnalysisError(
            f"{a.folder.name} and {b.folder.name} differ in their {other[0].replace('_', ' ')}. Run the second "
            "with the settings of the first."
        )


def differences_path(a: Results, b: Results) -> Path:
    """File of the differences of two results, in the folder of the compared one."""
    return b.folder / DIFFERENCES / f"{a.fingerprint[:16]}.safetensors"


def write_differences(a: Results, b: Results) -> Path:
    """Read the scores of both shard by shard, and write the statistics of their differences; no model runs.

    Args:
        a: the reference.
        b: the compared checkpoint.

    Raises: AnalysisError where the two are not of the same texts, have other heads, or cannot be read or written.
    """
    check_same_texts(a, b)
    pairs = zip(a.manifest.shards, b.manifest.shards, strict=True)
    rounding = max(ROUNDING[each.settings.dtype] for each in (a, b))
    total = reduce(merged_statistics, (_of_shard(a, b, one, other, rounding) for one, other in pairs))
    path = differences_path(a, b)
    make_folder(path.parent)
    facts = {"reference": a.fingerprint, "compared": b.fingerprint, "texts": a.texts_sha256}
    try:
        write_whole(path, lambda part: write_statistics(part, total, facts))
    except OSError as error:
        raise AnalysisError(f"{path} cannot be written ({error.strerror or error}). Make room there.") from None
    return path


def _of_shard(a: Results, b: Results, one: Shard, other: Shard, rounding: float) -> Statistics:
    (scores_a, _), (scores_b, _) = (
        read_role_scores(score_path(results.folder, shard), ROLES) for results, shard in ((a, one), (b, other))
    )
    if scores_a.shape != scores_b.shape:
        raise AnalysisError(f"{a.checkpoint} and {b.checkpoint} have not the same heads. Compare others.")
    before, after = scores_a.astype(np.float64), scores_b.astype(np.float64)
    apart = after - before
    apart[np.abs(apart) <= rounding * (1 + np.maximum(np.abs(before), np.abs(after)))] = 0
    series = {
        ROLE_SCORES: Series(values=apart),
        ON_REFERENCE: Series(values=np.where(np.isnan(apart), np.nan, before)),
    }
    return statistics_of(series, {(EVERYTHING,): np.arange(len(apart))})


def read_differences(a: Results, b: Results, settings: Criterion) -> Differences | None:
    """Paired tests of the differences of two results; None before `write_differences`.

    Raises: AnalysisError where the two are not of the same texts, and for a damaged file.
    """
    check_same_texts(a, b)
    path = differences_path(a, b)
    if not path.is_file():
        return None
    file = open_statistics(path)
    if (file.facts.get("compared"), file.facts.get("texts")) != (b.fingerprint, b.texts_sha256):
        return None
    sums = file.read([EVERYTHING]).sums
    return _tested(sums[ROLE_SCORES].at(0), sums[ON_REFERENCE].at(0), settings)


def _tested(apart: Sums, reference: Sums, settings: Criterion) -> Differences:
    """As `core.comparison.differences.paired_tests`, from the sums."""
    from scipy.special import stdtr

    std = np.sqrt(ratio(apart.squares, apart.n - 1))
    constant = std <= CONSTANT_SPREAD * np.abs(apart.mean)
    t = ratio(apart.mean, np.where(constant, 0, std)) * np.sqrt(apart.n)
    p = 2 * stdtr(apart.n - 1, -np.abs(t))
    p_adjusted = corrected(p, settings)
    margin = half_interval(apart.n, apart.squares, settings.alpha)
    return Differences(
        texts=apart.n,
        mean_a=reference.mean,
        mean_b=reference.mean + apart.mean,
        difference=apart.mean,
        low=apart.mean - margin,
        high=apart.mean + margin,
        t=t,
        p=p,
        p_adjusted=p_adjusted,
        differs=np.where(constant, apart.mean != 0, p_adjusted < settings.alpha),
    )
