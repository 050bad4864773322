"""Pruning curves: a score, and the functions of the heads that are left, against the share of heads removed.

An order is determined on one half of the texts and evaluated on the other, and vice versa; every text is evaluated
once, with the order from the half that it is not in. Does not import torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import FEWEST_TEXTS, Draws
from attention_sieve.core.importance.metrics import Score
from attention_sieve.core.importance.verdicts import ALPHA, Changes, differing, is_of_one_size, pseudo_values, verdicts

STEPS: Final = 10
"""Number of steps from all heads to none."""
RANDOM_ORDERS: Final = 10
RESAMPLES: Final = 1_999
"""Of the units, for intervals: curves have no p-values, which would need more."""
MEASURED: Final = {
    "score": "value of the metric",
    "delta": "score minus the score with all heads on",
    "low": "lower end of the 95% confidence interval of delta, with the orders taken as given; empty if there are too "
    "few texts",
    "high": "upper end of this interval",
}
COLUMNS: Final = {
    "order": "name of the order",
    "draw": "number of the random order, from 0; 0 for the others",
    "removed": "number of removed heads",
    "share": "share of removed heads among all heads",
    **MEASURED,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """A score against the number of heads removed in one order."""

    order: str
    draw: int
    """Number of the random order, from 0; 0 for every other order."""
    n_removed: Int[np.ndarray, " step"]
    score: Float[np.ndarray, " step"]
    delta: Float[np.ndarray, " step"]
    """Score minus that with no head removed."""
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """95% interval of delta, as of `verdicts`; the orders stay as they are. 0 with no head removed, unless no other
    step has one."""
    by_unit: Float[np.ndarray, "unit step"]
    """What each text, or document, contributes to the score: `pseudo_values`."""
    differs: Bool[np.ndarray, "unit step"]
    """Whether its contribution differs from that with no head removed."""
    drawn: Float[np.ndarray, "corpus step"]
    """Delta in each bootstrap resample, the same resamples for all curves; NaN with fewer than two texts, or
    documents."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeCurve:
    """A curve as a share of its score with no head removed, where it is 1."""

    value: Float[np.ndarray, " step"]
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """95% interval as of `verdicts`, with the ratio linearised around its value (delta method)."""


@dataclass(frozen=True, kw_only=True)
class Removable:
    """How many heads an order can remove while the score stays within a tolerance at all steps."""

    order: str
    n: int
    low: float
    high: float
    """Percentiles over bootstrap resamples, which describe and do not test; NaN with fewer than two texts, or
    documents."""


def removal_order(importance: Float[np.ndarray, "layer head"], at_least: int = 0) -> Int[np.ndarray, "removed 2"]:
    """Layer and head of the heads to remove, the least important first.

    Args:
        importance: larger is kept longer; ties are removed in index order. NaN for a missing head, which is left out.
        at_least: number of heads of each layer, the most important ones, that are never removed.

    Raises: AnalysisError if a layer does not have this many heads.
    """
    n_layers, n_heads = importance.shape
    if not 0 <= at_least <= n_heads:
        raise AnalysisError(f"A layer has {n_heads} heads, so {at_least} cannot be kept in each. Keep 0 to {n_heads}.")
    in_layer = np.argsort(np.argsort(importance, axis=1, kind="stable"), axis=1)
    is_there = ~np.isnan(importance)
    removable = is_there & (in_layer < is_there.sum(axis=1, keepdims=True) - at_least)
    order = np.argsort(importance, axis=None, kind="stable")
    order = order[removable.ravel()[order]]
    return np.stack(np.unravel_index(order, (n_layers, n_heads)), axis=1)


def n_removed(n_heads: int, n_removable: int) -> Int[np.ndarray, " step"]:
    """How many heads are removed at each step: STEPS equal shares of all, rounded down, up to all removable ones."""
    counts = n_heads * np.arange(STEPS + 1) // STEPS
    return np.unique(np.minimum(counts, n_removable))


