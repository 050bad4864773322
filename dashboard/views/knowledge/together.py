"""Whether a few heads together predict more than the best layer, and how many heads that takes."""

import pandas as pd
import streamlit as st

from attention_sieve.core.knowledge.report import TaskReport
from attention_sieve.core.knowledge.trials.result import TrialResult
from attention_sieve.dashboard.figures.knowledge.gains import Estimate, TaskGain, gain_dots
from attention_sieve.dashboard.figures.knowledge.number_of_heads import effect_of_number
from attention_sieve.dashboard.figures.knowledge.words import score_name, written
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing
from attention_sieve.dashboard.views.layout import halves


def heads_together(probing: Probing) -> None:
    results = {task: result for task, result in probing.known.items() if result.together is not None}
    if not results:
        st.info(wording.NOT_TOGETHER)
        return
    rows = gains_table(results)
    st.markdown(wording.gains_counted(int((rows["gain low"] > 0).sum()), int((rows["gain high"] < 0).sum()), len(rows)))
    left, right = halves()
    with left:
        _effect(probing)
    with right:
        gains = [_gain(name, result) for name, result in results.items() if not result.report.is_regression]
        if gains:
            chart("heads together", gain_dots(gains), probing.facts, wording.JO_TABLE)
    with st.expander(wording.TOGETHER_TABLE):
        table("heads together", rows, probing.facts)


def _effect(probing: Probing) -> None:
    result = probing.shown
    if result.together is None:
        st.info(wording.NO_TOGETHER_HERE)
        return
    report, name = result.report, score_name(result.report.is_regression)
    gain = result.gain(result.n_heads_of_layer)
    layer = float(report.accuracy[report.best_layer])
    if gain is not None:
        score = f"{name} {written(result.accuracy_of(gain.n_heads)[0], name)}"
        st.markdown(wording.gained(gain, score, written(layer, name)))
    chart("number of heads", effect_of_number(result.together, layer, name), probing.facts, wording.JO_N)


def _gain(name: str, result: TrialResult) -> TaskGain:
    report = result.report
    count = result.n_heads_of_layer
    value, low, high = result.accuracy_of(count)
    return TaskGain(
        task=name,
        n_heads=count,
        last=estimate(report, len(report.layer) - 1),
        best=estimate(report, report.best_layer),
        best_layer=int(report.layer[report.best_layer]),
        together=Estimate(value=value, low=low, high=high),
    )


def estimate(report: TaskReport, row: int) -> Estimate:
    return Estimate(value=float(report.accuracy[row]), low=float(report.low[row]), high=float(report.high[row]))


def gains_table(results: dict[str, TrialResult]) -> pd.DataFrame:
    rows = []
    for name, result in results.items():
        report, count = result.report, result.n_heads_of_layer
        gain, together = result.gain(count), result.together
        if gain is None or together is None:
            continue
        value, low, high = result.accuracy_of(count)
        rows.append(
            {
                "task": name,
                **{baseline.name: baseline.score for baseline in report.baselines},
                "last layer": float(report.accuracy[-1]),
                "best layer": float(report.accuracy[report.best_layer]),
                "is layer": int(report.layer[report.best_layer]),
                "best head": float(report.accuracy[report.best_head]),
                "heads": count,
                "together": value,
                "low": low,
                "high": high,
                "gain in percent": gain.percent,
                "gain low": gain.low,
                "gain high": gain.high,
                "heads that are enough": together.enough,
            }
        )
    return pd.DataFrame(rows)
