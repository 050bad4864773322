"""Curves of the page: those whose answers are kept, and the runs of this program that compute the others."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import streamlit as st

from attention_sieve.core.answering import Question
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import KINDS, cheap_measures
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.finding import CheapMeasures
from attention_sieve.core.importance.pruning.curves import RANDOM_ORDERS, STEPS, Curve, curve
from attention_sieve.core.importance.pruning.orders import (
    GREEDY,
    Pruning,
    Removed,
    curve_trials,
    full_outcomes,
    greedy_trial,
    is_there,
    pruning_curve,
    pruning_outcomes,
    whole_greedy_order,
    whole_orders,
)
from attention_sieve.core.running import Journal, Progress
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import runs
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.material import Importance

AnyCurve = TypeVar("AnyCurve")


class NotYet(AnalysisError):
    """An answer is not kept, and nobody computes it; left out like a measure that a checkpoint does not allow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Asker:
    """Asks a checkpoint about the texts that were read; its methods raise NotYet for an answer that is not kept while
    there is no journal of a run that computes it."""

    importance: Importance
    too_long: TooLong
    journal: Journal | None = None

    def about_texts(
        self, question: Question[Any, Any], items: Sequence[Any], doing: str = "", off: tuple[Head, ...] = ()
    ) -> tuple[Any, ...]:
        """Answers about texts that were read, with additional heads off; `doing` is reported meanwhile.

        Raises: Stopped.
        """
        visit, journal = self.importance.material.visit, self.journal
        settings = replace(visit.settings, off=tuple(sorted({*visit.settings.off, *off})))
        request = (visit.engine, question, items, settings)
        answers = visit.inference.kept(*request, too_long=self.too_long)
        if answers is None and journal is not None:
            answers = visit.inference.ask(
                *request,
                too_long=self.too_long,
                report=lambda status: journal.part(doing, status.done, status.total),
            )
        if answers is None:
            raise NotYet("It has not been computed yet. Draw the curves.")
        return answers.results

    def about_some_texts(
        self, question: Question[Text, Any], indices: np.ndarray, off: tuple[Head, ...]
    ) -> tuple[Any, ...]:
        """The same about the texts at these indices."""
        read = self.importance.read
        return self.about_texts(question, [read[index].text for index in indices.tolist()], wording.PASSES, off)

    def cheap_measures(self) -> CheapMeasures:
        """All measures except ablation whose answers there are; the others are left out."""
        return cheap_measures(self.about_texts, self.importance.read, self.importance.material.metric.metric)


