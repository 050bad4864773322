"""Tasks side by side: which tasks the same heads know, and syntactic compared with semantic tasks."""

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.knowledge.summary import Group, group_of, task_similarity
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.knowledge.task_similarity import similarity_of_tasks
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_majority
from attention_sieve.dashboard.views.layout import halves


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
    similarity = task_similarity(np.stack([above_majority(result.report) for result in probing.known.values()]))
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
        description="Each head by its mean on syntactic and on semantic tasks, above the majority class. "
        f"Correlation {r:.2f}.",
    )
    figure = head_scatter(x, y, words, probing.heads, by_layer=True)
    chart("syntactic and semantic", figure, probing.facts, wording.JO_SCATTER, selects=True)


def _mean(probing: Probing, group: Group) -> Float[np.ndarray, "layer head"] | None:
    scores = [above_majority(result.report) for task, result in probing.known.items() if group_of(task) == group]
    return np.mean(scores, axis=0) if scores else None
