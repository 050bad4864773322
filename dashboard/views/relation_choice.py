"""The best head of each relation as a table, and the relation that the reader looks at."""

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from core.parsing_heads import Direction, RelationAccuracy
from dashboard import parsing_wording as wording
from dashboard import state
from dashboard.downloads import table_downloads
from dashboard.figures.relation_bars import ARROWS
from dashboard.figures.relation_table import relation_table
from dashboard.state import Head
from dashboard.views.relation_results import marked, most_gain

RELATION: Final = "relation"
WAY: Final = "way"
TABLE: Final = "relation table"
WAYS: Final = {label: way for way, label in ARROWS.items()}
ON_HALVES: Final = ("held_out", "low", "high", "gain", "chosen", "control")
"""Columns that need texts that can be halved."""
FORMATS: Final = {
    **dict.fromkeys(("held_out", "low", "high", "best_on_all", "baseline", "control"), "percent"),
    **{"cases": "localized", "offset": "%+d", "gain": "%+.1f", "p": "%.2g"},
}


def best_heads(
    shown: Sequence[RelationAccuracy],
    control: Sequence[RelationAccuracy] | None,
    off: Sequence[Head],
    facts: Mapping[str, str],
) -> pd.DataFrame:
    """Clark's table; a row that is chosen chooses its relation, direction and head."""
    st.subheader(wording.TABLE)
    table = relation_table(shown, control)
    drawn = table.assign(
        name=[marked(*one.best[1:], off) for one in shown], way=table["way"].map(ARROWS), gain=100 * table["gain"]
    )
    n_without = int(table["held_out"].isna().sum())
    if n_without == len(table):
        st.markdown(wording.CHOOSE_ROW)
        drawn = drawn.drop(columns=list(ON_HALVES), errors="ignore")
    else:
        without = [wording.NOT_HELD_OUT] if n_without else []
        st.markdown(" ".join([wording.TABLE_NOTE, *without, wording.CHOOSE_ROW]))
    columns = {
        name: st.column_config.NumberColumn(label, help=about, format=FORMATS[name])
        if name in FORMATS
        else st.column_config.Column(label, help=about)
        for name, (label, about) in wording.COLUMNS.items()
        if name in drawn
    }
    st.dataframe(
        drawn,
        hide_index=True,
        column_config=columns,
        column_order=list(columns),
        key=TABLE,
        on_select=lambda: _choose_row(shown),
        selection_mode="single-row",
        placeholder="–",
    )
    table_downloads("relations", table, facts)
    st.caption(wording.TABLE_PAPER)
    return table


def _choose_row(shown: Sequence[RelationAccuracy]) -> None:
    rows = st.session_state[TABLE].selection.rows
    if rows and rows[0] < len(shown):
        st.session_state[RELATION] = shown[rows[0]].relation
        _take_best(shown)


def _take_best(shown: Sequence[RelationAccuracy]) -> None:
    """Look at the best head of the relation that was chosen."""
    one = next(one for one in shown if one.relation == st.session_state[RELATION])
    way, layer, head = one.best
    st.session_state[WAY] = ARROWS[way]
    state.push_heads([(layer, head)])


def picked(shown: Sequence[RelationAccuracy]) -> tuple[RelationAccuracy, Direction]:
    """Relation and direction that the reader looks at; at first those of the largest gain."""
    names = [one.relation for one in shown]
    usual = names.index(most_gain(shown).relation)
    if st.session_state.get(RELATION, names[usual]) not in names:
        st.session_state[RELATION] = names[usual]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            wording.RELATION,
            names,
            index=usual,
            key=RELATION,
            on_change=_take_best,
            args=(shown,),
            bind="query-params",
            persist_state="session",
            width=220,
        )
        one = shown[names.index(name)]
        way = st.segmented_control(
            wording.WAY,
            tuple(WAYS),
            default=ARROWS[one.best[0]],
            key=WAY,
            required=True,
            bind="query-params",
            persist_state="session",
        )
    return one, WAYS[str(way)]
