"""Pruning curves: a score against the share of heads removed, in the order of a measure. Does not import torch.

An order is found on one half of the texts and judged on the other, and the other way round; every text is judged once,
by the order of the half that it is not in.
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
"""Steps from all heads to none."""
RANDOM_ORDERS: Final = 10
COLUMNS: Final = ("order", "draw", "removed", "share", "score", "delta", "low", "high")


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """A score against the number of heads removed in one order."""

    order: str
    draw: int
    """Of a random order, from 0; 0 for every other."""
    n_removed: Int[np.ndarray, " step"]
    score: Float[np.ndarray, " step"]
    delta: Float[np.ndarray, " step"]
    """Score minus that with no head removed."""
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """95% interval of delta, by paired bootstrap over the texts; the orders stay as they are."""
    drawn: Float[np.ndarray, "corpus step"]
    """Delta in each drawn corpus, the same corpora for all curves; NaN with fewer than two texts, or documents."""
    drawn_full: Float[np.ndarray, " corpus"]
    """Score with no head removed in each drawn corpus."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeCurve:
    """A curve as a share of its score with no head removed: 1 there."""

    value: Float[np.ndarray, " step"]
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """95% interval over the corpora in which that score is above 0; NaN with fewer than two texts, or documents."""


@dataclass(frozen=True, kw_only=True)
class Removable:
    """How many heads an order can remove so that the score, there and at all steps before, is hardly worse."""

    order: str
    n: int
    low: float
    high: float
    """95% interval over drawn corpora; NaN with fewer than two texts, or documents."""


def removal_order(importance: Float[np.ndarray, "layer head"], at_least: int = 0) -> Int[np.ndarray, "removed 2"]:
    """Layer and head of the heads to remove, the least important first.

    Args:
        importance: larger is kept longer; heads of equal importance go in their order. NaN for a head that is not
            there, which is in no order.
        at_least: so many heads of each layer, the most important ones, are never removed.

    Raises: AnalysisError if a layer has not so many heads.
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
    """How many heads are removed at each step: STEPS equal shares of all heads, rounded down, as far as that goes.

    Args:
        n_heads: of all layers, without those that are not there.
        n_removable: of these.
    """
    counts = n_heads * np.arange(STEPS + 1) // STEPS
    return np.unique(np.minimum(counts, n_removable))


def gatings(
    order: Int[np.ndarray, "removed 2"], counts: Int[np.ndarray, " step"], n_layers: int, n_heads: int
) -> Float[np.ndarray, "step layer head"]:
    """Gates after so many heads of an order are removed."""
    gates = np.ones((len(counts), n_layers, n_heads))
    for step, count in enumerate(counts):
        gates[step, order[:count, 0], order[:count, 1]] = 0
    return gates


def random_importance(n_layers: int, n_heads: int, draw: int) -> Float[np.ndarray, "layer head"]:
    """Numbers that order the heads at random, the same for the same draw."""
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


def relative(of_order: Curve) -> RelativeCurve:
    """A curve as a share of its score with no head removed; NaN where that score is not above 0.

    Source: Michel et al. 2019, figure 5.
    """
    full, drawn_full = float(of_order.score[0]), of_order.drawn_full[:, None]
    value = of_order.score / full if full > 0 else np.full(of_order.score.shape, np.nan)
    there = (drawn_full > 0) & ~np.isnan(value)
    shares = np.where(there, 1 + of_order.drawn / np.where(drawn_full > 0, drawn_full, 1), np.nan)
    low, high = interval(shares)
    return RelativeCurve(value=value, low=low, high=high)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of curves of one order, such as random ones, with its interval.

    Args:
        curves: one or more, over the same texts and steps.
    """
    score, delta, drawn, drawn_full = (
        np.mean([getattr(each, name) for each in curves], axis=0) for name in ("score", "delta", "drawn", "drawn_full")
    )
    low, high = interval(drawn)
    return replace(curves[0], draw=0, score=score, delta=delta, low=low, high=high, drawn=drawn, drawn_full=drawn_full)


def allowed_loss(score: Score, full: float, within: float) -> float:
    """How much worse a score may get, in its own units.

    Args:
        score: a loss may rise by a share of what it is with all heads; every other score may change by so much itself.
        full: with all heads.
        within: such as 0.01: one point of accuracy, 1% of a loss.
    """
    return within * abs(full) if score.name == "loss" else within


def removable(curves: Sequence[Curve], sign: int, tolerance: float) -> list[Removable]:
    """Heads that each order can remove so that the score, there and at all steps before, is worse by at most this.

    Args:
        curves: of which the random ones are averaged.
        sign: of `Score.sign`.
        tolerance: in units of the score.
    """
    found = []
    for name in dict.fromkeys(of_order.order for of_order in curves):
        same = [of_order for of_order in curves if of_order.order == name]
        counts = same[0].n_removed
        n_heads = _n_fine(counts, sign * np.mean([of_order.delta for of_order in same], axis=0)[None], tolerance)[0]
        drawn = sign * np.mean([of_order.drawn for of_order in same], axis=0)
        low = high = float("nan")
        if not np.isnan(drawn).any():
            low, high = np.quantile(_n_fine(counts, drawn, tolerance), [ALPHA / 2, 1 - ALPHA / 2], method="nearest")
        found.append(Removable(order=name, n=int(n_heads), low=float(low), high=float(high)))
    return found


def _n_fine(
    counts: Int[np.ndarray, " step"], damage: Float[np.ndarray, "corpus step"], tolerance: float
) -> Int[np.ndarray, " corpus"]:
    """Heads removed at the last step up to which the damage is nowhere above the tolerance."""
    return counts[np.cumprod(damage <= tolerance, axis=-1).sum(axis=-1) - 1]


def curves_table(curves: Sequence[Curve], n_heads: int) -> pd.DataFrame:
    """One row an order, draw and step, with COLUMNS.

    Args:
        curves: one or more.
        n_heads: that are there.
    """
    parts = [
        pd.DataFrame(
            {
                "order": each.order,
                "draw": each.draw,
                "removed": each.n_removed,
                "share": each.n_removed / n_heads,
                **{name: getattr(each, name) for name in COLUMNS[4:]},
            }
        )
        for each in curves
    ]
    return pd.concat(parts, ignore_index=True)
