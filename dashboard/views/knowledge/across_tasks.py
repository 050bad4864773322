"""What several tasks show: which of them the same heads know, and what the best heads gain together."""

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.knowledge.reconstruction import gain
from attention_sieve.core.knowledge.summary import Group, group_of, task_similarity
from attention_sieve.core.knowledge.trials.result import TrialResult
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.knowledge.estimates import TaskGain, gain_dots
from attention_sieve.dashboard.figures.knowledge.ranked import effect_of_number
from attention_sieve.dashboard.figures.knowledge.task_similarity import similarity_of_tasks
from attention_sieve.dashboard.figures.knowledge.words import score_name, written
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_baselines
from attention_sieve.dashboard.views.pickers import halves


def tasks_side_by_side(probing: Probing) -> None:
    if len(probing.known) < 2:
        st.info(wording.FEW_TASKS)
        return
    st.markdown(wording.SIMILAR_SEE)
    left, right = halves()
    with left:
        _similarity(probing)
    with right:
        _groups(probing)


def _similarity(probing: Probing) -> None:
    similarity = task_similarity(np.stack([above_baselines(result.report) for result in probing.known.values()]))
    varied = [index for index in range(len(similarity)) if not np.isnan(similarity[index, index])]
    if len(varied) < 2:
        st.info(wording.FEW_TASKS)
        return
    names = [list(probing.known)[index] for index in varied]
    of_varied = similarity[np.ix_(varied, varied)]
    chart("similarity of tasks", similarity_of_tasks(of_varied, names), probing.facts, wording.JO_MATRIX)
    rows = pd.DataFrame(of_varied, index=names, columns=names).rename_axis("task").reset_index()
    table_downloads("similarity of tasks", rows, probing.facts)


def _groups(probing: Probing) -> None:
    means = {group: _mean(probing, group) for group in ("syntactic", "semantic")}
    x, y = means["syntactic"], means["semantic"]
    if x is None or y is None:
        st.info(wording.NO_GROUPS)
        return
    is_known = ~np.isnan(x) & ~np.isnan(y)
    r = np.corrcoef(x[is_known], y[is_known])[0, 1] if is_known.sum() > 1 else np.nan
    words = ScatterTexts(
        title="Syntactic and semantic tasks",
        x=wording.SCATTER_X,
        y=wording.SCATTER_Y,
        reading=wording.SCATTER_READING,
        description="Each head by its mean on syntactic and on semantic tasks, above the best baseline. "
        f"Correlation {r:.2f}.",
    )
    figure = head_scatter(x, y, words, probing.heads, by_layer=True)
    chart("syntactic and semantic", figure, probing.facts, wording.JO_SCATTER, selects=True)


def _mean(probing: Probing, group: Group) -> Float[np.ndarray, "layer head"] | None:
    scores = [above_baselines(result.report) for task, result in probing.known.items() if group_of(task) == group]
    return np.mean(scores, axis=0) if scores else None


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
