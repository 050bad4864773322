"""The tab on gates: what is asked, the runs as they go, and what the trained gates say."""

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from core.attention.settings import Head, head_name
from core.errors import AnalysisError
from core.importance.gates.history import GateHistory
from core.importance.gates.settings import GateSettings, TrainedGates
from core.importance.pruning.curves import Curve
from core.importance.pruning.orders import RANDOM
from dashboard import state
from dashboard.components.head_map import head_map
from dashboard.controls import from_home
from dashboard.figures.head_map import HeadMap
from dashboard.figures.importance.gate_densities import MOST, gate_densities
from dashboard.figures.importance.gate_scores import gate_scores
from dashboard.files.downloads import table_downloads
from dashboard.plain import plain, show_error
from dashboard.views.charts import chart
from dashboard.views.finetune import wording as training_wording
from dashboard.views.importance import wording as page_wording
from dashboard.views.importance.curves.drawn import kept_curves_of
from dashboard.views.importance.gates import runs, wording
from dashboard.views.importance.gates.form import begin, form
from dashboard.views.importance.gates.scores import Judged, judged
from dashboard.views.importance.gates.sweeps import Sweep, delete, sweeps_of
from dashboard.views.importance.numbers import Importance
from dashboard.views.layout import halves
from dashboard.views.maps import show_head_map
from dashboard.views.pickers import from_list, one_of

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a run that is on."""
FIRST_BESIDE: Final = "gradient per text"
"""The order of pruning that is drawn first, the measure of Michel et al.'s paper."""
PICKER_WIDTH: Final = 280
POINTS: Final = 201
"""Of a density."""


def train_gates(importance: Importance) -> None:
    """Draw the tab."""
    material = importance.material
    st.markdown(wording.SEE)
    if material.table is None:
        st.info(wording.NEEDS_LABELS)
        return
    data = material.table.data
    files = material.visit.engine.files
    own = sweeps_of(files, data.sha256, data.text_columns, data.label_column)
    on = runs.running()
    if on is not None:
        _running_panel(importance, on)
    with st.expander(wording.FORM if own else wording.TITLE, expanded=not own):
        form(material, material.table)
    if own:
        _sweep(importance, _which(own))
    elif on is None:
        st.markdown(wording.NOTHING_YET)


def _which(own: list[Sweep]) -> Sweep:
    named = {wording.settings(sweep.settings, sweep.penalties): sweep for sweep in own}
    return own[0] if len(named) == 1 else from_list(wording.WHICH, named, key="sweep", start=next(iter(named)))


def _running_panel(importance: Importance, sweep: Sweep) -> None:
    """The run that is on, looked at again and again; the whole page is drawn anew once one penalty is done."""
    begun_with = runs.look(sweep).penalty

    @st.fragment(run_every=LOOK_AGAIN)
    def panel() -> None:
        now = runs.look(sweep)
        if now.state != "running" or (begun_with is not None and now.penalty != begun_with):
            st.rerun()  # what the rest of the tab says and offers has changed
        st.markdown(wording.head(plain(sweep.checkpoint), plain(sweep.data.name)))
        progress = now.progress
        share = min(progress.step / progress.steps, 1.0) if progress is not None and progress.steps else 0.0
        st.progress(share, plain(wording.running(now.penalty, now.number, len(sweep.penalties), progress)))
        with st.container(horizontal=True, vertical_alignment="center"):
            if runs.is_stopping(sweep):
                st.markdown(wording.STOPPING)
            else:
                st.button(
                    wording.STOP,
                    key="stop gates",
                    icon=":material/stop_circle:",
                    help=wording.STOP_HELP,
                    on_click=runs.stop,
                    args=(sweep,),
                )
            if progress is not None and (measured := training_wording.measured(progress)):
                st.markdown(measured)
        _live_map(importance, sweep, now)

    with st.container(border=True, key="gates run"):
        panel()


def _live_map(importance: Importance, sweep: Sweep, now: runs.Now) -> None:
    """Gates after the latest report; nothing before the first."""
    if now.penalty is None or now.progress is None:
        return
    history = sweep.history(now.penalty, _removed(importance, sweep))
    if history is not None:
        picture = _picture(sweep.checkpoint, history, len(history.steps) - 1, now.penalty)
        # The title stays, or the map would be drawn anew every second.
        head_map(replace(picture, title=wording.P_OPEN), key="live gates")


