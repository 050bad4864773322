"""Curves of the saved steps of a run: cached ones, and the rest computed one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.cheap import KINDS
from attention_sieve.core.importance.measures import ABLATION, Measure, damage
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.pruning.curves import RANDOM_ORDERS, STEPS, Curve, mean_curve
from attention_sieve.core.importance.pruning.orders import (
    RANDOM,
    REVERSE,
    ByHalf,
    Order,
    Pruning,
    full_outcomes,
    order_by,
    pruning_curve,
    random_orders,
)
from attention_sieve.core.importance.pruning.over_steps import (
    SavedStep,
    StepCurve,
    beginning,
    check_alike,
    check_beginning,
    saved_steps,
)
from attention_sieve.core.importance.question import HEAD_OUTPUTS, ablation_question, gated_question, mean_outputs
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.views.importance.curves.asker import Asker, NotYet, Work
from attention_sieve.dashboard.views.importance.curves.drawn import pruning_of
from attention_sieve.dashboard.views.importance.numbers import Importance

BY_ABLATION: Final = {ABLATION: 1, REVERSE: -1}
"""Orders that need the ablations of each step, and the sign that they are multiplied by."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveStep:
    """A saved step, with the inputs of the page for it."""

    step: int
    importance: Importance
    """That of the page, but with the checkpoint of this step."""
    pruning: Pruning

    @property
    def engine(self) -> Engine:
        """The checkpoint of this step."""
        return self.importance.material.visit.engine


@dataclass(frozen=True, eq=False, kw_only=True)
class StepCurves:
    """The curves computed so far."""

    curves: list[StepCurve]
    left_out: str
    """Why there is no step 0; empty where there is one."""
    is_whole: bool
    """Whether nothing is missing."""


def stages_of(importance: Importance, run: SavedRun, at_least: int) -> tuple[list[CurveStep], str]:
    """The saved steps of a run in order, and why step 0 is left out (empty if it is not).

    Raises: AnalysisError for a run without saved steps or in progress, and for steps with other heads or classes than
        the checkpoint of the page.
    """
    stages = [_stage(importance, step, at_least) for step in saved_steps(run)]
    try:
        initial = _stage(importance, beginning(run), at_least)
        check_beginning(run, initial.engine.files)
    except AnalysisError as error:
        return stages, str(error)
    return [initial, *stages], ""


def _stage(importance: Importance, step: SavedStep, at_least: int) -> CurveStep:
    material = importance.material
    engine = controls.other_engine(material.visit.choice, step.checkpoint)
    check_alike(engine.files, material.visit.engine.files, material.metric.metric)
    at_step = replace(importance, material=replace(material, visit=replace(material.visit, engine=engine)))
    return CurveStep(step=step.step, importance=at_step, pruning=pruning_of(at_step, at_least))


def n_passes(stages: Sequence[CurveStep], order: str) -> int:
    """Approximate number of forward passes of single texts for the curves."""
    pruning = stages[0].pruning
    to_order = pruning.n_heads if order in BY_ABLATION else 3
    of_text = STEPS * RANDOM_ORDERS if order == RANDOM else STEPS + to_order
    return len(stages) * len(pruning.documents) * of_text


def kept_curves(stages: Sequence[CurveStep], order: str) -> StepCurves:
    """Curves that need no pass, cached between clicks."""
    first_stage = stages[0]
    material, positions = first_stage.importance.material, first_stage.importance.found.positions
    key = (material.key, positions, tuple(stage.engine for stage in stages), first_stage.pruning.at_least, order)
    cached: StepCurves | None = controls.memory().get("step curves", key)
    if cached is None:
        cached = collected(stages, order, Work(), lambda _: None)
        if cached.is_whole:
            return controls.memory().put("step curves", key, cached)
    return cached


def collected(
    stages: Sequence[CurveStep], order: str, work: Work, show: Callable[[list[StepCurve]], None]
) -> StepCurves:
    """Compute the curves one step after the other, as far as their answers are available.

    Args:
        stages: one or more, of one run.
        order: in which heads are removed.
        show: called with the curves so far whenever there is one more.

    Raises: AnalysisError for what a saved step does not allow; step 0, which may lack a classifier, is left out.
    """
    work.total = n_passes(stages, order)
    curves: list[StepCurve] = []
    left_out, is_whole = "", True
    for stage in stages:
        try:
            curve = _curve(stage, order, Asker(importance=stage.importance, work=work))
        except NotYet:
            is_whole = False
            continue
        except AnalysisError as error:
            if stage.step:
                raise
            left_out = str(error)
            continue
        curves.append(StepCurve(step=stage.step, curve=curve))
        show(curves)
    return StepCurves(curves=curves, left_out=left_out, is_whole=is_whole)


def _curve(stage: CurveStep, order: str, asker: Asker) -> Curve:
    """The curve of a step; for random orders their mean curve.

    Raises: NotYet for an answer that is not available now.
    """
    full, by_name = _order(stage, order, asker)
    computed = [
        pruning_curve(stage.pruning, name, order_of_half, full, asker.about_some_texts)
        for name, order_of_half in by_name.items()
    ]
    curves = [curve for curve in computed if curve is not None]
    if len(curves) < len(computed):
        raise NotYet
    return mean_curve(curves)


def _order(stage: CurveStep, order: str, asker: Asker) -> tuple[Float[np.ndarray, "text part"], dict[Order, ByHalf]]:
    """Outcomes of each text with all heads on, and the order of removal."""
    pruning = stage.pruning
    if order in BY_ABLATION:
        outcomes = _ablated(stage, asker)
        ablation = damage(outcomes, pruning.score)
        return full_outcomes(outcomes), {(order, 0): order_by(pruning, ablation, BY_ABLATION[order])}
    full = _with_all_heads(stage, asker)
    if order == RANDOM:
        return full, random_orders(pruning)
    return full, {(order, 0): order_by(pruning, _measure(order, asker))}


def _measure(name: str, asker: Asker) -> Measure:
    """A cheap measure.

    Raises: AnalysisError where the checkpoint does not allow it.
    """
    return next(measure for measure in asker.ways_to_measures()[KINDS[name]]() if measure.name == name)


def _ablated(stage: CurveStep, asker: Asker) -> Sequence[TextOutcomes]:
    material = stage.importance.material
    texts = [item.text for item in stage.importance.read]
    means = mean_outputs(asker.about_texts(HEAD_OUTPUTS, texts)) if material.settings.replace == "mean" else None
    question = ablation_question(material.metric.metric, means=means)
    outcomes = asker.about_some_texts(question, _all_texts(stage), (), stage.pruning.n_heads)
    if outcomes is None:
        raise NotYet
    return outcomes


def _with_all_heads(stage: CurveStep, asker: Asker) -> Float[np.ndarray, "text part"]:
    """Outcomes of each text with all heads on, without a sweep of ablations; a change of the output is 0."""
    if stage.pruning.metric == "output":
        return np.zeros((len(stage.pruning.documents), 1))
    gates = np.ones((1, *stage.pruning.is_there.shape))
    outcomes = asker.about_some_texts(gated_question(stage.pruning.metric, gates), _all_texts(stage), (), 1)
    if outcomes is None:
        raise NotYet
    return np.stack([of_text[0] for of_text in outcomes])


def _all_texts(stage: CurveStep) -> np.ndarray:
    return np.arange(len(stage.pruning.documents))
