"""Effect of switching off each head on two sets of texts: one dot per head, and how well the sets agree."""

from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.finding import AblationFinding
from attention_sieve.core.importance.two_sets import TwoSets, two_sets
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.figure import counted, drawable
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.heads import head_rows
from attention_sieve.dashboard.files.commands import THEN
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.importance.two_sets import wording
from attention_sieve.dashboard.views.importance.two_sets.second import Sets, second_set

NAME_LENGTH: Final = 40


def two_sets_of_texts(importance: Importance) -> None:
    """Draw the tab."""
    st.markdown(wording.SEE)
    sets = second_set(importance.material)
    if sets is None:
        return
    if sets.n_shared:
        st.caption(wording.shared(sets.n_shared, len(importance.material.inputs)))
    first, second = sets.first.ablated, sets.second.ablated
    if first is None or second is None:
        return
    ask_about_long_texts(second.too_long if not importance.found.too_long else ())
    both = (first.finding, second.finding)
    key = (sets.first.key, first.positions, sets.second.key, second.positions)
    comparison = memory().get_or_put("two sets", key, lambda: _compared(both))
    n_texts = (len(first.positions), len(second.positions))
    st.markdown(wording.summary(comparison, int((~np.isnan(comparison.changes[0])).sum()), n_texts))
    _draw(importance, sets, comparison, (both[0].effects.full, both[1].effects.full), n_texts)


def _compared(both: tuple[AblationFinding, AblationFinding]) -> TwoSets:
    documents = [finding.documents for finding in both]
    draws = [Draws(of_set, seed=seed) for seed, of_set in enumerate(documents)]
    return two_sets([finding.measure for finding in both], draws, documents)


def _draw(
    importance: Importance, sets: Sets, comparison: TwoSets, full: tuple[float, float], n_texts: tuple[int, int]
) -> None:
    """The scores without each head on both sets, and with all heads on."""
    sign, name = importance.ablation.score.sign, page_wording.SCORE_NAMES[importance.ablation.score.name]
    x, y = (score + sign * change for score, change in zip(full, comparison.changes))
    second_name = drawable(sets.second_name, NAME_LENGTH)
    words = ScatterTexts(
        title=f"{name[:1].upper()}{name[1:]} without each head",
        x=f"{wording.FIRST_SET} ({counted(n_texts[0], 'text')})",
        y=f"{second_name} ({counted(n_texts[1], 'text')})",
        reading=("dot: a head switched off; star: all heads on",),
    )
    pearson = comparison.pearson.value
    correlation = "" if np.isnan(pearson) else f" Pearson's correlation {pearson:.2f}."
    description = f"Heads by {name} without them, on the texts of this page and on {second_name}.{correlation}"
    figure = head_scatter(x, y, words, description, importance.heads, (*full, wording.ALL_ON))
    facts = {**importance.facts, "second set": sets.second_name, "second set texts": str(n_texts[1])}
    facts["corpus texts"] = str(n_texts[0])
    if sets.first.table is None:  # labels of either set are a part of a table, or of another one
        lines = (
            of_set.line("ablate", *of_set.options, texts=f"{name}.jsonl", output=f"{name}.parquet")
            for name, of_set in (("first", sets.first), ("second", sets.second))
        )
        facts["command"] = THEN.join(lines)
    chart("heads on two sets of texts", figure, facts, wording.MICHEL_2, selects=True)
    with st.expander(wording.TABLE):
        rows = head_rows(*x.shape).assign(first=x.ravel(), second=y.ravel())
        rows = rows.assign(first_change=(x - full[0]).ravel(), second_change=(y - full[1]).ravel())
        table("heads on two sets of texts", rows, facts)