def gatings(
    order: Int[np.ndarray, "removed 2"], counts: Int[np.ndarray, " step"], n_layers: int, n_heads: int
) -> Float[np.ndarray, "step layer head"]:
    """Gates after the given numbers of heads of an order are removed."""
    gates = np.ones((len(counts), n_layers, n_heads))
    for step, count in enumerate(counts):
        gates[step, order[:count, 0], order[:count, 1]] = 0
    return gates


def random_importance(n_layers: int, n_heads: int, draw: int) -> Float[np.ndarray, "layer head"]:
    """Random importance of the heads, the same for the same draw."""
    return np.random.default_rng(draw).random((n_layers, n_heads))


def curve(
    order: tuple[str, int],
    counts: Int[np.ndarray, " step"],
    outcomes: Float[np.ndarray, "text step part"],
    score: Score,
    documents: Sequence[str | None],
    draws: Draws,
) -> Curve:
    """A curve from outcomes of each text at each step, the first with no head removed.

    Args:
        order: its name and, for a random one, the number of the draw.
        counts: heads removed at each step.
        draws: over the same texts.
    """
    scores, drawn = score.of(outcomes), draws.scores(score, outcomes)
    delta, changes = scores - scores[:1], drawn - drawn[:, :1]
    by_unit, differs = pseudo_values(score, outcomes, documents), differing(score, outcomes[:, 0], outcomes, documents)
    step_changes = Changes(
        delta=delta,
        by_unit=by_unit - by_unit[:, :1],
        differs=differs,
        one_size=is_of_one_size(score, documents),
    )
    low, high = _interval(step_changes)
    if draws.n_units < FEWEST_TEXTS:
        changes = np.full_like(changes, np.nan)
    return Curve(
        order=order[0],
        draw=order[1],
        n_removed=counts,
        score=scores,
        delta=delta,
        low=low,
        high=high,
        by_unit=by_unit,
        differs=differs,
        drawn=changes,
    )


def _interval(step_changes: Changes) -> tuple[Float[np.ndarray, " step"], Float[np.ndarray, " step"]]:
    """Interval of the changes along a curve, the first of which is 0 by definition."""
    tested, delta = verdicts(step_changes, RESAMPLES), step_changes.delta
    is_known = (np.arange(len(delta)) == 0) & np.isfinite(tested.low).any()  # beside the interval of another step
    return np.where(is_known, delta, tested.low), np.where(is_known, delta, tested.high)


