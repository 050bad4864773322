"""Curves of the page: cached ones, and the rest computed one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.pruning.curves import RANDOM_ORDERS, STEPS, Curve, curve
from attention_sieve.core.importance.pruning.orders import (
    GREEDY,
    Pruning,
    Removed,
    full_outcomes,
    greedy_order,
    is_there,
    orders,
    pruning_curve,
    pruning_outcomes,
    whole_greedy_order,
    whole_orders,
)
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.views.importance.curves.asker import Asker, NotYet, Work
from attention_sieve.dashboard.views.importance.numbers import Importance

N_MEASURES: Final = 9
"""Maximum number of cheap measures; those that a checkpoint does not allow are found out while computing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PruningCurves:
    """The curves computed so far."""

    curves: list[Curve]
    whole: dict[str, Removed]
    """Orders of removal found on all texts, by name."""
    refused: list[str]
    """Why measures are left out, one message each."""
    is_whole: bool
    """Whether nothing is missing."""


def pruning_of(importance: Importance, at_least: int) -> Pruning:
    """The heads that can be removed, and how the result is scored."""
    visit = importance.material.visit
    ablation = importance.ablation
    shape = ablation.damage.shape
    gone = (*visit.engine.files.removed_of(visit.settings.kind), *visit.settings.off)
    return Pruning(
        metric=importance.material.metric.metric,
        score=ablation.score,
        documents=ablation.documents,
        is_there=is_there((shape[0], shape[1]), gone),
        at_least=at_least,
    )


def n_passes(pruning: Pruning, wants_greedy: bool) -> int:
    """Approximate number of forward passes of single texts for all curves."""
    greedy = 2 * STEPS * pruning.n_heads if wants_greedy else 0  # by halves, and on all texts
    n_curves = 2 + N_MEASURES + RANDOM_ORDERS + wants_greedy
    return len(pruning.documents) * (5 + STEPS * n_curves + greedy)


def kept_curves(importance: Importance, pruning: Pruning, wants_greedy: bool) -> PruningCurves:
    """Curves that need no pass, cached between clicks."""
    material = importance.material
    key = (material.key, importance.found.positions, pruning.at_least, wants_greedy)
    cached: PruningCurves | None = memory().get("curves", key)
    if cached is None:
        cached = collected(importance, pruning, wants_greedy, Asker(importance=importance, work=Work()), lambda _: None)
        if cached.is_whole:
            return memory().put("curves", key, cached)
    return cached


def kept_curves_of(importance: Importance, positions: tuple[int, ...]) -> list[Curve]:
    """Curves that need no pass, each scored on some of the texts only; orders are found on halves of all texts.

    Args:
        positions: of the texts to score, among those of the page; all of them were read.
    """
    material, read_positions = importance.material, importance.found.positions
    key = (material.key, read_positions, positions)
    cached: list[Curve] | None = memory().get("curves of some texts", key)
    if cached is not None:
        return cached
    pruning, asker = pruning_of(importance, 0), Asker(importance=importance, work=Work())
    rows, scored = np.isin(read_positions, positions), material.at(positions)
    score, documents = material.metric.score_of(scored), [item.text.document for item in scored]
    draws = Draws(documents)
    measures, _, is_whole = _measures(asker)
    full = full_outcomes(importance.ablation.answers)
    curves: list[Curve] = []
    for order, by_half in orders(pruning, importance.ablation.measure, measures).items():
        outcomes = pruning_outcomes(pruning, by_half, full, asker.about_some_texts)
        is_whole &= outcomes is not None
        if outcomes is not None:
            curves.append(curve(order, pruning.counts(by_half[0]), outcomes[rows], score, documents, draws))
    if is_whole:
        return memory().put("curves of some texts", key, curves)
    return curves


def collected(
    importance: Importance,
    pruning: Pruning,
    wants_greedy: bool,
    asker: Asker,
    show: Callable[[list[Curve]], None],
) -> PruningCurves:
    """Compute the curves one after the other, as far as their answers are available.

    Args:
        wants_greedy: whether the greedy order is one of them.
        show: called with the curves so far whenever there is one more.
    """
    asker.work.total = n_passes(pruning, wants_greedy)
    measures, refused, is_whole = _measures(asker)
    ablation, full = importance.ablation.measure, full_outcomes(importance.ablation.answers)
    by_name = orders(pruning, ablation, measures)
    curves: list[Curve] = []
    for order, by_half in by_name.items():
        one_curve = pruning_curve(pruning, order, by_half, full, asker.about_some_texts)
        is_whole &= one_curve is not None
        if one_curve is not None:
            curves.append(one_curve)
            show(curves)
    orders_on_all = whole_orders(pruning, ablation, measures)
    if wants_greedy and is_whole:
        greedy = _greedy(pruning, full, asker)
        greedy_on_all = None if greedy is None else whole_greedy_order(pruning, asker.about_some_texts)
        is_whole = greedy_on_all is not None
        curves += [] if greedy is None else [greedy]
        orders_on_all |= {} if greedy_on_all is None else {GREEDY: greedy_on_all}
    return PruningCurves(curves=curves, whole=orders_on_all, refused=refused, is_whole=is_whole)


def _measures(asker: Asker) -> tuple[list[Measure], list[str], bool]:
    """Measures available now, why others never will be, and whether all are computed."""
    measures: list[Measure] = []
    refused: list[str] = []
    is_whole = True
    for compute in asker.ways_to_measures().values():
        try:
            measures += compute()
        except AnalysisError as error:
            refused.append(str(error))
        except NotYet:
            is_whole = False
    return measures, refused, is_whole


def _greedy(pruning: Pruning, full: Float[np.ndarray, "text part"], asker: Asker) -> Curve | None:
    by_half = greedy_order(pruning, asker.about_some_texts)
    return None if by_half is None else pruning_curve(pruning, (GREEDY, 0), by_half, full, asker.about_some_texts)
