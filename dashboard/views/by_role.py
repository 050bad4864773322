"""Heads with each role against heads without it, by some number: in words, as a figure and as a table."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.statistics.by_role import SHUFFLES, ByRole
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.role_superiority import NOTHING, role_superiority
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart

TABLE: Final = "All roles in a table"
TESTS: Final = (
    f"p-values come from {SHUFFLES:,} shuffles of each role over the heads (within layers: over the heads of each "
    "layer), two-sided, corrected over the roles. The interval treats heads as independent draws; heads of one "
    "checkpoint were trained together, so the true value may lie further away."
)
COLUMNS: Final = {
    "n_holding": "heads with it",
    "n_others": "heads without it",
    "median_holding": "median with it",
    "median_others": "median without it",
    "superiority": "pairs ahead",
    "low": "95% from",
    "high": "to",
    "p_adjusted": "p, corrected",
    "in_layers": "pairs ahead within layers",
    "p_in_layers_adjusted": "p within layers, corrected",
}
"""Column names of the table."""


def figure(name: str, comparison: ByRole, facts: dict[str, str]) -> None:
    if np.isnan(comparison.superiority).all():
        st.info(NOTHING)
    else:
        chart(name, role_superiority(comparison), facts)


def table(name: str, comparison: ByRole, facts: dict[str, str]) -> None:
    """How the numbers are tested, and all of them."""
    st.caption(TESTS)
    with st.expander(TABLE):
        rows = pd.DataFrame(
            {
                "role": [LOOKS[role].label for role in comparison.roles],
                **{column: getattr(comparison, column) for column in COLUMNS},
            }
        )
        numbers = {column: st.column_config.NumberColumn(label, format="%.3g") for column, label in COLUMNS.items()}
        st.dataframe(rows, hide_index=True, column_config=numbers)
        table_downloads(name, rows, facts)


def summary(comparison: ByRole, alpha: float) -> str:
    """For each role, how often its heads are ahead of others, over all layers and within one."""
    sentences = []
    for index, role in enumerate(comparison.roles):
        n_with, n_without = int(comparison.n_holding[index]), int(comparison.n_others[index])
        holders = f"**{LOOKS[role].label}** ({counted(n_with, 'head')} of {n_with + n_without})"
        if not n_with or not n_without:
            sentences.append(f"{holders}: nothing to compare.")
            continue
        share = comparison.superiority[index]
        differs = comparison.p_adjusted[index] < alpha
        in_layers = comparison.p_in_layers_adjusted[index] < alpha
        result = (
            f"ahead in {percent(share, 0)} of pairs with a head without it, {p_value(comparison.p_adjusted[index])}"
        )
        sentences.append(f"{holders}: {result}{_remains(differs, in_layers, comparison.in_layers[index])}.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _remains(differs: bool, in_layers: bool, share: float) -> str:
    if share != share:
        return "; no layer has heads of both sides"
    within = percent(share, 0)
    if differs and in_layers:
        return f"; among the heads of one layer it is {within}, and remains significant"
    if differs:
        return f"; among the heads of one layer it is {within}, and no longer significant"
    return f"; among the heads of one layer it is {within}, {'and significant' if in_layers else 'not significant'}"
