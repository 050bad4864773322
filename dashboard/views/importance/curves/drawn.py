"""Curves of the page: cached ones, and the rest computed one after the other under one progress bar."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import streamlit as st

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.answering import Question
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import KINDS, ways_to_measures
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
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.progress import with_progress
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.material import Importance

AnyCurve = TypeVar("AnyCurve")


class NotYet(Exception):
    """An answer is not cached, and nobody is waiting for it to be computed."""


@dataclass(eq=False, kw_only=True)
class Work:
    """Long work of many questions; missing answers are computed only if there is a progress report."""

    report: Report | None = None
    total: int = 1
    """Forward passes of single texts in the whole of the work."""
    _done: float = 0
    """Passes whose answers are there, cached or computed."""
    _computed: float = 0
    """Passes that were computed rather than read from the cache."""
    _seconds: float = 0
    """Time that the computed passes took."""

    def answers(
        self, visit: Visit, question: Question[Any, Any], items: Sequence[Any], off: tuple[Head, ...], n_passes: int
    ) -> tuple[Any, ...]:
        """Answers about each item with additional heads off; each takes `n_passes` forward passes.

        Raises: NotYet for an answer that is not cached while nobody waits for it.
        """
        cost, report = len(items) * n_passes, self.report
        settings = replace(visit.settings, off=tuple(sorted({*visit.settings.off, *off})))
        answers = visit.inference.kept(visit.engine, question, items, settings, too_long=policy())
        if answers is None:
            if report is None:
                raise NotYet
            started = time.monotonic()

            def report_whole(status: Status) -> None:
                report(self._of_whole(status, cost, time.monotonic() - started))

            answers = visit.inference.ask(
                visit.engine, question, items, settings, too_long=policy(), report=report_whole
            )
            self._computed += cost
            self._seconds += time.monotonic() - started
        self._done += cost
        return answers.results

    def _of_whole(self, status: Status, cost: int, seconds: float) -> Status:
        """Progress of the whole work, from that of a question that takes `cost` passes."""
        n_passes = cost * status.done / max(status.total, 1)
        computed, done = self._computed + n_passes, self._done + n_passes
        seconds_left = (self._seconds + seconds) / computed * max(0.0, self.total - done) if computed else None
        return Status(
            done=min(round(done), self.total),
            total=self.total,
            seconds_left=seconds_left,
            n_waiting_before=status.n_waiting_before,
        )


@dataclass(eq=False, kw_only=True)
class Asker:
    """Asks a checkpoint about the texts that were read, as part of `work`; its methods raise as `Work.answers`."""

    importance: Importance
    work: Work

    def about_texts(self, question: Question[Any, Any], items: Sequence[Any], _: str = "") -> tuple[Any, ...]:
        """Answers about texts that were read; each takes one pass."""
        return self.work.answers(self.importance.material.visit, question, items, (), 1)

    def ways_to_measures(self) -> Mapping[str, Callable[[], list[Measure]]]:
        """Functions that compute each kind of cheap measure."""
        return ways_to_measures(self.about_texts, self.importance.read, self.importance.material.metric.metric)

    def about_some_texts(
        self, question: Question[Text, Any], indices: np.ndarray, off: tuple[Head, ...], n_passes: int
    ) -> tuple[Any, ...]:
        """Answers about the texts at these indices with additional heads off; each takes `n_passes`."""
        read = self.importance.read
        texts = [read[index].text for index in indices.tolist()]
        return self.work.answers(self.importance.material.visit, question, texts, off, n_passes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Collected(Generic[AnyCurve]):
    """The curves computed so far."""

    curves: list[AnyCurve]
    whole: dict[str, Removed] = field(default_factory=dict)
    """Orders of removal found on all texts, by name."""
    left_out: list[str]
    """Why measures, or steps, are left out, one message each."""
    is_whole: bool
    """Whether nothing is missing."""


def kept_if_whole(kind: str, key: Hashable, collect: Callable[[], Collected[AnyCurve]]) -> Collected[AnyCurve]:
    """Curves that need no pass, cached between clicks once nothing is missing."""
    cached: Collected[AnyCurve] | None = memory().get(kind, key)
    if cached is None:
        cached = collect()
        if cached.is_whole:
            return memory().put(kind, key, cached)
    return cached


def computed(
    kind: str, key: Hashable, kept: Collected[AnyCurve], waiting: str, work: Callable[[Report], Collected[AnyCurve]]
) -> Collected[AnyCurve]:
    """All curves once the reader has started the work; the cached ones before that, and after a stop.

    A reload of the page ends the work with its session: that it had begun is remembered outside of it.

    Args:
        waiting: said beside the button that starts it.
    """
    begun = f"{kind} begun"
    if st.session_state.get(begun) == hash(key):
        memory().put(begun, key, True)
        return with_progress((kind, key), work, wording.DOING) or kept
    goes_on = bool(kept.curves) or memory().get(begun, key) is not None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            shared_wording.GO_ON if goes_on else wording.BEGIN,
            key=f"begin {kind}",
            icon=":material/play_circle:",
            on_click=lambda: st.session_state.update({begun: hash(key)}),
        )
        st.markdown(f"{wording.STOPPED} {waiting}" if goes_on else waiting, width="stretch")
    return kept


def pruning_of(importance: Importance, at_least: int) -> Pruning:
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
    n_curves = 2 + len(KINDS) + RANDOM_ORDERS + wants_greedy  # what a checkpoint does not allow is found out later
    return len(pruning.documents) * (5 + STEPS * n_curves + greedy)


def kept_curves(importance: Importance, pruning: Pruning, wants_greedy: bool) -> Collected[Curve]:
    """Curves that need no pass."""
    asker = Asker(importance=importance, work=Work())
    return kept_if_whole(
        "curves",
        (importance.material.key, importance.found.positions, pruning.at_least, wants_greedy),
        lambda: collected(importance, pruning, wants_greedy, asker, lambda _: None),
    )


def kept_curves_of(importance: Importance, positions: tuple[int, ...]) -> list[Curve]:
    """Curves that need no pass, each scored on some of the texts only; orders are found on halves of all texts.

    Args:
        positions: of the texts to score, among those of the page; all of them were read.
    """
    key = (importance.material.key, importance.found.positions, positions)
    return kept_if_whole("curves of some texts", key, lambda: _collected_of(importance, positions)).curves


def _collected_of(importance: Importance, positions: tuple[int, ...]) -> Collected[Curve]:
    pruning, asker = pruning_of(importance, 0), Asker(importance=importance, work=Work())
    rows, scored = np.isin(importance.found.positions, positions), importance.material.at(positions)
    score = importance.material.metric.score_of(scored)
    documents = [item.text.document for item in scored]
    draws = Draws(documents)
    measures, left_out, is_whole = _measures(asker)
    full = full_outcomes(importance.ablation.answers)
    curves: list[Curve] = []
    for order, by_half in orders(pruning, importance.ablation.measure, measures).items():
        try:
            outcomes = pruning_outcomes(pruning, by_half, full, asker.about_some_texts)
        except NotYet:
            is_whole = False
        else:
            curves.append(curve(order, pruning.counts(by_half[0]), outcomes[rows], score, documents, draws))
    return Collected(curves=curves, left_out=left_out, is_whole=is_whole)


def collected(
    importance: Importance,
    pruning: Pruning,
    wants_greedy: bool,
    asker: Asker,
    show: Callable[[list[Curve]], None],
) -> Collected[Curve]:
    """Compute the curves one after the other, as far as their answers are available.

    Args:
        show: called with the curves so far whenever there is one more.
    """
    asker.work.total = n_passes(pruning, wants_greedy)
    measures, left_out, is_whole = _measures(asker)
    ablation, full = importance.ablation.measure, full_outcomes(importance.ablation.answers)
    by_name = orders(pruning, ablation, measures)
    curves: list[Curve] = []
    for order, by_half in by_name.items():
        try:
            curves.append(pruning_curve(pruning, order, by_half, full, asker.about_some_texts))
        except NotYet:
            is_whole = False
        else:
            show(curves)
    whole = whole_orders(pruning, ablation, measures)
    if wants_greedy and is_whole:
        try:
            by_half = greedy_order(pruning, asker.about_some_texts)
            curves.append(pruning_curve(pruning, (GREEDY, 0), by_half, full, asker.about_some_texts))
            whole[GREEDY] = whole_greedy_order(pruning, asker.about_some_texts)
        except NotYet:
            is_whole = False
    return Collected(curves=curves, whole=whole, left_out=left_out, is_whole=is_whole)


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
