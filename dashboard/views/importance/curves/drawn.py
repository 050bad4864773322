"""Curves of the page: those that the store can give, and the rest computed one after the other."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from cache.store.recent import Recent
from core.errors import AnalysisError
from core.importance.effects import Draws
from core.importance.measures import Measure, damage
from core.importance.pruning.curves import RANDOM_ORDERS, STEPS, Curve, curve
from core.importance.pruning.orders import (
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
from dashboard.views.importance.curves.asker import Asker, NotYet, Work
from dashboard.views.importance.numbers import Importance

CURVES_BYTES: Final = 32 * 2**20
"""Of the latest curves in memory, for all readers: a click asks for the same ones again."""
N_MEASURES: Final = 9
"""Cheap measures at most; what a checkpoint does not allow is found out on the way."""
_curves: Final[Recent[Hashable, "Drawn"]] = Recent(CURVES_BYTES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """What is known of the curves."""

    curves: list[Curve]
    whole: dict[str, Removed]
    """Orders as found on all texts."""
    refused: list[str]
    """Why measures are left out."""
    is_whole: bool
    """Whether nothing is missing."""


def pruning_of(importance: Importance, at_least: int) -> Pruning:
    """What heads are removed from, and what that is judged by."""
    visit = importance.material.visit
    shape = importance.effects.delta.shape
    gone = (*visit.engine.files.removed_of(visit.settings.kind), *visit.settings.off)
    return Pruning(
        metric=importance.material.metric,
        score=importance.score,
        documents=importance.documents,
        is_there=is_there((shape[0], shape[1]), gone),
        at_least=at_least,
    )


def n_passes(pruning: Pruning, wants_greedy: bool) -> int:
    """Forward passes of single texts that all curves take, about."""
    greedy = 2 * STEPS * pruning.n_heads if wants_greedy else 0  # by halves, and on all texts
    n_curves = 2 + N_MEASURES + RANDOM_ORDERS + wants_greedy
    return len(pruning.documents) * (5 + STEPS * n_curves + greedy)


def kept_curves(importance: Importance, pruning: Pruning, wants_greedy: bool) -> Drawn:
    """Curves that need no pass; computed once for a click after the other."""
    material = importance.material
    key = (material.key, importance.ablated.positions, pruning.at_least, wants_greedy)
    known = _curves.get(key)
    if known is None:
        known = collected(importance, pruning, wants_greedy, Asker(importance=importance, work=Work()), lambda _: None)
        if known.is_whole:
            _curves.put(key, known, sum(each.drawn.nbytes for each in known.curves))
    return known


def kept_curves_of(importance: Importance, places: tuple[int, ...]) -> list[Curve]:
    """Curves that need no pass, each judged on some of the texts only; orders are found on halves of all texts.

    Args:
        importance: of the page.
        places: of the texts that are judged; all of them were read.
    """
    material, positions = importance.material, importance.ablated.positions
    key = (material.key, positions, places)
    known = _curves.get(key)
    if known is not None:
        return known.curves
    pruning, asker = pruning_of(importance, 0), Asker(importance=importance, work=Work())
    rows, score, draws = np.isin(positions, places), material.score(places), Draws(material.documents(places))
    measures, refused, is_whole = _measures(asker)
    full = full_outcomes(importance.ablated.results)
    curves: list[Curve] = []
    for order, by_half in orders(pruning, damage(importance.ablated.results, pruning.score), measures).items():
        outcomes = pruning_outcomes(pruning, by_half, full, asker.about_places)
        is_whole &= outcomes is not None
        if outcomes is not None:
            curves.append(curve(*order, pruning.counts(by_half[0]), outcomes[rows], score, draws))
    if is_whole:
        drawn = Drawn(curves=curves, whole={}, refused=refused, is_whole=True)
        _curves.put(key, drawn, sum(each.drawn.nbytes for each in curves))
    return curves


def collected(
    importance: Importance,
    pruning: Pruning,
    wants_greedy: bool,
    asker: Asker,
    show: Callable[[list[Curve]], None],
) -> Drawn:
    """Curves one after the other, as far as their answers can be had.

    Args:
        importance: of the page.
        pruning: over the same texts.
        wants_greedy: whether the greedy order is one of them.
        asker: answers questions.
        show: is given the curves so far whenever there is one more.
    """
    asker.work.total = n_passes(pruning, wants_greedy)
    measures, refused, is_whole = _measures(asker)
    ablation, full = damage(importance.ablated.results, pruning.score), full_outcomes(importance.ablated.results)
    by_name = orders(pruning, ablation, measures)
    curves: list[Curve] = []
    for order, by_half in by_name.items():
        drawn = pruning_curve(pruning, order, by_half, full, asker.about_places)
        is_whole &= drawn is not None
        if drawn is not None:
            curves.append(drawn)
            show(curves)
    whole = whole_orders(pruning, ablation, measures)
    if wants_greedy and is_whole:
        greedy = _greedy(pruning, full, asker)
        on_all = None if greedy is None else whole_greedy_order(pruning, asker.about_places)
        is_whole = on_all is not None
        curves += [] if greedy is None else [greedy]
        whole |= {} if on_all is None else {GREEDY: on_all}
    return Drawn(curves=curves, whole=whole, refused=refused, is_whole=is_whole)


def _measures(asker: Asker) -> tuple[list[Measure], list[str], bool]:
    """Measures that can be had now, why others never can, and whether none is left to compute."""
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
    by_half = greedy_order(pruning, asker.about_places)
    return None if by_half is None else pruning_curve(pruning, (GREEDY, 0), by_half, full, asker.about_places)
