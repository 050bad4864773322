"""Two checkpoints of one shape as a whole: differences by head, by layer, transitions between roles, and tables."""

import numpy as np
import streamlit as st

from core.comparison.tables import comparison_table, role_change_table, transition_table
from core.comparison.transitions import changes_per_layer, role_changes, transitions
from core.roles.roles import ROLES
from dashboard.downloads import table_downloads
from dashboard.figures.appearance import LOOKS
from dashboard.figures.compare.changes import roles_gained_and_lost
from dashboard.figures.compare.score_changes import score_change_scatter
from dashboard.figures.compare.shifts import divergence_by_layer, shift_by_layer
from dashboard.views import frame
from dashboard.views.charts import chart
from dashboard.views.compare import wording
from dashboard.views.compare.differences import differences
from dashboard.views.compare.flow import flow
from dashboard.views.compare.numbers import Focus, divergence_of_heads, paired, shift
from dashboard.views.pickers import some_of, toggle


def changes(focus: Focus) -> None:
    """One view at a time."""
    frame.tabs(
        "compare details",
        {
            wording.DIFFERENCES: lambda: differences(focus),
            "Per layer": lambda: _per_layer(focus),
            "Transitions": lambda: _transitions(focus),
            "All scores": lambda: _scatter(focus),
            "Table": lambda: _table(focus),
        },
    )


def _per_layer(focus: Focus) -> None:
    tests_a, tests_b = focus.pair.tests
    places = [ROLES.index(role) for role in focus.coarse]
    gained, lost = changes_per_layer(tests_a.holds[places], tests_b.holds[places])
    criterion, scale = focus.chosen.criterion, focus.chosen.scale
    figure = roles_gained_and_lost(gained, lost, focus.coarse, tests_a.mean.shape[2])
    chart("roles gained and lost", figure, focus.facts)
    means = np.stack([tests_a.mean, tests_b.mean])
    roles = [role for role in (*focus.coarse, *focus.fine) if np.isfinite(means[:, ROLES.index(role)]).any()]
    usual = "delimiter:sep" if "delimiter:sep" in roles else roles[0]
    role = st.selectbox(
        wording.ROLE_SHIFT,
        roles,
        index=roles.index(usual),
        format_func=lambda name: LOOKS[name].label,
        key="shift role",
        persist_state="session",
    )
    moved = shift(focus.pair, focus.chosen, role or usual)
    chart("score change by layer", shift_by_layer([moved], criterion.alpha, scale), focus.facts)
    divergence = focus.pair.scored.divergence
    if divergence is not None and divergence_of_heads(focus.pair) is not None:
        chart("divergence by layer", divergence_by_layer(divergence), focus.facts)


def _transitions(focus: Focus) -> None:
    holds_a, holds_b = (tests.holds for tests in focus.pair.tests)
    st.markdown(wording.TRANSITIONS)
    between = transitions(holds_a, holds_b, ROLES, focus.coarse)
    flow(focus, between)
    table = transition_table(between)
    st.dataframe(table, hide_index=True, column_config={"which": st.column_config.TextColumn(width="large")})
    table_downloads("transitions", table, focus.facts)
    st.markdown(wording.MCNEMAR)
    shown = {*focus.coarse, *focus.fine}
    counts = role_change_table([one for one in role_changes(holds_a, holds_b, ROLES) if one.role in shown])
    st.dataframe(counts, hide_index=True, column_config={"p": st.column_config.NumberColumn(format="%.3g")})
    table_downloads("role changes", counts, focus.facts)


def _scatter(focus: Focus) -> None:
    scale = focus.chosen.scale
    chart("all scores", score_change_scatter(paired(focus.pair, focus.chosen), focus.coarse, scale), focus.facts)


def _table(focus: Focus) -> None:
    tests = paired(focus.pair, focus.chosen)
    table = comparison_table(tests, *(of_one.holds for of_one in focus.pair.tests))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = some_of("Roles", ROLES, key="compare roles", every="all roles")
        only = toggle("Only significant differences", key="compare significant")
    wanted = table["role"].isin(shown)
    table = table[wanted & tests.differs.ravel() if only else wanted]
    small = {name: st.column_config.NumberColumn(format="%.3g") for name in ("p", "p_adjusted", "wilcoxon_p")}
    score = {
        name: st.column_config.NumberColumn(format="%.3f") for name in ("mean_a", "mean_b", "difference", "t", "effect")
    }
    st.dataframe(table, hide_index=True, column_config={**small, **score})
    table_downloads("differences", table, focus.facts)
