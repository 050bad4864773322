"""The roles of important heads: the map with role letters, and heads with each role compared to heads without it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import SHUFFLES, ByRole, compare_by_role
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.role_superiority import NOTHING, role_superiority
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import THEN
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.corpus import Corpus, corpus
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.ablation import damage_map
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import halves

LABELS = {role: look.label for role, look in LOOKS.items()}
TAB: Final = "Roles of important heads"
SEE: Final = (
    "The letters in a cell are the roles that its head holds over the corpus; the colour says how much the head "
    "matters. Do heads with a role matter more than heads without it?"
)
OTHER_TEXTS: Final = "The roles are those over the corpus of the sidebar; importance is measured on the labelled texts."
ROLES: Final = "roles"
NONE: Final = "none"
VOITA: Final = "Compare Figure 1 of Voita et al. (2019), where colours are functions and the order is importance."
TABLE: Final = "All numbers in a table"
TESTS: Final = (
    f"p-values come from {SHUFFLES:,} shuffles of each role over the heads (within layers: over the heads of each "
    "layer), two-sided, corrected over the roles. The interval treats heads as independent draws; heads of one "
    "checkpoint were trained together, so the true value may lie further away."
)
COLUMNS: Final = {
    "n_holding": "heads with it",
    "n_others": "heads without it",
    "median_holding": "median importance with it",
    "median_others": "median without it",
    "superiority": "pairs ahead",
    "low": "95% from",
    "high": "to",
    "p_adjusted": "p, corrected",
    "in_layers": "pairs ahead within layers",
    "p_in_layers_adjusted": "p within layers, corrected",
}
"""Column names of the table."""


def roles_of_important_heads(importance: Importance) -> None:
    st.markdown(SEE)
    visit = importance.material.visit
    if importance.material.metric.metric == "labels":
        st.caption(OTHER_TEXTS)
        with_texts = frame.with_corpus(replace(visit, texts=()))
        if with_texts is None:
            return
        visit = with_texts
    tested = corpus(visit)
    if tested is None:
        return
    coarse = shown_roles(tested.tests.mean, tested.tests.roles)[0]
    has_role = tested.tests.holds[[tested.tests.roles.index(role) for role in coarse]]
    choice = importance.material.visit.choice
    correction: Correction = choice.criterion.correction
    comparison = compare_by_role(importance.ablation.damage, has_role, coarse, correction)
    facts = {**importance.facts, "roles": "by evidence" if tested.bets is not None else "by t-test"}
    st.markdown(summary(comparison, LABELS, choice.criterion.alpha))
    left, right = halves()
    with left:
        lines = (
            importance.material.line("ablate", *importance.material.options),
            corpora.facts(visit, tested)["command"],
        )
        _map(importance, tested, coarse, has_role, facts | {"command": THEN.join(lines)})
    with right:
        if np.isnan(comparison.superiority).all():
            st.info(NOTHING)
        else:
            chart("importance by role", role_superiority(comparison, LABELS), facts)
    st.caption(TESTS)
    _table(comparison, facts)


def _map(
    importance: Importance, tested: Corpus, coarse: tuple[str, ...], has_role: np.ndarray, facts: dict[str, str]
) -> None:
    name = page_wording.SCORE_NAMES[importance.ablation.score.name]
    n_layers, n_heads = importance.ablation.damage.shape
    head_roles = [
        [[role for role, holds in zip(coarse, has_role[:, layer, head]) if holds] for head in range(n_heads)]
        for layer in range(n_layers)
    ]
    picture = replace(
        damage_map(importance, ", with their roles"),
        cells=[["".join(LOOKS[role].letter for role in roles) for roles in row] for row in head_roles],
        details=[
            (
                ROLES,
                [[", ".join(LABELS[role] for role in roles) or NONE for roles in row] for row in head_roles],
            ),
            (page_wording.without(name), importance.ablation.effects.without),
        ],
    )
    show_head_map(
        picture,
        head_selection(
            "importance and roles map",
            importance.heads,
            (*importance.material.key, tested.tests.settings, state.n_pushed()),
        ),
        file="importance and roles of heads",
        facts=facts,
        paper=VOITA,
    )
    st.caption(f"Letters: {', '.join(LOOKS[role].lettered for role in coarse)}.")


def _table(comparison: ByRole, facts: dict[str, str]) -> None:
    with st.expander(TABLE):
        rows = pd.DataFrame(
            {
                "role": [LABELS[role] for role in comparison.roles],
                **{column: getattr(comparison, column) for column in COLUMNS},
            }
        )
        numbers = {column: st.column_config.NumberColumn(label, format="%.3g") for column, label in COLUMNS.items()}
        st.dataframe(rows, hide_index=True, column_config=numbers)
        table_downloads("importance by role", rows, facts)


def summary(comparison: ByRole, labels: Mapping[str, str], alpha: float) -> str:
    sentences = []
    for index, role in enumerate(comparison.roles):
        n_with, n_without = int(comparison.n_holding[index]), int(comparison.n_others[index])
        holders = f"**{labels[role]}** ({counted(n_with, 'head')} of {n_with + n_without})"
        if not n_with or not n_without:
            sentences.append(f"{holders}: nothing to compare.")
            continue
        share = comparison.superiority[index]
        differs = comparison.p_adjusted[index] < alpha
        in_layers = comparison.p_in_layers_adjusted[index] < alpha
        result = f"ahead in {percent(share, 0)} of pairs with a head without it, p = {comparison.p_adjusted[index]:.2g}"
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
