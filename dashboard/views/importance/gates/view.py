"""The tab on gates: the form for training them, the progress of the runs, the trained gates, and scores with them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.command_lines import command_line
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import held_out_texts
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.gates.settings import GateHistory, GateSettings, TrainedGates
from attention_sieve.core.importance.pruning.curves import Curve, curve, curves_table
from attention_sieve.core.importance.pruning.orders import RANDOM
from attention_sieve.core.importance.question import gated_question
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, costs, state
from attention_sieve.dashboard.components.head_map import head_map
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.controls import from_home
from attention_sieve.dashboard.figures.head_map import HeadMap
from attention_sieve.dashboard.figures.importance.gates import MOST, gate_densities, gate_scores
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.runs import stop_of
from attention_sieve.dashboard.views.asking import ask
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves.drawn import kept_curves_of
from attention_sieve.dashboard.views.importance.gates import runs, wording
from attention_sieve.dashboard.views.importance.gates.runs import PenaltySweep, delete, sweeps_of
from attention_sieve.dashboard.views.importance.material import Importance, Material
from attention_sieve.dashboard.views.pickers import from_list, halves, numbers, one_of, toggle
from attention_sieve.dashboard.views.training import wording as training_wording
from attention_sieve.dashboard.views.training.folders import keep_data
from attention_sieve.dashboard.views.training.labelled import Labelled

REFRESH_SECONDS: Final = 1.0
"""Seconds between two refreshes of a running sweep."""
FIRST_BESIDE: Final = "gradient per text"
"""The default order for comparison: the measure of Michel et al.'s paper."""
PICKER_WIDTH: Final = 280
POINTS: Final = 201
"""Number of points of a density curve."""
NARROWEST: Final = 150
"""Minimum width of a setting, in pixels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedGates:
    """Scores with the gates of the finished runs of a sweep."""

    penalties: tuple[float, ...]
    curve: Curve
    """Its first step has all heads on and no gates; then one step for each penalty."""
    n_heads: int
    places: tuple[int, ...]
    """Indices of the scored texts among those of the page."""


def train_gates(importance: Importance) -> None:
    material = importance.material
    st.markdown(wording.SEE)
    if material.table is None:
        st.info(wording.NEEDS_LABELS)
        return
    data = material.table.data
    files = material.visit.engine.files
    sweeps = sweeps_of(files, data.sha256, data.text_columns, data.label_column)
    active = runs.running()
    if active is not None:
        _running_panel(importance, active)
    with st.expander(wording.FORM if sweeps else wording.TITLE, expanded=not sweeps):
        form(material, material.table)
    if sweeps:
        _sweep(importance, _choose_sweep(sweeps))
    elif active is None:
        st.markdown(wording.NOTHING_YET)


def _choose_sweep(sweeps: list[PenaltySweep]) -> PenaltySweep:
    options = {wording.settings(sweep.settings, sweep.penalties): sweep for sweep in sweeps}
    return sweeps[0] if len(options) == 1 else from_list(wording.WHICH, options, key="sweep", start=next(iter(options)))


def _running_panel(importance: Importance, sweep: PenaltySweep) -> None:
    """The running sweep, refreshed at intervals; the whole page is redrawn once a penalty is finished."""
    n_done = runs.look(sweep).step

    @st.fragment(run_every=REFRESH_SECONDS)
    def panel() -> None:
        now = runs.look(sweep)
        if now.state != "running" or now.step != n_done:
            st.rerun()  # the rest of the tab is out of date
        penalty = sweep.penalties[min(now.step, len(sweep.penalties) - 1)]
        progress = sweep.progress(penalty)
        if progress is not None and progress.state != "running":
            progress = None  # the last line is that of the run before, until a resumed run writes its first one
        st.markdown(wording.head(plain(sweep.checkpoint), plain(sweep.data.name)))
        share = 0.0 if progress is None else progress.share
        st.progress(share, plain(wording.running(penalty, now.step + 1, len(sweep.penalties), progress)))
        with st.container(horizontal=True, vertical_alignment="center"):
            stop_of("stop gates", sweep.folder)
            if progress is not None and (measured := training_wording.measured(progress)):
                st.markdown(measured)
        if progress is not None:
            _live_map(importance, sweep, penalty)

    with st.container(border=True, key="gates run"):
        panel()


def _live_map(importance: Importance, sweep: PenaltySweep, penalty: float) -> None:
    history = sweep.history(penalty, _removed(importance, sweep))
    if history is not None:
        picture = _picture(sweep.checkpoint, history, len(history.steps) - 1, penalty)
        # A constant title, or the map would be drawn anew every second.
        head_map(replace(picture, title=wording.P_OPEN), Selection("live gates", []))


def _removed(importance: Importance, sweep: PenaltySweep) -> tuple[Head, ...]:
    files = importance.material.visit.engine.files
    return tuple(files.removed_of(sweep.settings.kind)) if files.fingerprint == sweep.fingerprint else ()


def _sweep(importance: Importance, sweep: PenaltySweep) -> None:
    status = runs.look(sweep)
    if status.state == "failed":
        st.error(plain(status.message), icon=":material/error:")
    elif status.state in ("stopped", "left"):
        message = wording.ended(status.state, len(sweep.finished), len(sweep.penalties), sweep.begun)
        st.info(message, icon=":material/pause_circle:")
    if status.state in ("failed", "stopped", "left") and st.button(
        wording.RESUME, key="resume gates", icon=":material/play_circle:"
    ):
        begin(sweep)
    started = [penalty for penalty in sweep.penalties if sweep.history(penalty, ()) is not None]
    if started:
        _results(importance, sweep, started)
    if status.state != "running":
        _on_disk(sweep)


def _results(importance: Importance, sweep: PenaltySweep, started: list[float]) -> None:
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
        options = {f"{penalty:g}": penalty for penalty in started}
        largest = max(sweep.finished, default=started[0])
        penalty = one_of(wording.PENALTY, options, key=f"penalty {sweep.folder.name}", start=f"{largest:g}")
        gates = _gates(importance, sweep, penalty)
    densities, tables = halves()
    if gates is not None:
        with densities:
            _densities(importance.heads[:MOST], *gates)
    with tables:
        if scores is not None:
            with st.expander(wording.SCORES_TABLE):
                rows = curves_table([scores.curve], scores.n_heads).drop(columns=["order", "draw"])
                rows.insert(0, "penalty", [None, *scores.penalties])
                table("scores by penalty", rows, _facts(importance, sweep))
        if gates is not None:
            from attention_sieve.core.importance.gates.command import gate_table

            with st.expander(wording.TABLE):
                table("gates", gate_table(gates[0]), gates[1])


def _scores(importance: Importance, sweep: PenaltySweep, scores: JudgedGates) -> None:
    curve, name = scores.curve, importance.ablation.score.name
    score_name = page_wording.SCORE_NAMES[name]
    most = int(curve.n_removed[1:].argmax()) + 1
    numbers = (float(curve.score[0]), *(float(values[most]) for values in (curve.score, curve.low, curve.high)))
    n_open = scores.n_heads - int(curve.n_removed[most])
    st.markdown(wording.found(score_name, scores.penalties[most - 1], n_open, scores.n_heads, numbers))
    figure = gate_scores(curve, scores.penalties, scores.n_heads, score_name, _comparison_curves(importance, scores))
    chart("scores by penalty", figure, _facts(importance, sweep), wording.VOITA_7)
    st.caption(wording.over(len(scores.places), sweep.settings.with_weights))


def _comparison_curves(importance: Importance, scores: JudgedGates) -> list[Curve]:
    """Pruning curves over the texts that the gates are scored on: the chosen order and random orders; empty before the
    curves are drawn."""
    curves = kept_curves_of(importance, scores.places)
    names = {curve.order: curve.order for curve in curves if curve.order != RANDOM}
    if not names:
        st.caption(wording.NO_CURVES)
        return []
    start = FIRST_BESIDE if FIRST_BESIDE in names else None
    order = from_list(
        wording.BESIDE, names, key="order beside gates", start=start, help=wording.BESIDE_HELP, width=PICKER_WIDTH
    )
    return [curve for curve in curves if curve.order in (order, RANDOM)]


def _gates(importance: Importance, sweep: PenaltySweep, penalty: float) -> tuple[TrainedGates, dict[str, str]] | None:
    """Draw the map at the chosen step; return the gates at that step and their provenance."""
    from attention_sieve.core.importance.gates.hard_concrete import gates_of

    history = sweep.history(penalty, _removed(importance, sweep))
    if history is None:
        return None
    step = _step(sweep, penalty, history)
    index = history.steps.index(step)
    facts = _facts(importance, sweep) | {"penalty": f"{penalty:g}", "training step": str(step)}
    if penalty in sweep.finished and index == len(history.steps) - 1:  # the command writes the gates of the end
        table = importance.material.table
        data = "" if table is None else table.archived()
        facts["command"] = command_line(["gates", *runs.gate_options(sweep, data, "gates")])
    show_head_map(
        _picture(sweep.checkpoint, history, index, penalty),
        head_selection("gates map", importance.heads, (*importance.material.key, sweep.folder, state.n_pushed())),
        file="gates of heads",
        facts=facts,
    )
    return gates_of(history.log_alpha[index]), facts


def _step(sweep: PenaltySweep, penalty: float, history: GateHistory) -> int:
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


def _picture(checkpoint: str, history: GateHistory, index: int, penalty: float) -> HeadMap:
    from attention_sieve.core.importance.gates.hard_concrete import gates_of

    gates = gates_of(history.log_alpha[index])
    return HeadMap(
        title=f"{wording.P_OPEN}, penalty {penalty:g}, step {history.steps[index]:,}",
        label=f"Gates of the heads of {checkpoint}: {wording.P_OPEN}",
        values=1 - gates.p_zero,
        bound=1.0,
        low_label=wording.CLOSED,
        high_label=wording.OPEN,
        marked=gates.gate == 0,
        mark=wording.MARK,
        details=[(wording.P_ZERO, gates.p_zero), (wording.P_ONE, gates.p_one), (wording.GATE, gates.gate)],
    )


def _densities(heads: list[Head], gates: TrainedGates, facts: dict[str, str]) -> None:
    from attention_sieve.core.importance.gates.hard_concrete import densities

    present = [head for head in heads if not np.isnan(gates.log_alpha[head])]
    if not present:
        st.caption(wording.NO_HEADS)
        return
    indices = tuple(np.array(present).T)
    points = np.linspace(0, 1, POINTS)
    curves = densities(gates.log_alpha[indices], points)
    names = [head_name(*head) for head in present]
    figure = gate_densities(names, gates.p_zero[indices], gates.p_one[indices], points, curves)
    chart("densities of gates", figure, facts, wording.VOITA_6)


def _facts(importance: Importance, sweep: PenaltySweep) -> dict[str, str]:
    settings: GateSettings = sweep.settings
    return importance.facts | {
        "gates": "with the weights" if settings.with_weights else "alone",
        "epochs": f"{settings.epochs:g}",
        "held out": f"{settings.held_out:g}",
        "seed": str(settings.seed),
    }


def _on_disk(sweep: PenaltySweep) -> None:
    n_bytes = sweep.n_bytes
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(wording.disk(n_bytes, from_home(sweep.folder))), width="stretch")
        with st.popover(wording.DELETE, icon=":material/delete:"):
            st.markdown(wording.about_to_delete(len(sweep.penalties), n_bytes))
            if st.button(wording.DELETE_NOW, key=f"delete {sweep.folder.name}", type="primary"):
                with errors_shown():
                    delete(sweep)
                    st.rerun()


def form(material: Material, table: Labelled) -> None:
    default = ", ".join(f"{penalty:g}" for penalty in wording.DEFAULT_PENALTIES)
    try:
        text = st.text_input(
            wording.PENALTIES,
            default,
            key="penalties",
            help=wording.PENALTIES_HELP,
            bind="query-params",
            persist_state="session",
        )
        penalties = penalties_of(text)
        with_weights = toggle(wording.WITH_WEIGHTS, key="with weights", help=wording.WITH_WEIGHTS_HELP)
        grid = st.grid(3, min_column_width=NARROWEST)
        fields = {name: texts for name, texts in wording.SETTINGS.items() if with_weights or name != "learning_rate"}
        values = numbers(grid, fields, wording.DEFAULTS, prefix="gates ")
        settings = GateSettings(**values, with_weights=with_weights, kind=material.visit.settings.kind)
    except AnalysisError as error:
        show_error(error)
        return
    is_on = runs.running() is not None
    if is_on:
        st.info(wording.ONE_AT_A_TIME)
    texts = [item.text for item in material.inputs]
    costs.say(material.visit.engine.files, costs.TRAINING * len(penalties) * settings.epochs * len(texts), texts)
    pressed = st.button(wording.start(len(penalties)), key="train gates", icon=":material/play_arrow:", disabled=is_on)
    if pressed:
        begin(_new_sweep(material, table, settings, penalties))


def begin(sweep: PenaltySweep) -> None:
    with errors_shown():
        runs.start(sweep, state.choice().device)
        st.rerun(scope="app")


def penalties_of(text: str) -> tuple[float, ...]:
    """Parse penalties separated by commas; sorted, without duplicates.

    Raises: AnalysisError if they are not numbers, out of range, or too many.
    """
    try:
        # Rounded as in the name of the run's folder.
        penalties = sorted({float(f"{float(part):g}") for part in text.split(",") if part.strip()})
    except ValueError:
        penalties = []
    if not penalties:
        raise AnalysisError(wording.no_penalties(plain(text)))
    if len(penalties) > wording.MOST_PENALTIES:
        raise AnalysisError(wording.too_many(len(penalties)))
    for penalty in penalties:
        GateSettings(penalty=penalty)
    return tuple(penalties)


def _new_sweep(
    material: Material, table: Labelled, settings: GateSettings, penalties: tuple[float, ...]
) -> PenaltySweep:
    data, files = table.data, material.visit.engine.files
    path: Path = keep_data(data.name, table.content())
    return PenaltySweep(
        checkpoint=files.name,
        fingerprint=files.fingerprint,
        data=path,
        text_columns=data.text_columns,
        label_column=data.label_column,
        task="classes" if material.metric.n_classes else "regression",
        settings=settings,
        penalties=penalties,
    )


def judged(material: Material, sweep: PenaltySweep) -> JudgedGates | None:
    """Scores of the finished runs of a sweep; None where the reader has to do something first, or none is finished.

    The gates are applied to the original weights; if the weights were trained too, the run's own checkpoint is used,
    whose weights contain the gates.

    Raises: AnalysisError of any stage.
    """
    from attention_sieve.core.importance.gates.hard_concrete import gates_of

    removed_heads = material.visit.engine.files.removed_of(sweep.settings.kind)
    histories = {penalty: sweep.history(penalty, removed_heads) for penalty in sweep.finished}
    gates = {penalty: gates_of(of_run.log_alpha[-1]) for penalty, of_run in histories.items() if of_run is not None}
    if not gates or material.table is None:
        return None
    labels = tuple(item.label for item in material.inputs if item.label is not None)
    data = replace(material.table.data, labels=labels, task="classes" if material.metric.n_classes else "regression")
    indices = np.flatnonzero(held_out_texts(data, sweep.settings.held_out, sweep.settings.seed))
    texts = [item.text for item in material.at(indices.tolist())]
    shape = next(iter(gates.values())).gate.shape
    full = _outcomes(material, None, np.ones(shape), texts)
    outcomes = [
        _outcomes(material, *_checkpoint_and_gates(sweep, penalty, of_run), texts) for penalty, of_run in gates.items()
    ]
    if full is None or any(of_run is None for of_run in outcomes):
        return None
    positions, full_outcomes = full
    read_indices = tuple(int(indices[position]) for position in positions)
    all_outcomes = np.stack([full_outcomes, *(of_run[1] for of_run in outcomes if of_run is not None)], axis=1)
    removed = np.array([0, *(int((of_run.gate == 0).sum()) for of_run in gates.values())])
    read = material.at(read_indices)
    score, documents = material.metric.score_of(read), [item.text.document for item in read]
    score_curve = curve(("gates", 0), removed, all_outcomes, score, documents, Draws(documents))
    n_heads = int((~np.isnan(next(iter(gates.values())).gate)).sum())
    return JudgedGates(penalties=tuple(gates), curve=score_curve, n_heads=n_heads, places=read_indices)


def _checkpoint_and_gates(
    sweep: PenaltySweep, penalty: float, gates: TrainedGates
) -> tuple[str | None, Float[np.ndarray, "layer head"]]:
    """The checkpoint (None for the original one) and the gates to apply to it."""
    if sweep.settings.with_weights:
        return str(sweep.run_folder(penalty)), np.ones(gates.gate.shape)
    return None, np.nan_to_num(gates.gate, nan=1.0)


def _outcomes(
    material: Material, checkpoint: str | None, gates: Float[np.ndarray, "layer head"], texts: list[Text]
) -> tuple[tuple[int, ...], Float[np.ndarray, "text part"]] | None:
    """Positions of the texts that were read, and their outcomes."""
    visit = material.visit
    if checkpoint is not None:
        visit = replace(visit, engine=controls.other_engine(visit.choice, checkpoint))
    answers = ask(visit, gated_question("labels", gates[None]), texts)
    return None if answers is None else (answers.positions, np.stack([of_text[0] for of_text in answers.results]))
