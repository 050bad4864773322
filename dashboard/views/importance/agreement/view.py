"""Cheaper measures compared with ablation: their correlations, one measure head by head, and within each layer."""

from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.command_lines import given_options
from attention_sieve.core.importance.agreement import NO_ORDER, Agreement
from attention_sieve.core.importance.analysis import AGREEMENT_COLUMNS, IMPORTANCE_ANALYSIS, agreement_table
from attention_sieve.core.importance.finding import ImportanceFinding
from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.settings import ImportanceSettings
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.importance.agreement import agreement_dots, layer_agreement
from attention_sieve.dashboard.views.asking import find, policy
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.agreement import wording
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle

PICKER_WIDTH: Final = 280


def cheaper_measures(importance: Importance) -> None:
    """Draw the tab."""
    st.markdown(wording.SEE)
    normalised = toggle(wording.NORMALISE, key="normalise", help=wording.NORMALISE_HELP)
    material, of_ablation = importance.material, importance.material.settings
    settings = ImportanceSettings(of_metric=of_ablation.of_metric, replace=of_ablation.replace, normalise=normalised)
    found = find(material.visit, IMPORTANCE_ANALYSIS, settings, material.inputs, policy())
    if found is None:
        return
    comparison = found.finding
    for name, reason in comparison.cheap.left_out:
        st.info(wording.left_out(name, reason))
    if not comparison.agreements:
        st.info(wording.NOTHING)
        return
    if all(np.isnan(agreement.spearman[0]) for agreement in comparison.agreements.values()):
        st.info(NO_ORDER)
        return
    options = given_options(settings, ImportanceSettings())
    by_command = importance.computed_by("importance", *options, "--agreement=agreement.parquet")
    facts = {**by_command, **IMPORTANCE_ANALYSIS.facts(comparison, settings)}
    n_heads = int((~np.isnan(comparison.values[ABLATION])).sum())
    st.markdown(wording.summary(list(comparison.agreements.values()), n_heads))
    agreement, as_ranks = _one_measure(comparison)
    left, right = halves()
    with left:
        chart("agreement with ablation", agreement_dots(list(comparison.agreements.values())), facts)
        chart(f"agreement by layer, {agreement.measure}", layer_agreement(agreement), facts)
    with right:
        _scatter(comparison, agreement, as_ranks, importance, facts)
        st.caption(f"{agreement.measure.capitalize()}: {wording.ABOUT[agreement.measure]}.")
        st.caption(wording.INTERVALS)
        if comparison.conserved is not None:
            st.caption(wording.conserved(comparison.conserved))
        with st.expander(wording.TABLE):
            rows = agreement_table(comparison)
            layers = rows["layer"].astype("string").fillna("all")
            table("correlations with ablation", rows.assign(layer=layers), facts, AGREEMENT_COLUMNS, "%.3f")


def _one_measure(comparison: ImportanceFinding) -> tuple[Agreement, bool]:
    """The chosen measure (by default the one that agrees best), and whether to draw ranks."""
    best = max(comparison.agreements.values(), key=lambda agreement: np.nan_to_num(agreement.spearman[0], nan=-np.inf))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = from_list(
            wording.MEASURE,
            {measure: measure for measure in comparison.agreements},
            key="cheap measure",
            start=best.measure,
            help=wording.MEASURE_HELP,
            width=PICKER_WIDTH,
        )
        as_ranks = one_of(
            wording.SCALE, {wording.RANKS: True, wording.VALUES: False}, key="measure axes", help=wording.SCALE_HELP
        )
    return comparison.agreements[name], as_ranks


def _scatter(
    comparison: ImportanceFinding, agreement: Agreement, as_ranks: bool, importance: Importance, facts: dict[str, str]
) -> None:
    """Plot a measure against ablation, one dot per head."""
    name = agreement.measure
    x, y = comparison.values[name], comparison.values[ABLATION]
    if as_ranks:
        x, y = _ranks(x), _ranks(y)
    scale = wording.RANK if as_ranks else ""
    words = ScatterTexts(
        title=f"{name.capitalize()} against {ABLATION}",
        x=f"{name}{scale}",
        y=f"{ABLATION}: {page_wording.without_head(page_wording.SCORE_NAMES[importance.ablation.score.name])}{scale}",
        reading=("dot: a head; right and up: more important",),
        description=f"Heads by {name} and by {ABLATION}. Spearman's correlation {agreement.spearman[0]:.2f}.",
    )
    chart(f"{name} and {ABLATION}", head_scatter(x, y, words, importance.heads), facts, selects=True)


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(values, nan_policy="omit").reshape(values.shape)