def _removed(importance: Importance, sweep: Sweep) -> tuple[Head, ...]:
    files = importance.material.visit.engine.files
    return tuple(files.removed_of(sweep.settings.kind)) if files.fingerprint == sweep.fingerprint else ()


def _sweep(importance: Importance, sweep: Sweep) -> None:
    """What the runs of a sweep found, and what can be done with it."""
    now = runs.look(sweep)
    if now.state == "failed":
        st.error(plain(now.message), icon=":material/error:")
    elif now.state in ("stopped", "left"):
        ended = wording.ended(now.state, len(sweep.finished), len(sweep.penalties), now.progress)
        st.info(ended, icon=":material/pause_circle:")
    if now.state in ("failed", "stopped", "left") and st.button(
        wording.RESUME, key="resume gates", icon=":material/play_circle:"
    ):
        begin(sweep)
    begun = [penalty for penalty in sweep.penalties if sweep.history(penalty, ()) is not None]
    if begun:
        _found(importance, sweep, begun)
    if now.state != "running":
        _on_disk(sweep)


def _found(importance: Importance, sweep: Sweep, begun: list[float]) -> None:
    """Scores beside the map of the gates, then densities beside the tables."""
    left, right = halves()
    with left:
        try:
            scores = judged(importance.material, sweep)
        except AnalysisError as error:
            show_error(error)
            scores = None
        if scores is not None:
            _scores(importance, sweep, scores)
    with right:
        named = {f"{penalty:g}": penalty for penalty in begun}
        start = f"{_start(sweep, begun):g}"
        penalty = one_of(wording.PENALTY, named, key=f"penalty {sweep.folder.name}", start=start)
        gates = _gates(importance, sweep, penalty)
    densities, tables = halves()
    if gates is not None:
        with densities:
            _densities(importance.heads[:MOST], *gates)
    with tables:
        if scores is not None:
            _table(wording.SCORES_TABLE, "scores by penalty", scores_table(scores), _facts(importance, sweep))
        if gates is not None:
            _table(wording.TABLE, "gates", gates_table(gates[0]), gates[1])


def _table(title: str, name: str, rows: pd.DataFrame, facts: dict[str, str]) -> None:
    with st.expander(title):
        st.dataframe(rows, hide_index=True)
        table_downloads(name, rows, facts)


def _start(sweep: Sweep, begun: list[float]) -> float:
    """The penalty that is shown first: the largest of the finished ones."""
    return max(sweep.finished, default=begun[0])


def _scores(importance: Importance, sweep: Sweep, scores: Judged) -> None:
    curve, name = scores.curve, importance.score.name
    shown = page_wording.SCORE_NAMES[name]
    most = int(curve.n_removed[1:].argmax()) + 1
    numbers = (float(curve.score[0]), *(float(one[most]) for one in (curve.score, curve.low, curve.high)))
    n_open = scores.n_heads - int(curve.n_removed[most])
    st.markdown(wording.found(shown, scores.penalties[most - 1], n_open, scores.n_heads, numbers))
    figure = gate_scores(curve, scores.penalties, scores.n_heads, shown, _beside(importance, scores))
    chart("scores by penalty", figure, _facts(importance, sweep), wording.VOITA_7)
    st.caption(wording.over(len(scores.places), sweep.settings.with_weights))


def _beside(importance: Importance, scores: Judged) -> list[Curve]:
    """Curves of pruning over the texts that the gates are judged on: the order that the reader picks, and random ones;
    none before the curves are drawn."""
    curves = kept_curves_of(importance, scores.places)
    names = {each.order: each.order for each in curves if each.order != RANDOM}
    if not names:
        st.caption(wording.NO_CURVES)
        return []
    start = FIRST_BESIDE if FIRST_BESIDE in names else None
    order = from_list(
        wording.BESIDE, names, key="order beside gates", start=start, help=wording.BESIDE_HELP, width=PICKER_WIDTH
    )
    return [each for each in curves if each.order in (order, RANDOM)]


