"""What the page Roles draws of tests, whether they are of texts or of a results folder."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.roles.layers import heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.pickers import one_of, some_of, toggle
from attention_sieve.dashboard.views.role_grid.grid import number_columns
from attention_sieve.dashboard.views.roles import wording

EXPLAINED: Final = {
    "stability": st.column_config.NumberColumn(format="percent", help=wording.STABILITY),
    "rests_on_first": st.column_config.CheckboxColumn(shared_wording.RESTS_ON_FIRST, help=wording.RESTS_HELP),
}
"""Columns that only tables of texts have."""


def per_layer(tests: HeadTests, coarse: tuple[str, ...], facts: Mapping[str, str]) -> None:
    n_present = (~np.isnan(tests.mean)).any(axis=0).sum(axis=1)
    n_holding = tests.holds.sum(axis=2)
    majority_layers = {
        role: np.flatnonzero(2 * n_holding[tests.roles.index(role)] > n_present).tolist() for role in coarse
    }
    st.markdown(wording.most_of_layers({role: layers for role, layers in majority_layers.items() if layers}))
    chart("roles per layer", heads_per_layer(tests, coarse), facts)


def p_values(tests: HeadTests, coarse: tuple[str, ...], scale: Scale, facts: Mapping[str, str]) -> None:
    figures = {"heads in order": p_value_scatter, "mean score": p_value_against_score}
    figure = one_of("Across", figures, key="p across")
    chart("p-values", figure(tests, coarse, scale), facts)


def table(rows: pd.DataFrame, facts: Mapping[str, str], card: Callable[[Mapping[str, str]], str] | None = None) -> None:
    """Draw a table of tests, of which the reader may choose rows; `card` is as of `table_downloads`."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles, numbers = (list(map(str, rows[name].unique())) for name in ("role", "layer"))
        chosen_roles = some_of("Roles", titles, key="table roles", every="all roles")
        layers = some_of("Layers", numbers, key="table layers", every="all layers")
        only_held = toggle("Only roles that are held", key="table held")
    is_selected = rows["role"].isin(chosen_roles) & rows["layer"].astype(str).isin(layers)
    rows = rows[is_selected & (rows["holds"] | (not only_held))]
    st.dataframe(rows, hide_index=True, column_config={**number_columns(), **EXPLAINED})
    table_downloads("roles", rows, facts, card=card)