@dataclass(frozen=True, eq=False, kw_only=True)
class Collected(Generic[AnyCurve]):
    """The curves whose answers are kept."""

    curves: list[AnyCurve]
    whole: dict[str, Removed] = field(default_factory=dict)
    """Orders of removal found on all texts, by name."""
    left_out: list[str]
    """Why the run left measures, or steps, out, one message each."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """The run of this program that computes the answers of curves, as it was before these were collected: curves that
    it has finished since are drawn by the next look at it."""

    folder: Path
    progress: Progress | None
    """None before it began."""
    checkpoint: str

    @property
    def left_out(self) -> dict[str, str]:
        """Why it left out measures, or steps, by their name."""
        return {} if self.progress is None else {failed.piece: failed.why for failed in self.progress.failed}

    def begin_or_watch(self, work: Callable[[Journal], object], waiting: str, *, has_curves: bool) -> None:
        """The panel of the run while it is on; else the button that begins it or goes on with it.

        Args:
            waiting: said beside the button.
            has_curves: whether some of its curves are drawn.
        """
        key, state = self.folder.name.rpartition("-")[0], None if self.progress is None else self.progress.state
        if state == "running":
            runs.panel(self.folder, key, wording.running)
            return
        if self.progress is not None and state == "failed":
            show_error(AnalysisError(self.progress.message))
        with st.container(horizontal=True, vertical_alignment="center"):
            label = shared_wording.GO_ON if has_curves or state is not None else wording.BEGIN
            runs.begin_button(self.folder, f"begin {key}", label, work, self.checkpoint)
            is_stopped = state in ("stopped", "left")
            st.markdown(f"{wording.STOPPED} {waiting}" if is_stopped else waiting, width="stretch")


def drawing_in(kind: str, checkpoint: str, *depends_on: object) -> Drawing:
    """The run of a kind about a checkpoint that depends on all this, and on what happens to long texts."""
    folder = runs.folder_of(kind, *depends_on, policy())
    return Drawing(folder=folder, progress=runs.look(folder), checkpoint=checkpoint)


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


def kept_curves(
    importance: Importance, pruning: Pruning, wants_greedy: bool, left_out: Mapping[str, str]
) -> Collected[Curve]:
    """Curves that need no pass; `left_out` are the measures that the run has left out."""
    return kept_if_whole(
        "curves",
        (importance.material.key, importance.found.positions, pruning.at_least, wants_greedy),
        lambda: _collected(importance, pruning, wants_greedy, left_out),
    )


def _collected(
    importance: Importance, pruning: Pruning, wants_greedy: bool, left_out: Mapping[str, str]
) -> Collected[Curve]:
    asker, ablation = Asker(importance=importance, too_long=policy()), importance.ablation
    ask, cheap, full = asker.about_some_texts, asker.cheap_measures(), full_outcomes(ablation.answers)
    trials = curve_trials(pruning, ablation.measure, cheap.measures, full)
    whole, curves = whole_orders(pruning, ablation.measure, cheap.measures), list[Curve]()
    for trial in trials:
        with suppress(NotYet):
            curves.append(pruning_curve(pruning, trial, ask))
    is_whole = len(curves) == len(trials) and left_out.keys() >= dict(cheap.left_out).keys()
    if is_whole and wants_greedy:
        try:
            curves.append(pruning_curve(pruning, greedy_trial(pruning, full, ask), ask))
            whole[GREEDY] = whole_greedy_order(pruning, ask)
        except NotYet:
            is_whole = False
    return Collected(curves=curves, whole=whole, left_out=list(left_out.values()), is_whole=is_whole)


def drawn(
    importance: Importance, pruning: Pruning, wants_greedy: bool, kept: Sequence[Curve]
) -> Callable[[Journal], None]:
    """The work of the run that computes the answers of all curves but those that are kept."""
    too_long, orders = policy(), {(curve.order, curve.draw) for curve in kept}

    def work(journal: Journal) -> None:
        asker = Asker(importance=importance, too_long=too_long, journal=journal)
        cheap, full = asker.cheap_measures(), full_outcomes(importance.ablation.answers)
        for name, reason in cheap.left_out:
            journal.failed(name, reason)
        trials = curve_trials(pruning, importance.ablation.measure, cheap.measures, full)
        greedy_size = (1 + 2 * pruning.n_heads) * wants_greedy  # of curves: on both halves, and on all texts
        journal.plan(len(trials) + wants_greedy, len(trials) + greedy_size)
        for trial in trials:
            journal.check()
            journal.piece(trial.name)
            pruning_outcomes(pruning, trial, asker.about_some_texts)
            journal.done(was_kept=trial.order in orders)
        if wants_greedy:
            journal.piece(GREEDY)
            pruning_outcomes(pruning, greedy_trial(pruning, full, asker.about_some_texts), asker.about_some_texts)
            whole_greedy_order(pruning, asker.about_some_texts)
            journal.done(greedy_size)

    return work


def kept_curves_of(importance: Importance, positions: tuple[int, ...]) -> list[Curve]:
    """Curves that need no pass, each scored on some of the texts only; orders are found on halves of all texts.

    Args:
        positions: of the texts to score, among those of the page; all of them were read.
    """
    key = (importance.material.key, importance.found.positions, positions)
    return kept_if_whole("curves of some texts", key, lambda: _collected_of(importance, positions)).curves


def _collected_of(importance: Importance, positions: tuple[int, ...]) -> Collected[Curve]:
    pruning, asker = pruning_of(importance, 0), Asker(importance=importance, too_long=policy())
    rows, scored = np.isin(importance.found.positions, positions), importance.material.at(positions)
    score, documents = importance.material.metric.score_of(scored), [item.text.document for item in scored]
    cheap, draws, curves = asker.cheap_measures(), Draws(documents), list[Curve]()
    full = full_outcomes(importance.ablation.answers)
    trials = curve_trials(pruning, importance.ablation.measure, cheap.measures, full)
    for trial in trials:
        with suppress(NotYet):
            outcomes = pruning_outcomes(pruning, trial, asker.about_some_texts)[rows]
            curves.append(curve(trial.order, pruning.counts(trial.by_half[0]), outcomes, score, documents, draws))
    return Collected(curves=curves, left_out=[], is_whole=len(curves) == len(trials) and not cheap.left_out)
