"""How many heads can go over training: curves of each saved step of a fine-tuning run."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache.serving.requests import Report
from core.checkpoints.saved_runs import SavedRun
from core.errors import AnalysisError
from core.importance.cheap import KINDS
from core.importance.measures import ABLATION
from core.importance.pruning.curves import Removable, allowed_loss, relative, removable
from core.importance.pruning.orders import RANDOM, REVERSE
from core.importance.pruning.over_steps import StepCurve, step_curves_table
from dashboard.figures.figure import Figure
from dashboard.figures.importance.over_steps import relative_score, score_over_steps
from dashboard.files.downloads import table_downloads
from dashboard.offers.checkpoints import runs_here
from dashboard.plain import plain, show_error
from dashboard.progress import with_progress
from dashboard.views.charts import chart
from dashboard.views.frame import Visit
from dashboard.views.importance import wording as page_wording
from dashboard.views.importance.curves import wording
from dashboard.views.importance.curves.asker import Work
from dashboard.views.importance.curves.step_curves import Stage, StepCurves, collected, kept_curves, n_passes, stages_of
from dashboard.views.importance.numbers import Importance
from dashboard.views.layout import halves
from dashboard.views.pickers import from_list, toggle

BEGUN: Final = "curves over training begun"
"""The work that the reader asked for."""
START: Final = "gradient per token"
"""The order of the paper; it takes no ablations."""
ORDER_WIDTH: Final = 240


def over_training(importance: Importance, at_least: int, within: float) -> None:
    """Curves over the saved steps of a run that the checkpoint belongs to, where the reader asks for them.

    Args:
        importance: of the page.
        at_least: heads of each layer that always stay.
        within: how much worse the score may get, as of `allowed_loss`.
    """
    runs = runs_here()
    own = _runs_of(importance.material.visit, runs)
    if not own:
        if runs:
            st.caption(plain(wording.no_run([run.name for run in runs])))
        return
    if not toggle(wording.OVER_TRAINING, key="over training", help=wording.OVER_TRAINING_HELP):
        return
    with st.container(border=True, key="curves over training"):
        try:
            _over_training(importance, own, at_least, within)
        except AnalysisError as error:
            show_error(error)


def _runs_of(visit: Visit, runs: Sequence[SavedRun]) -> dict[str, SavedRun]:
    """Runs, by name, of which the checkpoint is a step, first, or that began from it."""
    name = visit.engine.files.name
    steps = [run for run in runs if name in (run.name, *run.checkpoints)]
    begun = [run for run in runs if run.progress.checkpoint == name]
    return {run.name: run for run in (*steps, *begun)}


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
        named = wording.steps(counts, pruning.n_heads)
        middle = list(named)[(len(named) - 1) // 2]
        count = from_list(wording.INTERVAL_AT, named, key="interval at", start=middle, help=wording.INTERVAL_AT_HELP)
    work, place = st.container(), st.empty()
    known = kept_curves(stages, order)
    if not known.is_whole:
        with work:
            known = _worked(stages, run, order, count, known, place)
    for reason in filter(None, (left_out, known.left_out)):
        st.caption(plain(wording.without_beginning(reason)))
    if known.curves:
        with place.container():
            _draw(stages, run, order, count, known.curves)
        _found(stages, run, order, known.curves, within)


def _order(importance: Importance) -> str:
    """The order that heads are removed in."""
    measures = [name for name in KINDS if importance.material.metric != "output" or "attribution" not in name]
    names = [ABLATION, REVERSE, *measures, RANDOM]
    return from_list(
        wording.ORDER,
        {name: name for name in names},
        key="order over training",
        start=START,
        help=wording.ORDER_OVER_TRAINING_HELP,
        width=ORDER_WIDTH,
    )


def _worked(
    stages: Sequence[Stage], run: SavedRun, order: str, count: int, known: StepCurves, place: DeltaGenerator
) -> StepCurves:
    """All curves once the reader has asked for them; those that are known before, and after a stop."""
    first = stages[0]
    key = (first.importance.material.key, tuple(stage.engine for stage in stages), first.pruning.at_least, order)
    if st.session_state.get(BEGUN) != hash(key):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                wording.GO_ON if known.curves else wording.BEGIN,
                key="begin curves over training",
                icon=":material/play_circle:",
                on_click=lambda: st.session_state.update({BEGUN: hash(key)}),
            )
            said = wording.waiting_over_training(len(known.curves), len(stages), n_passes(stages, order))
            st.markdown(said, width="stretch")
        return known

    def show(curves: Sequence[StepCurve]) -> None:
        figure = _figure(stages, curves, count)
        place.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description)

    def work(report: Report) -> StepCurves:
        return collected(stages, order, Work(report=report), show)

    return with_progress(("curves over training", key), work, wording.DOING) or known


def _figure(stages: Sequence[Stage], curves: Sequence[StepCurve], count: int) -> Figure:
    pruning = stages[0].pruning
    return score_over_steps(curves, pruning.n_heads, page_wording.SCORE_NAMES[pruning.score.name], count)


def _draw(stages: Sequence[Stage], run: SavedRun, order: str, count: int, curves: Sequence[StepCurve]) -> None:
    """The score over training, and by share removed, relative to all heads on where that is a number to divide by."""
    facts = _facts(stages, run, order)
    left, right = halves()
    with left:
        chart("score over training", _figure(stages, curves, count), facts, wording.MICHEL_5)
    with right:
        if all(np.isnan(relative(each.curve).value).all() for each in curves):
            st.info(wording.NO_SHARES)
        else:
            figure = relative_score(curves, stages[0].pruning.n_heads)
            chart("relative score by share removed", figure, facts, wording.MICHEL_5)


def _found(stages: Sequence[Stage], run: SavedRun, order: str, curves: Sequence[StepCurve], within: float) -> None:
    """How many heads can go at each step: a sentence on the first and the last one, and a table."""
    pruning, facts = stages[0].pruning, _facts(stages, run, order)
    found = [(each.step, _removable(stages[0], each, within)) for each in curves]
    st.markdown(wording.over_training(found, order, pruning.n_heads, wording.allowed(pruning.score.name, within)))
    with st.expander(wording.STEPS_TABLE):
        rows = pd.DataFrame(
            [
                {
                    "step": each.step,
                    page_wording.SCORE_NAMES[pruning.score.name]: float(each.curve.score[0]),
                    "heads that can go": of_step.n,
                    "low": of_step.low,
                    "high": of_step.high,
                }
                for each, (_, of_step) in zip(curves, found, strict=True)
            ]
        )
        st.dataframe(rows, hide_index=True)
        table_downloads("heads that can go over training", rows, facts)
        points = step_curves_table(curves, pruning.n_heads)
        points.insert(
            1, "fingerprint", points["step"].map({each.step: each.engine.files.fingerprint for each in stages})
        )
        table_downloads("points of the curves over training", points, facts)


def _removable(stage: Stage, of_step: StepCurve, within: float) -> Removable:
    score = stage.pruning.score
    return removable([of_step.curve], score.sign, allowed_loss(score, float(of_step.curve.score[0]), within))[0]


def _facts(stages: Sequence[Stage], run: SavedRun, order: str) -> dict[str, str]:
    """Where the curves come from; the fingerprint is that of the last step."""
    last = stages[-1]
    return last.importance.facts | {
        "checkpoint": f"{run.name}, steps {', '.join(str(stage.step) for stage in stages)}",
        "fingerprint": last.engine.files.fingerprint,
        "order": order,
        "heads of a layer that stay": str(last.pruning.at_least),
    }
