"""The best head of each relation as a table, and the picker of relation and direction."""

import math
from collections.abc import Sequence
from typing import Final

import streamlit as st

from attention_sieve.core.relations.accuracy import ALL, Direction, RelationAccuracy
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.relations.directions import DIRECTION_NAMES
from attention_sieve.dashboard.figures.relations.table import relation_table
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.parsers.relations import wording
from attention_sieve.dashboard.views.parsers.relations.results import Focus, largest_gain, marked

RELATION: Final = "relation"
WAY: Final = "way"
TABLE: Final = "relation table"
DIRECTIONS: Final = {name: direction for direction, name in DIRECTION_NAMES.items()}
ON_HALVES: Final = ("held_out", "low", "high", "design_effect", "gain", "chosen", "control")
"""Columns that need texts that can be split into halves."""
PERCENT: Final = "%.1f%%"
FORMATS: Final = {
    **dict.fromkeys(("held_out", "low", "high", "best_on_all", "baseline", "control"), PERCENT),
    **{"cases": "localized", "offset": "%+d", "gain": "%+.1f", "p": "%.2g", "design_effect": "%.1f"},
    "times_others": "%.1f",
}


def best_heads(focus: Focus, random: Sequence[RelationAccuracy] | None) -> None:
    """Clark's table; choosing a row chooses its relation, direction and head."""
    accuracies, unit, off = focus.accuracies, focus.results.unit, focus.visit.chosen.off
    table = relation_table(accuracies, random)
    shares = [name for name, format in FORMATS.items() if format == PERCENT and name in table]
    displayed = table.assign(
        **{name: 100 * table[name] for name in shares},
        name=[marked(*relation.best[1:], off) for relation in accuracies],
        way=table["way"].map(DIRECTION_NAMES),
        gain=100 * table["gain"],
    )
    if unit == "text":
        displayed = displayed.drop(columns="design_effect")
    n_without = int(table["held_out"].isna().sum())
    comparison = _against_baseline(accuracies, focus.visit.chosen.criterion.alpha)
    if n_without == len(table):
        st.markdown(f"{comparison}{wording.CHOOSE_ROW}")
        displayed = displayed.drop(columns=list(ON_HALVES), errors="ignore")
    else:
        not_held_out = [wording.not_held_out(unit)] if n_without else []
        st.markdown(comparison + " ".join([wording.table_note(unit), *not_held_out, wording.CHOOSE_ROW]))
    columns = {
        name: st.column_config.NumberColumn(label, help=help_text, format=FORMATS[name])
        if name in FORMATS
        else st.column_config.Column(label, help=help_text)
        for name, (label, help_text) in wording.COLUMNS.items()
        if name in displayed
    }
    st.dataframe(
        displayed,
        hide_index=True,
        column_config=columns,
        # There is no room for "way" next to the held-out columns; a chosen row shows it, and the files have it.
        column_order=[name for name in columns if name != "way" or "chosen" not in columns],
        key=TABLE,
        on_select=lambda: _choose_row(accuracies),
        selection_mode="single-row",
        placeholder="–",
    )
    table_downloads("relations", table, focus.facts, paper=wording.TABLE_PAPER)


def _against_baseline(accuracies: Sequence[RelationAccuracy], alpha: float) -> str:
    """In how many relations the best head beats the baseline; empty if there is no single relation but only ALL."""
    relations = [relation for relation in accuracies if relation.relation != ALL]
    if not relations:
        return ""
    held_out = [relation for relation in relations if relation.best_of_halves]
    n_above = sum(relation.best_accuracy > relation.baseline.share for relation in held_out)
    n_significant = sum(relation.p_value < alpha for relation in relations)
    sentence = wording.against_baseline(n_above, len(held_out), n_significant, len(relations), alpha)
    n_untested = sum(math.isnan(relation.p_value) for relation in relations)
    return f"{sentence} {wording.not_tested(n_untested)} " if n_untested else f"{sentence} "


def _choose_row(accuracies: Sequence[RelationAccuracy]) -> None:
    rows = st.session_state[TABLE].selection.rows
    if rows and rows[0] < len(accuracies):
        st.session_state[RELATION] = accuracies[rows[0]].relation
        _take_best(accuracies)


def _take_best(accuracies: Sequence[RelationAccuracy]) -> None:
    """Choose the best head and direction of the relation that was picked."""
    name = st.session_state[RELATION]
    direction, layer, head = next(relation.best for relation in accuracies if relation.relation == name)
    st.session_state[WAY] = DIRECTION_NAMES[direction]
    state.push_heads([(layer, head)])


def picked(accuracies: Sequence[RelationAccuracy]) -> tuple[RelationAccuracy, Direction]:
    """Relation and direction that the reader picked; by default those of the largest gain."""
    by_name = {relation.relation: relation for relation in accuracies}
    start = largest_gain(accuracies).relation
    if st.session_state.get(RELATION, start) not in by_name:
        st.session_state[RELATION] = start
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            wording.RELATION,
            list(by_name),
            index=list(by_name).index(start),
            key=RELATION,
            on_change=_take_best,
            args=(accuracies,),
            bind="query-params",
            persist_state="session",
            width=220,
            help=wording.RELATION_HELP,
        )
        relation = by_name[name]
        direction = st.segmented_control(
            wording.DIRECTION,
            tuple(DIRECTIONS),
            default=DIRECTION_NAMES[relation.best[0]],
            key=WAY,
            required=True,
            help=wording.DIRECTION_HELP,
            bind="query-params",
            persist_state="session",
        )
    return relation, DIRECTIONS[str(direction)]
