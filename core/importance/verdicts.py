"""Test and interval of the change of a score, paired over texts or documents. Does not import torch.

Changes of a loss are skewed and those of an accuracy mostly 0, so that Student's t and the percentile bootstrap find
changes where there are none. `benchmarks/findings/verdicts.py` prints how often this test does. No test of a sample
holds its level where rare texts decide the mean: if 2% change by 20 times as much as the others, to one side, 13% of
samples of 100 texts have none of them, and this test finds a change in 14% where there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.importance.metrics import Score
from attention_sieve.core.statistics.means import document_numbers, document_sums, n_documents, times_drawn

ALPHA: Final = 0.05
RESAMPLES: Final = 9_999
"""The smallest p-value is 2 / 10,000, so that Benjamini-Hochberg and Holm can pass a single one of up to 249 heads."""
LEAST_UNITS: Final = 100
"""Minimum number of texts, or documents, that a head must change for a test, unless the changes are of one size.
With fewer, real changes of a loss are too skewed: at 64 texts, some head is significant after correction, although none
matters, in 16% of redraws; at 100 texts in 6%."""
LEAST_OF_ONE_SIZE: Final = 20
"""Minimum number of texts for a test if their changes are of one size: McNemar's test, which is valid by
construction."""
DRAWN_SHARE: Final = 2 / 3
"""Units in a resample, as a share of all. With all of them, lognormal changes of 20 texts are found in 7%, not 5.5%."""
NOTHING: Final = 1e-6
"""Changes of at most this share of the largest one count as 0."""
TIE: Final = 1e-9
"""Relative difference at which statistics that differ only by rounding count as equal."""
CELLS, WEIGHTS = 128, 2**22
"""Numbers of changes and of weights that are processed at once, to bound memory use."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Changes:
    """Changes of a score, and what each unit (a text, or a document where these are known) contributes to them."""

    delta: Float[np.ndarray, "*cell"]
    """Score without heads minus that with them; NaN for a removed head."""
    by_unit: Float[np.ndarray, "unit *cell"]
    """Differences of `pseudo_values`, whose mean is delta. Of a mean over texts: the change of each text."""
    differs: Bool[np.ndarray, "unit *cell"]
    """Whether the contribution of any text of the unit differs without the heads."""
    one_size: bool = False
    """Whether each unit can change by one amount alone, up or down, as `is_of_one_size` says; never read off the
    changes, which may have one size by chance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdicts:
    """Interval and p-value of each change; NaN where there are too few units for a test that holds."""

    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]
    """95% interval, which excludes 0 exactly where p is at most 0.05; NaN also where nothing changes."""
    p: Float[np.ndarray, "*cell"]
    """Two-sided, of "the score does not change"."""


def changes(
    score: Score,
    full: Float[np.ndarray, "text part"],
    without: Float[np.ndarray, "text *cell part"],
    documents: Sequence[str | None],
) -> Changes:
    """Change of a score in each cell, such as a head, and the contributions of the units.

    Args:
        score: to compare.
        full: outcomes with all heads on.
        without: outcomes without the head, or heads, of each cell.
        documents: of each text, None where unknown.
    """
    if without.ndim > 3:  # one layer after another, to bound memory use
        layers = [changes(score, full, without[:, layer], documents) for layer in range(without.shape[1])]
        return Changes(
            delta=np.stack([layer.delta for layer in layers]),
            by_unit=np.stack([layer.by_unit for layer in layers], axis=1),
            differs=np.stack([layer.differs for layer in layers], axis=1),
            one_size=layers[0].one_size,
        )
    return Changes(
        delta=score.of(without) - score.of(full),
        by_unit=pseudo_values(score, without, documents) - pseudo_values(score, full[:, None], documents),
        differs=differing(score, full, without, documents),
        one_size=is_of_one_size(score, documents),
    )


def is_of_one_size(score: Score, documents: Sequence[str | None]) -> bool:
    """Whether the changes of a score are of one size by definition: of an accuracy where each unit is a single text,
    which is right or wrong. A mean of 0 then means that as many texts become right as wrong."""
    return score.name == "accuracy" and n_documents(documents) in (None, len(documents))


def pseudo_values(
    score: Score, outcomes: Float[np.ndarray, "text *cell part"], documents: Sequence[str | None]
) -> Float[np.ndarray, "unit *cell"]:
    """What each unit contributes to a score: jackknife pseudo-values, shifted to a mean of the score.

    Of a mean over texts these are the values of the texts.

    Source: Tukey 1958; Efron and Tibshirani 1993, section 11.5.
    """
    terms = _by_unit(score.contributions(outcomes), documents)
    n_units, total = len(terms), terms.sum(axis=0)
    value = score.from_sums(total)
    contributions = n_units * value - (n_units - 1) * score.from_sums(total - terms)
    return contributions + (value - contributions.mean(axis=0))


def differing(
    score: Score,
    full: Float[np.ndarray, "text part"],
    without: Float[np.ndarray, "text cell part"],
    documents: Sequence[str | None],
) -> Bool[np.ndarray, "unit cell"]:
    """Whether the contribution of any text of a unit to a score differs without heads; arguments as of `changes`."""
    return _by_unit((score.contributions(without) != score.contributions(full[:, None])).any(axis=-1), documents) > 0


def _by_unit(values: np.ndarray, documents: Sequence[str | None]) -> np.ndarray:
    """Sums over the texts of each document, where these are known."""
    numbers = document_numbers(documents)
    return values if numbers is None else np.moveaxis(document_sums(np.moveaxis(values, 0, -1), numbers), -1, 0)


def verdicts(score_changes: Changes, resamples: int = RESAMPLES, seed: int = 0, least: int = LEAST_UNITS) -> Verdicts:
    """Test each change with two or three tests and take the largest p-value, so that each covers cases in which the
    others are not valid.

    Sign flips: exact for changes that are symmetric around 0; the interval inverts the same test. Bootstrap-t, for
    skewed changes: t of resamples of DRAWN_SHARE of the units in place of Student's distribution, equal-tailed. The
    same over only those units that the head changes, for changes that are mostly 0: how many units it changes does not
    depend on whether it helps or harms. The interval spans those of the tests. Changes of one size by definition, as
    those of the accuracy of single texts, are symmetric around 0 where their mean is 0: sign flips are McNemar's test
    and hold for any number of them, and Agresti and Min's interval takes the place of the bootstrap. A resample of
    equal values has an infinite t, so that an interval may have no end.

    Args:
        score_changes: changes.
        resamples: number of resamples, and of sign flips. No p-value is below 2 / (resamples + 1).
        seed: of both; the same for all cells.
        least: fewest units that a cell has to change unless changes are of one size; another number shows what the test
            does there.

    Source: sign flips as typical values: Hartigan 1969. Bootstrap-t: Efron and Tibshirani 1993, section 12.5; resamples
        smaller than the sample: Bickel, Götze and van Zwet 1997. A p-value counts the sample as one of the resamples:
        Davison and Hinkley 1997, section 4.2. Paired proportions: Agresti and Min 2005.
    """
    n_units, shape = len(score_changes.by_unit), score_changes.delta.shape
    low, high, p = np.full((3, score_changes.delta.size), np.nan)
    values, differs = (array.reshape(n_units, -1) for array in (score_changes.by_unit, score_changes.differs))
    tested = np.flatnonzero(np.isfinite(values).all(axis=0)) if n_units >= LEAST_OF_ONE_SIZE else np.array([], int)
    for cells in np.array_split(tested, -(-len(tested) // CELLS) or 1):
        part = Changes(
            delta=score_changes.delta.ravel()[cells],
            by_unit=values[:, cells],
            differs=differs[:, cells],
            one_size=score_changes.one_size,
        )
        low[cells], high[cells], p[cells] = _tested(part, resamples, seed, least)
    return Verdicts(low=low.reshape(shape), high=high.reshape(shape), p=p.reshape(shape))


_Ends = tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]
"""Lower and upper end of the interval, and p-value."""


def _tested(cell_changes: Changes, resamples: int, seed: int, least: int) -> _Ends:
    values, sizes = cell_changes.by_unit, np.abs(cell_changes.by_unit)
    differs = cell_changes.differs & (
        sizes > NOTHING * sizes.max(axis=0)
    )  # another wrong class does not change an accuracy
    n_changed = differs.sum(axis=0)
    low, high, p = np.full((3, values.shape[1]), np.nan)
    p[n_changed == 0] = 1
    if len(cells := np.flatnonzero(n_changed >= (1 if cell_changes.one_size else least))):
        low[cells], high[cells], p[cells] = (
            _one_size(values[:, cells], resamples, seed)
            if cell_changes.one_size
            else _any_size(values[:, cells], differs[:, cells], resamples, seed)
        )
    return low, high, p


def _one_size(values: Float[np.ndarray, "unit cell"], resamples: int, seed: int) -> _Ends:
    """Sign flips, with the interval of Agresti and Min for a difference of paired proportions."""
    from scipy.special import ndtr, ndtri  # takes a quarter of a second

    size, n = np.abs(values).max(axis=0), len(values) + 2
    balance, n_changed = values.sum(axis=0) / size, np.abs(values).sum(axis=0) / size
    centre, error = balance / n, np.sqrt(n_changed + 1 - balance**2 / n) / n
    margin = ndtri(1 - ALPHA / 2) * error
    p = np.maximum(_sign_flips(values, resamples, seed)[2], 2 * ndtr(-np.abs(centre / error)))
    p = np.maximum(p, 2 / (resamples + 1))  # as the bootstrap-t
    return _spanning(size * (centre - margin), size * (centre + margin), p)


def _any_size(
    values: Float[np.ndarray, "unit cell"], differs: Bool[np.ndarray, "unit cell"], resamples: int, seed: int
) -> _Ends:
    """Sign flips and bootstrap-t over all units, and over those that differ."""
    flips, over_all = _sign_flips(values, resamples, seed), _bootstrap_t(values, None, resamples, seed)
    p = np.maximum(flips[2], over_all[2])
    if not differs.all():
        p = np.maximum(p, _bootstrap_t(values, differs, resamples, seed)[2])
    return _spanning(np.minimum(flips[0], over_all[0]), np.maximum(flips[1], over_all[1]), p)


def _spanning(
    low: Float[np.ndarray, " cell"], high: Float[np.ndarray, " cell"], p: Float[np.ndarray, " cell"]
) -> _Ends:
    """The interval, up to 0 where the test does not exclude it."""
    has_zero = p > ALPHA
    return np.where(has_zero, np.minimum(low, 0), low), np.where(has_zero, np.maximum(high, 0), high), p


def _sign_flips(values: Float[np.ndarray, "unit cell"], resamples: int, seed: int) -> _Ends:
    """A mean m passes a flip if the changes minus m have, flipped, a mean at least as far from 0: exactly if m lies
    between the mean of the flipped changes and that of the others."""
    random, total, n_units = np.random.default_rng(seed), values.sum(axis=0), len(values)
    ends: list[np.ndarray] = []
    for n_rows in _rows(resamples, n_units):
        is_flipped = random.integers(2, size=(n_rows, n_units), dtype=np.int8).astype(float)
        n_flipped = is_flipped.sum(axis=1, keepdims=True)
        n_others, flipped = n_units - n_flipped, is_flipped @ values
        means = flipped / np.maximum(n_flipped, 1), (total - flipped) / np.maximum(n_others, 1)
        # Where none or all are flipped it is the sample itself, up to its sign, which every mean passes.
        infinite = np.where((n_flipped == 0) | (n_others == 0), np.inf, 0)
        ends.append(np.stack([np.minimum(*means) - infinite, np.maximum(*means) + infinite]))
    below, above = np.concatenate(ends, axis=1)
    tie = TIE * np.abs(total) / n_units
    p = (((below <= tie) & (above >= -tie)).sum(axis=0) + 1) / (resamples + 1)
    place = int(ALPHA * (resamples + 1))
    return np.partition(below, place - 1, axis=0)[place - 1], -np.partition(-above, place - 1, axis=0)[place - 1], p


def _bootstrap_t(
    values: Float[np.ndarray, "unit cell"], differs: Bool[np.ndarray, "unit cell"] | None, resamples: int, seed: int
) -> _Ends:
    """t of the mean over all units, or over those that differ, against t in resamples of the units."""
    random, n_units = np.random.default_rng(seed), len(values)
    counted = np.ones(values.shape) if differs is None else differs.astype(float)
    count = counted.sum(axis=0)
    mean = (values * counted).sum(axis=0) / count
    centred = (values - mean) * counted
    squares = np.square(centred)
    error = np.sqrt(squares.sum(axis=0) / (count * (count - 1)))
    n_drawn = round(DRAWN_SHARE * n_units)
    drawn: list[np.ndarray] = []
    for n_rows in _rows(resamples, n_units):
        times = times_drawn(random, n_rows, n_drawn, n_units)
        drawn_count = np.full((n_rows, 1), float(n_drawn)) if differs is None else times @ counted
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn_mean = times @ centred / drawn_count
            variance = times @ squares / drawn_count - drawn_mean**2
            variance[variance <= TIE * error**2 * count] = 0
            drawn.append(drawn_mean / np.sqrt(variance / (drawn_count - 1)))
    t, place = np.concatenate(drawn), int(ALPHA / 2 * (resamples + 1))
    largest, smallest = np.where(np.isnan(t), np.inf, t), np.where(np.isnan(t), -np.inf, t)
    is_constant = error <= TIE * np.abs(mean)  # the units that differ, though not all: the other tests decide
    error = np.where(is_constant, 1, error)
    observed = mean / error
    tie = TIE * np.abs(observed)
    sides = (largest >= observed - tie).sum(axis=0), (smallest <= observed + tie).sum(axis=0)
    p = np.where(is_constant, 0, np.minimum(1, 2 * (np.minimum(*sides) + 1) / (resamples + 1)))
    low = mean + error * np.partition(-largest, place - 1, axis=0)[place - 1]
    return low, mean - error * np.partition(smallest, place - 1, axis=0)[place - 1], p


def _rows(resamples: int, n_units: int) -> list[int]:
    """Sizes of parts of the resamples whose weights are processed at once."""
    rows = max(1, WEIGHTS // n_units)
    return [min(rows, resamples - start) for start in range(0, resamples, rows)]
