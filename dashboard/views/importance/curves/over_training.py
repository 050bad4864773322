"""How many heads can go over training: curves of each saved step of a fine-tuning run."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.serving.requests import Report
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.importance.cheap import KINDS
from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.pruning.curves import Removable, allowed_loss, relative, removable
from attention_sieve.core.importance.pruning.orders import RANDOM, REVERSE
from attention_sieve.core.importance.pruning.over_steps import StepCurve, step_curves_table
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.importance.over_steps import relative_score, score_over_steps
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.offers.checkpoints import runs_here
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.progress import with_progress
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.curves.asker import Work
from attention_sieve.dashboard.views.importance.curves.step_curves import (
    CurveStep,
    StepCurves,
    collected,
    kept_curves,
    n_passes,
    stages_of,
)
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.pickers import from_list, toggle

BEGUN: Final = "curves over training begun"
"""Session-state key: hash of the work that the reader started."""
START: Final = "gradient per token"
"""The default order, which is that of the paper; it needs no ablations."""
ORDER_WIDTH: Final = 240


def over_training(importance: Importance, at_least: int, within: float) -> None:
    """Draw curves over the saved steps of a run that the checkpoint belongs to, if the reader turns this on.

    Args:
        at_least: heads of each layer that always stay.
        within: how much worse the score may get, as of `allowed_loss`.
    """
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
        order = _order(importance)
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
    work, slot = st.container(), st.empty()
    computed = kept_curves(stages, order)
    if not computed.is_whole:
        with work:
            computed = _computed(stages, run, order, count, computed, slot)
    for reason in filter(None, (left_out, computed.left_out)):
        st.caption(plain(wording.without_beginning(reason)))
    if computed.curves:
        facts = _facts(stages, run, order, within)
        with slot.container():
            _draw(stages, count, computed.curves, facts)
        _results(stages, order, computed.curves, within, facts)


def _order(importance: Importance) -> str:
    """Let the reader choose the order in which heads are removed."""
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


def _computed(
    stages: Sequence[CurveStep], run: SavedRun, order: str, count: int, cached: StepCurves, slot: DeltaGenerator
) -> StepCurves:
    """All curves once the reader has started the work; the cached ones before that, and after a stop."""
    first_stage = stages[0]
    key = (
        first_stage.importance.material.key,
        tuple(stage.engine for stage in stages),
        first_stage.pruning.at_least,
        order,
    )
    if st.session_state.get(BEGUN) != hash(key):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                wording.GO_ON if cached.curves else wording.BEGIN,
                key="begin curves over training",
                icon=":material/play_circle:",
                on_click=lambda: st.session_state.update({BEGUN: hash(key)}),
            )
            note = wording.waiting_over_training(len(cached.curves), len(stages), n_passes(stages, order))
            st.markdown(note, width="stretch")
        return cached

    def show(curves: Sequence[StepCurve]) -> None:
        figure = _figure(stages, curves, count)
        slot.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description)

    def work(report: Report) -> StepCurves:
        return collected(stages, order, Work(report=report), show)

    return with_progress(("curves over training", key), work, wording.DOING) or cached


def _figure(stages: Sequence[CurveStep], curves: Sequence[StepCurve], count: int) -> Figure:
    pruning = stages[0].pruning
    return score_over_steps(curves, pruning.n_heads, page_wording.SCORE_NAMES[pruning.score.name], count)


def _draw(stages: Sequence[CurveStep], count: int, curves: Sequence[StepCurve], facts: dict[str, str]) -> None:
    """Draw the score over training, and the relative score by share removed where all heads on score above 0."""
    left, right = halves()
    with left:
        chart("score over training", _figure(stages, curves, count), facts, wording.MICHEL_5)
    with right:
        if all(np.isnan(relative(of_step.curve).value).all() for of_step in curves):
            st.info(wording.NO_SHARES)
        else:
            figure = relative_score(curves, stages[0].pruning.n_heads)
            chart("relative score by share removed", figure, facts, wording.MICHEL_5)


def _results(
    stages: Sequence[CurveStep], order: str, curves: Sequence[StepCurve], within: float, facts: dict[str, str]
) -> None:
    """Show how many heads can go at each step: a sentence about the first and last step, and a table."""
    pruning = stages[0].pruning
    results = [(curve.step, _removable(stages[0], curve, within)) for curve in curves]
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


def _removable(stage: CurveStep, of_step: StepCurve, within: float) -> Removable:
    score = stage.pruning.score
    return removable([of_step.curve], score.sign, allowed_loss(score, float(of_step.curve.score[0]), within))[0]


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