def relative(absolute: Curve) -> RelativeCurve:
    """A curve as a share of its score with no head removed; NaN where that score is not above 0.

    Source: Michel et al. 2019, figure 5.
    """
    full = float(absolute.score[0])
    if not full > 0:
        none = np.full(absolute.score.shape, np.nan)
        return RelativeCurve(value=none, low=none, high=none)
    value = absolute.score / full
    # The ratio's derivatives: 1 / full by the score, -value / full by that with no head removed.
    change = (absolute.by_unit - value * absolute.by_unit[:, :1]) / full + value - 1
    low, high = _interval(Changes(delta=value - 1, by_unit=change, differs=absolute.differs))
    return RelativeCurve(value=value, low=1 + low, high=1 + high)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of curves of one order, such as random ones, over the same texts and steps, with its interval."""
    score, delta, by_unit, drawn = (
        np.mean([getattr(item, name) for item in curves], axis=0) for name in ("score", "delta", "by_unit", "drawn")
    )
    differs = np.any([item.differs for item in curves], axis=0)
    low, high = _interval(Changes(delta=delta, by_unit=by_unit - by_unit[:, :1], differs=differs))
    return replace(
        curves[0],
        draw=0,
        score=score,
        delta=delta,
        low=low,
        high=high,
        by_unit=by_unit,
        differs=differs,
        drawn=drawn,
    )


def allowed_loss(score: Score, full: float, within: float) -> float:
    """How much worse a score may get, in its own units.

    Args:
        score: for a loss, the tolerance is relative to its value with all heads; for every other score, absolute.
        full: score with all heads.
        within: for example 0.01: one point of accuracy, or 1% of a loss.
    """
    return within * abs(full) if score.name == "loss" else within


def removable(curves: Sequence[Curve], score: Score, within: float) -> list[Removable]:
    """How many heads each order can remove while the score is only so much worse, at all steps up to there.

    Args:
        curves: random orders are averaged.
        within: as of `allowed_loss`.
    """
    sign, tolerance = score.sign, allowed_loss(score, float(curves[0].score[0]), within)
    results = []
    for name in dict.fromkeys(item.order for item in curves):
        group = [item for item in curves if item.order == name]
        counts = group[0].n_removed
        n_heads = _n_fine(counts, sign * np.mean([item.delta for item in group], axis=0)[None], tolerance)[0]
        drawn = sign * np.mean([item.drawn for item in group], axis=0)
        low = high = float("nan")
        if not np.isnan(drawn).any():
            low, high = np.quantile(_n_fine(counts, drawn, tolerance), [ALPHA / 2, 1 - ALPHA / 2], method="nearest")
        results.append(Removable(order=name, n=int(n_heads), low=float(low), high=float(high)))
    return results


def _n_fine(
    counts: Int[np.ndarray, " step"], damage: Float[np.ndarray, "corpus step"], tolerance: float
) -> Int[np.ndarray, " corpus"]:
    """Heads removed at the last step before the damage first exceeds the tolerance."""
    return counts[np.cumprod(damage <= tolerance, axis=-1).sum(axis=-1) - 1]


def curves_table(curves: Sequence[Curve], n_heads: int) -> pd.DataFrame:
    """One row per order, draw and step, with COLUMNS; `n_heads` are there before any is removed."""
    parts = [
        pd.DataFrame(
            {
                "order": item.order,
                "draw": item.draw,
                "removed": item.n_removed,
                "share": item.n_removed / n_heads,
                **{name: getattr(item, name) for name in MEASURED},
            }
        )
        for item in curves
    ]
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptFunction:
    """How many of the heads with a function remain at each step of an order."""

    name: str
    n_removed: Int[np.ndarray, " step"]
    """Heads removed, with this function or without."""
    kept: Int[np.ndarray, " step"]
    expected: Float[np.ndarray, " step"]
    """Mean number that would remain if as many heads were removed at random."""
    low: Int[np.ndarray, " step"]
    high: Int[np.ndarray, " step"]
    """Range of the number that remains in 95% of random removals."""


def kept_functions(
    functions: Mapping[str, Bool[np.ndarray, "layer head"]],
    order: Int[np.ndarray, "removed 2"],
    counts: Sequence[int],
    is_there: Bool[np.ndarray, "layer head"],
) -> list[KeptFunction]:
    """How many heads with each function remain; functions that no head has are left out.

    Args:
        functions: whether each head has it; a head may have several.
        order: layer and head of the heads to remove, in this order.
        counts: heads removed at each step.
        is_there: heads that exist before any of these is removed.

    Source: Voita et al. 2019, figure 8. Their heads are removed by gates during training, and there is no control; the
        random removal here draws from all heads alike (hypergeometric).
    """
    from scipy.stats import hypergeom

    n_removed, n_heads = np.asarray(counts), int(is_there.sum())
    results = []
    for name, has_function in functions.items():
        n_with = int((has_function & is_there).sum())
        if not n_with:
            continue
        removed_has_function = has_function[order[:, 0], order[:, 1]]
        n_lost = np.concatenate([[0], np.cumsum(removed_has_function)])[n_removed]
        random = hypergeom(n_heads, n_with, n_heads - n_removed)
        results.append(
            KeptFunction(
                name=name,
                n_removed=n_removed,
                kept=n_with - n_lost,
                expected=n_with * (n_heads - n_removed) / n_heads,
                low=random.ppf(ALPHA / 2).astype(int),
                high=random.ppf(1 - ALPHA / 2).astype(int),
            )
        )
    return results
