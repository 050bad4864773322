"""The best head of each relation as a table, the picker of relation and direction, and what of the finding is
selected."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool
from streamlit.elements.lib.column_types import ColumnConfig

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.relations.analysis import relation_table
from attention_sieve.core.relations.cases import ALL, NO_RELATION, RelationAccuracy
from attention_sieve.core.relations.finding import RelationFinding
from attention_sieve.core.relations.settings import Direction
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES, with_short_directions
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.pickers import as_help


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationFocus:
    visit: Visit
    found: CorpusFinding[RelationFinding]
    relation: RelationAccuracy
    """The chosen relation."""
    direction: Direction
    heads: list[Head]
    facts: dict[str, str]

    @property
    def finding(self) -> RelationFinding:
        """Over the texts of the corpus that were not left out."""
        return self.found.finding

    @property
    def by_row(self) -> RelationAccuracy:
        """The chosen relation, with the second direction read from the head's own row."""
        return next(relation for relation in self.finding.by_row if relation.relation == self.relation.relation)

    @property
    def reset(self) -> Hashable:
        """Changes whenever the components have to take over the chosen heads."""
        return (self.visit.engine.files.fingerprint, state.n_pushed())


def is_case(trees: Dependencies, relation: str, every_word: bool = False) -> Bool[np.ndarray, " word"]:
    """Words that have a relation to a head; ALL is each but punct and root, or every word, roots too."""
    if relation == ALL and every_word:
        return np.ones(len(trees.heads), bool)
    has_relation = [name not in NO_RELATION if relation == ALL else name == relation for name in trees.relations]
    return np.array(has_relation, bool) & (trees.heads >= 0)


def marked(layer: int, head: int, off: Sequence[Head]) -> str:
    """A head's name, marked where it is switched off."""
    return f"{head_name(layer, head)} (off)" if (layer, head) in off else head_name(layer, head)


RELATION: Final = "relation"
WAY: Final = "way"
TABLE: Final = "relation table"
DIRECTIONS: Final = {name: direction for direction, name in DIRECTION_NAMES.items()}
HELD_OUT: Final = ("held_out", "held_out_low", "held_out_high")
ON_HALVES: Final = (*HELD_OUT, "held_out_design_effect", "held_out_heads", "gain", "random")
"""Columns that need texts that can be split into halves."""
OF_PAIRS: Final = ("nearest", "random_choice")
"""Columns that are shown of marked pairs only: of a tree they know half of what is asked."""
PERCENT: Final = "%.1f%%"
SHARES: Final = (*HELD_OUT, "accuracy", "baseline", *OF_PAIRS, "random")
FORMATS: Final = dict.fromkeys(SHARES, PERCENT) | {
    "cases": "localized",
    "offset": "%+d",
    "gain": "%+.1f",
    "p": "%.2g",
    "held_out_design_effect": "%.1f",
    "times_others": "%.1f",
}


def best_rows(finding: RelationFinding, random: RelationFinding | None) -> pd.DataFrame:
    """The row of each relation's best head; with random weights also their held-out accuracy, as `random`."""
    table = relation_table(finding)
    best = table[table["best"]].reset_index(drop=True)
    if random is None:
        return best
    held_out = {accuracy.relation: accuracy.best_accuracy for accuracy in random.accuracies}
    return best.assign(random=best["relation"].map(held_out))


def best_heads(focus: RelationFocus, table: pd.DataFrame) -> None:
    """Clark's table, of `best_rows`; choosing a row chooses its relation, direction and head."""
    accuracies, unit, off = focus.finding.accuracies, focus.finding.unit, focus.visit.choice.off
    on_halves = table["held_out"].notna()
    displayed = table.assign(
        **{name: 100 * table[name] for name in SHARES if name in table},
        name=[marked(*relation.best[1:], off) for relation in accuracies],
        direction=table["direction"].map(DIRECTION_NAMES),
        held_out_heads=table["held_out_heads"].map(with_short_directions),
        gain=100 * (table["held_out"] - table["baseline"]),
        times_others=table["held_out_times_others"].where(on_halves, table["times_others"]),
        from_everywhere=table["held_out_from_everywhere"].where(on_halves, table["from_everywhere"]),
    )[[name for name in wording.LABELS if name != "random" or name in table]]
    if not focus.finding.n_paired:
        displayed = displayed.drop(columns=list(OF_PAIRS))
    comparison = _against_baseline(accuracies, focus.visit.choice.criterion.alpha)
    if not on_halves.any():
        st.markdown(f"{comparison}{wording.CHOOSE_ROW}")
        displayed = displayed.drop(columns=list(ON_HALVES), errors="ignore")
    else:
        not_held_out = [] if on_halves.all() else [wording.not_held_out(unit)]
        st.markdown(comparison + " ".join([wording.table_note(unit), *not_held_out, wording.CHOOSE_ROW]))
    st.dataframe(
        displayed,
        hide_index=True,
        column_config={name: _column(name) for name in displayed},
        # There is no room for the direction next to the held-out columns; a chosen row shows it, and the files have it.
        column_order=[name for name in displayed if name != "direction" or "held_out_heads" not in displayed],
        key=TABLE,
        on_select=lambda: _choose_row(accuracies),
        selection_mode="single-row",
        placeholder="–",
    )
    facts = {name: fact for name, fact in focus.facts.items() if name not in table}  # the direction of the scores
    table_downloads("relations", table, facts, paper=wording.TABLE_PAPER)


def _column(name: str) -> ColumnConfig:
    label, help_text = wording.LABELS[name], as_help(wording.HELP[name])
    if name in FORMATS:
        return st.column_config.NumberColumn(label, help=help_text, format=FORMATS[name])
    return st.column_config.Column(label, help=help_text)


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
    name = st.session_state[RELATION]
    direction, layer, head = next(relation.best for relation in accuracies if relation.relation == name)
    st.session_state[WAY] = DIRECTION_NAMES[direction]
    state.push_heads([(layer, head)])


def picked(finding: RelationFinding) -> tuple[RelationAccuracy, Direction]:
    """Relation and direction that the reader picked; by default those of the largest gain."""
    accuracies = finding.accuracies
    by_name = {relation.relation: relation for relation in accuracies}
    start = finding.largest_gain.relation
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