def scores_table(scores: Judged) -> pd.DataFrame:
    """A row for all heads on, then one for each penalty, with the columns of the pruning curves."""
    curve = scores.curve
    return pd.DataFrame(
        {
            "penalty": [None, *scores.penalties],
            "removed": curve.n_removed,
            "share": curve.n_removed / scores.n_heads,
            **{name: getattr(curve, name) for name in ("score", "delta", "low", "high")},
        }
    )


def _gates(importance: Importance, sweep: Sweep, penalty: float) -> tuple[TrainedGates, dict[str, str]] | None:
    """Draw the map at the step that the reader picks; the gates there, and where they come from."""
    from core.importance.gates.hard_concrete import gates_of

    history = sweep.history(penalty, _removed(importance, sweep))
    if history is None:
        return None
    step = _step(sweep, penalty, history)
    place = history.steps.index(step)
    facts = _facts(importance, sweep) | {"penalty": f"{penalty:g}", "training step": str(step)}
    show_head_map(
        _picture(sweep.checkpoint, history, place, penalty),
        key="gates map",
        file="gates of heads",
        heads=importance.heads,
        reset=(*importance.material.key, sweep.folder, state.n_pushed()),
        facts=facts,
    )
    return gates_of(history.log_alpha[place]), facts


def _step(sweep: Sweep, penalty: float, history: GateHistory) -> int:
    """The step that the reader looks at; the last one at first."""
    if len(history.steps) < 2:
        return history.steps[-1]
    return st.select_slider(
        wording.STEP,
        history.steps,
        value=history.steps[-1],
        key=f"step {sweep.folder.name} {penalty:g} {history.steps[-1]}",
        format_func=lambda step: f"{step:,}",
        help=wording.STEP_HELP,
    )


def _picture(checkpoint: str, history: GateHistory, place: int, penalty: float) -> HeadMap:
    from core.importance.gates.hard_concrete import gates_of

    gates = gates_of(history.log_alpha[place])
    return HeadMap(
        title=f"{wording.P_OPEN}, penalty {penalty:g}, step {history.steps[place]:,}",
        label=f"Gates of the heads of {checkpoint}: {wording.P_OPEN}",
        values=1 - gates.p_zero,
        bound=1.0,
        low_label=wording.CLOSED,
        high_label=wording.OPEN,
        outlined=gates.gate == 0,
        outline=wording.OUTLINE,
        details=[(wording.P_ZERO, gates.p_zero), (wording.P_ONE, gates.p_one), (wording.GATE, gates.gate)],
    )


def _densities(heads: list[Head], gates: TrainedGates, facts: dict[str, str]) -> None:
    from core.importance.gates.hard_concrete import densities

    there = [head for head in heads if not np.isnan(gates.log_alpha[head])]
    if not there:
        st.caption(wording.NO_HEADS)
        return
    places = tuple(np.array(there).T)
    points = np.linspace(0, 1, POINTS)
    of_heads = densities(gates.log_alpha[places], points)
    names = [head_name(*head) for head in there]
    figure = gate_densities(names, gates.p_zero[places], gates.p_one[places], points, of_heads)
    chart("densities of gates", figure, facts, wording.VOITA_6)


def gates_table(gates: TrainedGates) -> pd.DataFrame:
    """One row per head, with the columns of `python -m core gates`."""
    from core.importance.gates.command import gate_table

    return gate_table(gates)


def _facts(importance: Importance, sweep: Sweep) -> dict[str, str]:
    settings: GateSettings = sweep.settings
    return importance.facts | {
        "gates": "with the weights" if settings.with_weights else "alone",
        "epochs": f"{settings.epochs:g}",
        "held out": f"{settings.held_out:g}",
        "seed": str(settings.seed),
    }


def _on_disk(sweep: Sweep) -> None:
    """Where the runs lie, and a way to delete them once the reader has said so twice."""
    n_bytes = sweep.n_bytes
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(wording.disk(n_bytes, from_home(sweep.folder))), width="stretch")
        with st.popover(wording.DELETE, icon=":material/delete:"):
            st.markdown(wording.about_to_delete(len(sweep.penalties), n_bytes))
            if st.button(wording.DELETE_NOW, key=f"delete {sweep.folder.name}", type="primary"):
                try:
                    delete(sweep)
                except AnalysisError as error:
                    show_error(error)
                    return
                st.rerun()
