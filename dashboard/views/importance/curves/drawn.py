"""Curves of the page: those that the store can give, and the rest computed one after the other."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from cache.serving.requests import Report, Status
from cache.store.recent import Recent
from core.attention.settings import Head
from core.errors import AnalysisError
from core.importance.cheap import ways_to_measures
from core.importance.curves import RANDOM_ORDERS, STEPS, Curve
from core.importance.measures import Measure, damage
from core.importance.pruning import (
    GREEDY,
    Pruning,
    Removed,
    full_outcomes,
    greedy_order,
    is_there,
    orders,
    pruning_curve,
    whole_orders,
)
from core.passes.question import Question
from core.texts.text import Text
from dashboard.views.asking import policy
from dashboard.views.importance.numbers import Importance, projections

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


@dataclass(eq=False, kw_only=True)
class Asker:
    """Answers questions from the store, and computes what is missing where it has somebody to report to."""

    importance: Importance
    report: Report | None = None
    total: int = 1
    """Forward passes of single texts in the whole work."""
    _done: float = 0
    _computed: float = 0
    """Of these, those that took time, and the time."""
    _seconds: float = 0
    _texts: list[Text] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the texts that were read."""
        self._texts = [self.importance.material.visit.texts[place] for place in self.importance.ablated.positions]

    def about_items(self, question: Question[Any, Any], items: Sequence[Any]) -> Sequence[Any] | None:
        """Answers about each item, which take a pass each."""
        return self._answers(question, items, 1, ())

    def about_places(
        self, question: Question[Text, Any], places: np.ndarray, off: tuple[Head, ...], n_passes: int
    ) -> Sequence[Any] | None:
        """Answers about texts with some more heads off, each of which takes so many passes."""
        return self._answers(question, [self._texts[place] for place in places.tolist()], n_passes, off)

    def _answers(
        self, question: Question[Any, Any], items: Sequence[Any], n_passes: int, off: tuple[Head, ...]
    ) -> Sequence[Any] | None:
        visit, cost = self.importance.material.visit, len(items) * n_passes
        settings = replace(visit.settings, off=tuple(sorted({*visit.settings.off, *off})))
        found = visit.inference.kept(visit.engine, question, items, settings, too_long=policy())
        if found is None and self.report is not None:
            begun = time.monotonic()

            def tell(status: Status) -> None:
                self._tell(cost * status.done / max(status.total, 1), time.monotonic() - begun, status.n_waiting_before)

            found = visit.inference.ask(visit.engine, question, items, settings, too_long=policy(), report=tell)
            self._computed += cost
            self._seconds += time.monotonic() - begun
        self._done += cost
        return None if found is None else found.results

    def _tell(self, n_passes: float, seconds: float, n_waiting_before: int) -> None:
        """Report how far the whole work is."""
        if self.report is None:
            return
        computed, done = self._computed + n_passes, self._done + n_passes
        left = (self._seconds + seconds) / computed * max(0.0, self.total - done) if computed else None
        status = Status(
            done=min(round(done), self.total),
            total=self.total,
            seconds_left=left,
            n_waiting_before=n_waiting_before,
        )
        self.report(status)


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
    greedy = STEPS * pruning.n_heads if wants_greedy else 0
    n_curves = 2 + N_MEASURES + RANDOM_ORDERS + wants_greedy
    return len(pruning.documents) * (5 + STEPS * n_curves + greedy)


def kept_curves(importance: Importance, pruning: Pruning, wants_greedy: bool) -> Drawn:
    """Curves that need no pass; computed once for a click after the other."""
    material = importance.material
    key = (material.key, importance.ablated.positions, pruning.at_least, wants_greedy)
    known = _curves.get(key)
    if known is None:
        known = collected(importance, pruning, wants_greedy, Asker(importance=importance), lambda _: None)
        if known.is_whole:
            _curves.put(key, known, sum(each.drawn.nbytes for each in known.curves))
    return known


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
    asker.total = n_passes(pruning, wants_greedy)
    measures, refused, is_whole = _measures(importance, asker)
    ablation, full = damage(importance.ablated.results, pruning.score), full_outcomes(importance.ablated.results)
    by_name = orders(pruning, ablation, measures)
    curves: list[Curve] = []
    for order, by_half in by_name.items():
        curve = pruning_curve(pruning, order, by_half, full, asker.about_places)
        is_whole &= curve is not None
        if curve is not None:
            curves.append(curve)
            show(curves)
    if wants_greedy and is_whole:
        curve = _greedy(pruning, full, asker)
        is_whole = curve is not None
        curves += [] if curve is None else [curve]
    whole = whole_orders(pruning, ablation, measures)
    return Drawn(curves=curves, whole=whole, refused=refused, is_whole=is_whole)


class _NotYet(Exception):
    """An answer that takes a pass, which nobody waits for."""


def _measures(importance: Importance, asker: Asker) -> tuple[list[Measure], list[str], bool]:
    """Measures that can be had now, why others never can, and whether none is left to compute."""
    material, places = importance.material, importance.ablated.positions

    def answered(question: Question[Any, Any], _: str, *, labelled: bool = False) -> Sequence[Any]:
        items = material.labelled if labelled else material.visit.texts
        answers = asker.about_items(question, [items[place] for place in places])
        if answers is None:
            raise _NotYet
        return answers

    measures: list[Measure] = []
    refused: list[str] = []
    is_whole = True
    for compute in ways_to_measures(answered, lambda: projections(importance), metric=material.metric).values():
        try:
            measures += compute()
        except AnalysisError as error:
            refused.append(str(error))
        except _NotYet:
            is_whole = False
    return measures, refused, is_whole


def _greedy(pruning: Pruning, full: Float[np.ndarray, "text part"], asker: Asker) -> Curve | None:
    by_half = greedy_order(pruning, asker.about_places)
    return None if by_half is None else pruning_curve(pruning, (GREEDY, 0), by_half, full, asker.about_places)
