"""What each head knows about a task: a summary, a map, the heads in order, a table, and heads by layer and by role."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.knowledge.report import LAYER, TaskReport
from attention_sieve.core.knowledge.trials.result import TrialResult
from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.figure import interval
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.knowledge.in_layers import scores_by_layer, sorted_heads
from attention_sieve.dashboard.figures.knowledge.ranked import localisation_curves
from attention_sieve.dashboard.figures.knowledge.words import number_format, score_name, written
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import by_role, frame
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map, table
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_baselines
from attention_sieve.dashboard.views.pickers import halves, one_of
from attention_sieve.dashboard.views.probed import baseline_scores

Measure = Callable[[TrialResult], Float[np.ndarray, "layer head"] | None]
MEASURES: Final[dict[str, Measure]] = {
    wording.ABOVE: lambda result: above_baselines(result.report),
    wording.ACCURACY: lambda result: result.report.grid(result.report.accuracy),
    wording.SELECTIVITY: lambda result: (
        None if result.selectivity is None else result.report.grid(result.selectivity.selectivity)
    ),
    wording.CODE: lambda result: (
        None if result.bits is None else result.report.grid(1 - result.bits / result.uniform_bits)
    ),
}
"""The values that the map can show; None until they are computed."""
MOST_VIOLINS: Final = 3
"""Maximum number of overlaid violins; more cannot be told apart."""


def headline(probing: Probing) -> None:
    report, name = probing.shown.report, score_name(probing.shown.report.is_regression)
    best, baselines = report.best_head, baseline_scores(report)
    floor = max(baselines, key=baselines.__getitem__)
    frame.say_finding(
        wording.finding(
            plain(probing.task.name),
            (head_name(*report.head_at(best)), written(report.accuracy[best], name)),
            (floor, written(baselines[floor], name)),
            beats=None if report.is_regression else bool(probing.beats[best]),
        ),
        " ".join(filter(None, (_n_beating(probing), wording.NO_RANDOM if probing.random_twin is None else ""))),
    )


def _n_beating(probing: Probing) -> str:
    report = probing.shown.report
    if report.is_regression:
        return ""
    n_heads = int((report.is_head & ~np.isnan(report.accuracy)).sum())
    n_beating = int((probing.beats & report.is_head).sum())
    return wording.n_beating(n_beating, n_heads, len(probing.known), probing.visit.choice.criterion.alpha)


def heads_in_order(probing: Probing) -> None:
    report = probing.shown.report
    figure = localisation_curves(
        probing.scores, baseline_scores(report), score_name(report.is_regression), probing.heads
    )
    chart("heads in order", figure, probing.facts, wording.JO_CURVES, large=True, selects=True)


def _in_full(probing: Probing) -> None:
    """The best head and the best layer with their intervals, and every baseline."""
    result, report, name = probing.shown, probing.shown.report, score_name(probing.shown.report.is_regression)
    head, layer = report.best_head, report.best_layer
    best = head_name(*report.head_at(head))
    sentences = [
        wording.best(
            best,
            f"{name} {written(report.accuracy[head], name)}",
            _interval(report, head, name),
            report.n_test,
        ),
        wording.unsettled(best, int(report.rivals.sum()), report.n_test, report.is_regression),
        wording.best_layer(
            int(report.layer[layer]), written(report.accuracy[layer], name), _interval(report, layer, name)
        ),
        wording.baselines(
            {baseline: written(score, name) for baseline, score in baseline_scores(report).items()},
            _random(probing, name),
        ),
    ]
    st.markdown(" ".join(filter(None, sentences)))
    for note in result.notes:
        st.caption(plain(note))


def _random(probing: Probing, name: str) -> tuple[str, str] | None:
    """Score and interval of the best head of the checkpoint with random weights, chosen in the same way."""
    twin = probing.random_twin
    if twin is None:
        return None
    best = twin.report.best_head
    return written(twin.report.accuracy[best], name), _interval(twin.report, best, name)


def _interval(report: TaskReport, index: int, name: str) -> str:
    return interval(report.low[index], report.high[index], number_format(name))


def each_head(probing: Probing) -> None:
    result = probing.shown
    if result.report.is_regression:
        st.caption(wording.REGRESSION)
        measure = wording.ABOVE
    else:
        options = {label: label for label in MEASURES}
        measure = one_of(wording.MEASURE, options, key="knowledge measure", help=wording.MEASURE_HELP)
    left, right = halves()
    with left:
        values = MEASURES[measure](result)
        if values is None:
            st.info(wording.NO_CONTROLS)
        else:
            show_map(probing, result, measure, values, key="knowledge map")
    with right:
        _in_full(probing)
    with st.expander(wording.TABLE):
        rows = places_table(result)
        if not result.report.is_regression:
            rows.insert(2, "beats all", probing.beats)
        table("probed heads", rows, probing.facts)


def show_map(
    probing: Probing, result: TrialResult, measure: str, values: Float[np.ndarray, "layer head"], *, key: str
) -> None:
    report = result.report
    name = score_name(report.is_regression)
    title = name if report.is_regression else measure
    signed = bool(np.nanmin(values, initial=0) < 0)
    beats = None if report.is_regression else report.grid(probing.beats.astype(float)) == 1
    measured = {measure: MEASURES[measure](result) for measure in (wording.SELECTIVITY, wording.CODE)}
    picture = HeadMap(
        title=title,
        label=f"{title} of the heads of {probing.subjects[0].label}, {probing.task.name}",
        values=values,
        bound=round_bound(float(np.nanmax(np.abs(values), initial=0))),
        signed=signed,
        low_label=wording.WORSE if signed else "",
        high_label=wording.BETTER,
        marked=beats,
        mark="" if beats is None else wording.BEATS,
        details=[
            (name, report.grid(report.accuracy)),
            (wording.INTERVAL, _intervals(report)),
            *[(measure, values) for measure, values in measured.items() if values is not None],
        ],
    )
    show_head_map(
        picture,
        head_selection(
            key, probing.heads, (probing.subjects[0].files.fingerprint, probing.task.digest, measure, state.n_pushed())
        ),
        file=f"{measure} of heads",
        facts=probing.facts,
        paper=wording.JO_MYAENG,
    )


def _intervals(report: TaskReport) -> list[list[str]]:
    number = number_format(score_name(report.is_regression))
    ends = zip(report.grid(report.low), report.grid(report.high))
    return [[interval(*both, number) for both in zip(*of_layer)] for of_layer in ends]


def places_table(result: TrialResult) -> pd.DataFrame:
    """One row per head and per layer output; the head of a layer output is empty."""
    report = result.report
    rows = pd.DataFrame(
        {
            "layer": report.layer,
            "head": pd.array([None if head == LAYER else int(head) for head in report.head], dtype="Int64"),
            score_name(report.is_regression): report.accuracy,
            "low": report.low,
            "high": report.high,
            "validation": report.validation,
            wording.CHOSEN_STRENGTH: report.strength,
        }
    )
    for baseline, p_values in zip(report.baselines, report.p_values):
        if not report.is_regression:
            rows[f"p against {baseline.name}"] = p_values
    if result.selectivity is not None:
        rows["control"] = result.selectivity.control
        rows["selectivity"] = result.selectivity.selectivity
        rows["selectivity low"] = result.selectivity.low
        rows["selectivity high"] = result.selectivity.high
    if result.bits is not None:
        rows["code bits"] = result.bits
        rows["uniform bits"] = result.uniform_bits
    return rows


def layers(probing: Probing) -> None:
    st.markdown(wording.SORTED_SEE)
    report = probing.shown.report
    name = score_name(report.is_regression)
    title = name if report.is_regression else wording.ABOVE
    left, right = halves()
    with left:
        figure = sorted_heads(above_baselines(report), title, probing.heads)
        chart("heads sorted in layers", figure, probing.facts, wording.JO_MYAENG, selects=True)
    with right:
        figure = scores_by_layer(
            probing.scores[:MOST_VIOLINS],
            report.accuracy[~report.is_head],
            baseline_scores(report),
            name,
            probing.heads,
        )
        chart("scores by layer", figure, probing.facts, wording.JO_VIOLINS, selects=True)


def roles_that_know(probing: Probing) -> None:
    st.markdown(wording.ROLES_SEE)
    visit = frame.with_corpus(probing.visit)
    tested = None if visit is None else corpus(visit)
    if tested is None:
        return
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    roles = tuple(role for role in tested.tests.roles if role in coarse + fine)
    has_role = tested.tests.holds[[tested.tests.roles.index(role) for role in roles]]
    criterion = probing.visit.choice.criterion
    comparison = compare_by_role(above_baselines(probing.shown.report), has_role, roles, criterion.correction)
    facts = without_command(probing.facts)
    st.markdown(by_role.summary(comparison, criterion.alpha))
    by_role.figure("knowledge by role", comparison, facts)
    by_role.table("knowledge by role", comparison, facts)
