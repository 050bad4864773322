"""Whether a few heads together predict more than the best layer, and how many heads that takes."""

import pandas as pd
import streamlit as st

from attention_sieve.core.knowledge.reconstruction import gain
from attention_sieve.core.knowledge.trials.result import TrialResult
from attention_sieve.dashboard.figures.knowledge.gains import TaskGain, gain_dots
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
        gains = [
            TaskGain(
                task=name,
                n_heads=result.n_heads_of_layer,
                last=report.estimate(-1),
                best=report.estimate(report.best_layer),
                best_layer=int(report.layer[report.best_layer]),
                together=result.together.estimate(result.n_heads_of_layer),
            )
            for name, result in results.items()
            if result.together is not None and not (report := result.report).is_regression
        ]
        if gains:
            chart("heads together", gain_dots(gains), probing.facts, wording.JO_TABLE)
    with st.expander(wording.TOGETHER_TABLE):
        table("heads together", rows, probing.facts)


def _effect(probing: Probing) -> None:
    report, together = probing.shown.report, probing.shown.together
    if together is None:
        st.info(wording.NO_TOGETHER_HERE)
        return
    name, layer = score_name(report.is_regression), float(report.accuracy[report.best_layer])
    gained = gain(together, report, probing.shown.n_heads_of_layer)
    score = f"{name} {written(together.estimate(gained.n_heads).value, name)}"
    st.markdown(wording.gained(gained, score, written(layer, name)))
    chart("number of heads", effect_of_number(together, layer, name), probing.facts, wording.JO_N)


def gains_table(results: dict[str, TrialResult]) -> pd.DataFrame:
    rows = []
    for name, result in results.items():
        report, together = result.report, result.together
        if together is None:
            continue
        gained = gain(together, report, result.n_heads_of_layer)
        score = together.estimate(gained.n_heads)
        rows.append(
            {
                "task": name,
                **{baseline.name: baseline.score for baseline in report.baselines},
                "last layer": float(report.accuracy[-1]),
                "best layer": float(report.accuracy[report.best_layer]),
                "is layer": int(report.layer[report.best_layer]),
                "best head": float(report.accuracy[report.best_head]),
                "heads": gained.n_heads,
                "together": score.value,
                "low": score.low,
                "high": score.high,
                "gain in percent": gained.percent,
                "gain low": gained.low,
                "gain high": gained.high,
                "heads that are enough": together.enough,
            }
        )
    return pd.DataFrame(rows)
