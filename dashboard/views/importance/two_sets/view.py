"""Effect of switching off each head on two sets of texts: one dot per head, and how well the sets agree."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.cache.answers import Answers
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import damage
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.two_sets import TwoSets, two_sets
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.heads import head_rows
from attention_sieve.dashboard.figures.names import drawable
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.material import Material, ablated
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
        st.caption(wording.shared(sets.n_shared, len(importance.material.visit.texts)))
    outcomes = [ablated(material) for material in (sets.first, sets.second)]
    if outcomes[0] is None or outcomes[1] is None:
        return
    ask_about_long_texts(outcomes[1].too_long if not importance.ablated.too_long else ())
    comparison = _comparison(sets, outcomes[0], outcomes[1])
    n_texts = (len(outcomes[0].results), len(outcomes[1].results))
    st.markdown(wording.summary(comparison, int((~np.isnan(comparison.changes[0])).sum()), n_texts))
    scores = _scores(sets, outcomes[0], outcomes[1])
    _draw(importance, sets, comparison, scores, n_texts)


def _comparison(sets: Sets, first: Answers[TextOutcomes], second: Answers[TextOutcomes]) -> TwoSets:
    key = (sets.first.key, first.positions, sets.second.key, second.positions)

    def computed() -> TwoSets:
        both: list[tuple[Material, Answers[TextOutcomes]]] = [(sets.first, first), (sets.second, second)]
        documents = [material.documents(answers.positions) for material, answers in both]
        measures = [damage(answers.results, material.score(answers.positions)) for material, answers in both]
        draws = [Draws(of_set, seed=seed) for seed, of_set in enumerate(documents)]
        return two_sets(measures, draws, documents)

    return memory().get_or_put("two sets", key, computed)


def _scores(sets: Sets, first: Answers[TextOutcomes], second: Answers[TextOutcomes]) -> tuple[float, float]:
    """Scores of both sets with all heads on."""
    full = [
        material.score(answers.positions).of(np.stack([outcome.full for outcome in answers.results]))
        for material, answers in ((sets.first, first), (sets.second, second))
    ]
    return float(full[0]), float(full[1])


def _draw(
    importance: Importance, sets: Sets, comparison: TwoSets, full: tuple[float, float], n_texts: tuple[int, int]
) -> None:
    """The scores without each head on both sets, and with all heads on."""
    sign, name = importance.score.sign, page_wording.SCORE_NAMES[importance.score.name]
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
    chart("heads on two sets of texts", figure, facts, wording.MICHEL_2, selects=True)
    with st.expander(wording.TABLE):
        rows = head_rows(*x.shape).assign(first=x.ravel(), second=y.ravel())
        rows = pd.DataFrame(rows.assign(first_change=(x - full[0]).ravel(), second_change=(y - full[1]).ravel()))
        numbers = {
            column: st.column_config.NumberColumn(format="%.4g")
            for column in ("first", "second", "first_change", "second_change")
        }
        st.dataframe(rows, hide_index=True, column_config=numbers)
        table_downloads("heads on two sets of texts", rows, facts)
