"""Pruning curves: a score against the share of heads removed, in the order of a measure. Does not import torch.

An order is determined on one half of the texts and evaluated on the other, and vice versa; every text is evaluated
once, with the order from the half that it is not in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.errors import AnalysisError
from core.importance.effects import ALPHA, FEWEST_TEXTS, Draws, interval, interval_and_p
from core.importance.metrics import Score

STEPS: Final = 10
"""Number of steps from all heads to none."""
RANDOM_ORDERS: Final = 10
COLUMNS: Final = ("order", "draw", "removed", "share", "score", "delta", "low", "high")


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
    """95% interval of delta, by paired bootstrap over the texts; the orders stay as they are."""
    drawn: Float[np.ndarray, "corpus step"]
    """Delta in each resampled corpus, the same corpora for all curves; NaN with fewer than two texts, or documents."""
    drawn_full: Float[np.ndarray, " corpus"]
    """Score with no head removed in each drawn corpus."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeCurve:
    """A curve as a share of its score with no head removed, where it is 1."""

    value: Float[np.ndarray, " step"]
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """95% interval over the corpora in which that score is above 0; NaN with fewer than two texts, or documents."""


@dataclass(frozen=True, kw_only=True)
class Removable:
    """How many heads an order can remove while the score stays within a tolerance at all steps."""

    order: str
    n: int
    low: float
    high: float
    """95% interval over drawn corpora; NaN with fewer than two texts, or documents."""


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
    """How many heads are removed at each step: STEPS equal shares of all heads, rounded down, up to all removable ones.

    Args:
        n_heads: number of heads in all layers, without missing ones.
        n_removable: how many of these can be removed.
    """
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
    order: str,
    draw: int,
    counts: Int[np.ndarray, " step"],
    outcomes: Float[np.ndarray, "text step part"],
    score: Score,
    draws: Draws,
) -> Curve:
    """A curve from outcomes of each text at each step, the first with no head removed."""
    scores = score.of(outcomes)
    drawn = draws.scores(score, outcomes)
    delta, changes = scores - scores[:1], drawn - drawn[:, :1]
    low, high, _ = interval_and_p(draws, delta, changes)
    if draws.n_units < FEWEST_TEXTS:
        changes = np.full_like(changes, np.nan)
    return Curve(
        order=order,
        draw=draw,
        n_removed=counts,
        score=scores,
        delta=delta,
        low=low,
        high=high,
        drawn=changes,
        drawn_full=drawn[:, 0],
    )


def relative(absolute: Curve) -> RelativeCurve:
    """A curve as a share of its score with no head removed; NaN where that score is not above 0.

    Source: Michel et al. 2019, figure 5.
    """
    full, drawn_full = float(absolute.score[0]), absolute.drawn_full[:, None]
    value = absolute.score / full if full > 0 else np.full(absolute.score.shape, np.nan)
    is_defined = (drawn_full > 0) & ~np.isnan(value)
    shares = np.where(is_defined, 1 + absolute.drawn / np.where(drawn_full > 0, drawn_full, 1), np.nan)
    low, high = interval(shares)
    return RelativeCurve(value=value, low=low, high=high)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of curves of one order, such as random ones, with its interval.

    Args:
        curves: one or more, over the same texts and steps.
    """
    score, delta, drawn, drawn_full = (
        np.mean([getattr(item, name) for item in curves], axis=0) for name in ("score", "delta", "drawn", "drawn_full")
    )
    low, high = interval(drawn)
    return replace(curves[0], draw=0, score=score, delta=delta, low=low, high=high, drawn=drawn, drawn_full=drawn_full)


def allowed_loss(score: Score, full: float, within: float) -> float:
    """How much worse a score may get, in its own units.

    Args:
        score: for a loss, the tolerance is relative to its value with all heads; for every other score, absolute.
        full: score with all heads.
        within: for example 0.01: one point of accuracy, or 1% of a loss.
    """
    return within * abs(full) if score.name == "loss" else within


def removable(curves: Sequence[Curve], sign: int, tolerance: float) -> list[Removable]:
    """How many heads each order can remove while the score is worse by at most a tolerance, at all steps up to there.

    Args:
        curves: random orders are averaged.
        sign: as in `Score.sign`.
        tolerance: in units of the score.
    """
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
    """One row per order, draw and step, with COLUMNS.

    Args:
        curves: one or more.
        n_heads: number of heads before any is removed.
    """
    parts = [
        pd.DataFrame(
            {
                "order": item.order,
                "draw": item.draw,
                "removed": item.n_removed,
                "share": item.n_removed / n_heads,
                **{name: getattr(item, name) for name in COLUMNS[4:]},
            }
        )
        for item in curves
    ]
    return pd.concat(parts, ignore_index=True)
