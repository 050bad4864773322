"""How many heads can go over training: curves of each saved step of a fine-tuning run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import KINDS, ways_to_measures
from attention_sieve.core.importance.measures import ABLATION, damage
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.pruning.curves import (
    RANDOM_ORDERS,
    STEPS,
    Curve,
    mean_curve,
    relative,
    removable,
)
from attention_sieve.core.importance.pruning.orders import (
    RANDOM,
    REVERSE,
    CurveTrial,
    Pruning,
    full_outcomes,
    order_by,
    pruning_curve,
    random_trials,
)
from attention_sieve.core.importance.pruning.over_steps import (
    SavedStep,
    StepCurve,
    check_alike,
    check_beginning,
    saved_steps,
    step_curves_table,
)
from attention_sieve.core.importance.question import HEAD_OUTPUTS, ablation_question, gated_question, mean_outputs
from attention_sieve.core.running import Journal
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.importance.over_steps import relative_score, score_over_steps
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.offers import runs_here
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.curves.drawn import (
    Asker,
    Collected,
    NotYet,
    drawing_in,
    kept_if_whole,
    pruning_of,
)
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import from_list, halves, toggle

START: Final = "gradient per token"
"""The default order, which is that of the paper; it needs no ablations."""
ORDER_WIDTH: Final = 240
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
        return self.importance.material.visit.engine

    @property
    def name(self) -> str:
        """Its name in reports of a run."""
        return f"step {self.step:,}"


def over_training(importance: Importance, at_least: int, within: float) -> None:
    """Draw curves over the saved steps of a run that the checkpoint belongs to, if the reader turns this on."""
    runs = runs_here()
    name = importance.material.visit.engine.files.name
    # First the runs that saved the checkpoint as a step, then those that started from it.
    steps = [run for run in runs if name in (run.name, *run.checkpoints)]
    started = [run for run in runs if run.progress.checkpoint == name]
    runs_of_checkpoint = {run.name: run for run in (*steps, *started)}
    if not runs_of_checkpoint:
        if runs:
            st.caption(plain(wording.no_run([run.name for run in runs])))
        return
    if not toggle(wording.OVER_TRAINING, key="over training", help=wording.OVER_TRAINING_HELP):
        return
    with st.container(border=True, key="curves over training"), errors_shown():
        _over_training(importance, runs_of_checkpoint, at_least, within)


def _over_training(importance: Importance, runs: dict[str, SavedRun], at_least: int, within: float) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = from_list(wording.RUN, runs, key="training run", start=next(iter(runs)), width=ORDER_WIDTH)
        order = _choose_order(importance)
        picker = st.container(width=ORDER_WIDTH)
    stages, left_out = stages_of(importance, run, at_least)
    pruning = stages[0].pruning
    counts = pruning.counts(pruning.order(np.zeros(pruning.is_there.shape))).tolist()[1:]
    if not counts:
        st.info(wording.ALL_STAY)
        return
    with picker:
        options = wording.steps(counts, pruning.n_heads)
        middle = list(options)[(len(options) - 1) // 2]
        count = from_list(wording.INTERVAL_AT, options, key="interval at", start=middle, help=wording.INTERVAL_AT_HELP)
    engines = tuple(stage.engine for stage in stages)
    run_of_curves = drawing_in("step curves", run.name, importance.material.key, engines, at_least, order)
    found = kept_curves(stages, order, run_of_curves.left_out)
    if not found.is_whole:
        passes, n_kept = n_passes(stages, order), len(found.curves)
        run_of_curves.begin_or_watch(
            drawn(stages, order, found.curves),
            wording.waiting_over_training(n_kept, len(stages), passes, stages[0].importance.cost(passes)),
            has_curves=n_kept > 0,
        )
    for reason in (*left_out, *found.left_out):
        st.caption(plain(wording.without_beginning(reason)))
    if found.curves:
        facts = _facts(stages, run, order, within)
        _draw(stages, count, found.curves, facts)
        _results(stages, order, found.curves, within, facts)


def _choose_order(importance: Importance) -> str:
    measures = [name for name in KINDS if importance.material.metric.metric != "output" or "attribution" not in name]
    names = [ABLATION, REVERSE, *measures, RANDOM]
    return from_list(
        wording.ORDER,
        {name: name for name in names},
        key="order over training",
        start=START,
        help=wording.ORDER_OVER_TRAINING_HELP,
        width=ORDER_WIDTH,
    )


def _draw(stages: Sequence[CurveStep], count: int, curves: Sequence[StepCurve], facts: dict[str, str]) -> None:
    pruning = stages[0].pruning
    left, right = halves()
    with left:
        figure = score_over_steps(curves, pruning.n_heads, page_wording.SCORE_NAMES[pruning.score.name], count)
        chart("score over training", figure, facts, wording.MICHEL_5)
    with right:
        if all(np.isnan(relative(of_step.curve).value).all() for of_step in curves):
            st.info(wording.NO_SHARES)
        else:
            figure = relative_score(curves, pruning.n_heads)
            chart("relative score by share removed", figure, facts, wording.MICHEL_5)


def _results(
    stages: Sequence[CurveStep], order: str, curves: Sequence[StepCurve], within: float, facts: dict[str, str]
) -> None:
    pruning = stages[0].pruning
    results = [(of_step.step, removable([of_step.curve], pruning.score, within)[0]) for of_step in curves]
    st.markdown(wording.over_training(results, order, pruning.n_heads, wording.allowed(pruning.score.name, within)))
    with st.expander(wording.STEPS_TABLE):
        rows = pd.DataFrame(
            [
                {
                    "step": of_step.step,
                    page_wording.SCORE_NAMES[pruning.score.name]: float(of_step.curve.score[0]),
                    "heads that can go": can_go.n,
                    "low": can_go.low,
                    "high": can_go.high,
                }
                for of_step, (_, can_go) in zip(curves, results, strict=True)
            ]
        )
        st.dataframe(rows, hide_index=True)
        table_downloads("heads that can go over training", rows, facts)
        points = step_curves_table(curves, pruning.n_heads)
        points.insert(
            1, "fingerprint", points["step"].map({stage.step: stage.engine.files.fingerprint for stage in stages})
        )
        table_downloads("points of the curves over training", points, facts)


def _facts(stages: Sequence[CurveStep], run: SavedRun, order: str, within: float) -> dict[str, str]:
    """Provenance of the curves; the fingerprint is that of the last step. The command computes all orders."""
    last = stages[-1]
    material, at_least = last.importance.material, last.pruning.at_least
    options = [*material.pruning_options(at_least, within), "--over-steps"]
    return last.importance.facts | {
        "command": material.line("prune", *options, checkpoint=run.name),
        "checkpoint": f"{run.name}, steps {', '.join(str(stage.step) for stage in stages)}",
        "fingerprint": last.engine.files.fingerprint,
        "order": order,
        "heads of a layer that stay": str(at_least),
    }


def stages_of(importance: Importance, run: SavedRun, at_least: int) -> tuple[list[CurveStep], list[str]]:
    """The saved steps of a run in order, and why step 0 is left out (nothing if it is not).

    Raises: AnalysisError for a run without saved steps or in progress, and for steps with other heads or classes than
        the checkpoint of the page.
    """
    stages = [_stage(importance, step, at_least) for step in saved_steps(run)]
    try:
        initial = _stage(importance, SavedStep(0, run.progress.checkpoint), at_least)
        check_beginning(run, initial.engine.files)
    except AnalysisError as error:
        return stages, [str(error)]
    return [initial, *stages], []


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


def kept_curves(stages: Sequence[CurveStep], order: str, left_out: Mapping[str, str]) -> Collected[StepCurve]:
    """Curves that need no pass; `left_out` are the steps that the run has left out."""
    first, engines = stages[0], tuple(stage.engine for stage in stages)
    key = (first.importance.material.key, first.importance.found.positions, engines, first.pruning.at_least, order)
    return kept_if_whole("step curves", key, lambda: _collected(stages, order, left_out))


def _collected(stages: Sequence[CurveStep], order: str, left_out: Mapping[str, str]) -> Collected[StepCurve]:
    curves, allowed = list[StepCurve](), [stage for stage in stages if stage.name not in left_out]
    for stage in allowed:
        with suppress(NotYet):
            curve = _curve(stage, order, Asker(importance=stage.importance, too_long=policy()))
            curves.append(StepCurve(step=stage.step, curve=curve))
    return Collected(curves=curves, left_out=list(left_out.values()), is_whole=len(curves) == len(allowed))


def drawn(stages: Sequence[CurveStep], order: str, kept: Sequence[StepCurve]) -> Callable[[Journal], None]:
    """The work of the run that computes the answers of the curves of all steps but those that are kept.

    What a saved step does not allow ends the run; step 0, which may lack a classifier, is left out.
    """
    too_long, steps = policy(), {of_step.step for of_step in kept}

    def work(journal: Journal) -> None:
        journal.plan(len(stages))
        for stage in stages:
            journal.check()
            journal.piece(stage.name)
            try:
                _curve(stage, order, Asker(importance=stage.importance, too_long=too_long, journal=journal))
            except AnalysisError as error:
                if stage.step:
                    raise
                journal.failed(stage.name, str(error))
            journal.done(was_kept=stage.step in steps)

    return work


def _curve(stage: CurveStep, order: str, asker: Asker) -> Curve:
    """The curve of a step; for random orders their mean curve.

    Raises: NotYet for an answer that is not available now.
    """
    trials = _trials(stage, order, asker)
    return mean_curve([pruning_curve(stage.pruning, trial, asker.about_some_texts) for trial in trials])


def _trials(stage: CurveStep, order: str, asker: Asker) -> list[CurveTrial]:
    """The curve to draw; for random orders, several."""
    pruning = stage.pruning
    if order in BY_ABLATION:
        outcomes = _ablated(stage, asker)
        by_half = order_by(pruning, damage(outcomes, pruning.score), BY_ABLATION[order])
        return [CurveTrial(order=(order, 0), by_half=by_half, full=full_outcomes(outcomes))]
    full = _with_all_heads(stage, asker)
    if order == RANDOM:
        return random_trials(pruning, full)
    ways = ways_to_measures(asker.about_texts, stage.importance.read, pruning.metric)
    measure = next(each for each in ways[KINDS[order]]() if each.name == order)
    return [CurveTrial(order=(order, 0), by_half=order_by(pruning, measure), full=full)]


def _ablated(stage: CurveStep, asker: Asker) -> Sequence[TextOutcomes]:
    material = stage.importance.material
    texts = [item.text for item in stage.importance.read]
    means = mean_outputs(asker.about_texts(HEAD_OUTPUTS, texts)) if material.settings.replace == "mean" else None
    question = ablation_question(material.metric.metric, means=means)
    return asker.about_some_texts(question, _all_texts(stage), ())


def _with_all_heads(stage: CurveStep, asker: Asker) -> Float[np.ndarray, "text part"]:
    """Outcomes of each text with all heads on, without a sweep of ablations; a change of the output is 0."""
    if stage.pruning.metric == "output":
        return np.zeros((len(stage.pruning.documents), 1))
    gates = np.ones((1, *stage.pruning.is_there.shape))
    outcomes = asker.about_some_texts(gated_question(stage.pruning.metric, gates), _all_texts(stage), ())
    return np.stack([of_text[0] for of_text in outcomes])


def _all_texts(stage: CurveStep) -> np.ndarray:
    return np.arange(len(stage.pruning.documents))
