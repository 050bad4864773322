"""The roles of important heads: the map with role letters, and heads with each role compared to heads without it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import ByRole, compare_by_role
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.role_superiority import NOTHING, role_superiority
from attention_sieve.dashboard.files.commands import THEN
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import Corpus, corpus
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.by_role import wording
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.maps import head_selection, show_head_map

LABELS = {role: look.label for role, look in LOOKS.items()}


def roles_of_important_heads(importance: Importance) -> None:
    """Draw the tab."""
    st.markdown(wording.SEE)
    visit = importance.material.visit
    if importance.material.metric.metric == "labels":
        st.caption(wording.OTHER_TEXTS)
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
    st.markdown(wording.summary(comparison, LABELS, choice.criterion.alpha))
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
    st.caption(wording.TESTS)
    _table(comparison, facts)


def _map(
    importance: Importance, tested: Corpus, coarse: tuple[str, ...], has_role: np.ndarray, facts: dict[str, str]
) -> None:
    """The map of importance with the letters of the roles in its cells."""
    name = page_wording.SCORE_NAMES[importance.ablation.score.name]
    title, signed = page_wording.damage_title(name), bool((importance.ablation.damage < 0).any())
    n_layers, n_heads = importance.ablation.damage.shape
    head_roles = [
        [[role for role, holds in zip(coarse, has_role[:, layer, head]) if holds] for head in range(n_heads)]
        for layer in range(n_layers)
    ]
    picture = HeadMap(
        title=title,
        label=f"{title} of the heads of {importance.material.visit.engine.files.name}, with their roles",
        values=importance.ablation.damage,
        bound=round_bound(float(np.nanmax(np.abs(importance.ablation.damage), initial=0))),
        signed=signed,
        low_label=page_wording.HELPS if signed else "",
        high_label=page_wording.high_end(name),
        cells=[["".join(LOOKS[role].letter for role in roles) for roles in row] for row in head_roles],
        details=[
            (
                wording.ROLES,
                [[", ".join(LABELS[role] for role in roles) or wording.NONE for roles in row] for row in head_roles],
            ),
            (page_wording.without(name), importance.ablation.effects.without),
        ],
        n_shared=importance.material.visit.engine.files.n_shared,
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
        paper=wording.VOITA,
    )
    st.caption(wording.letters([LOOKS[role].lettered for role in coarse]))


def _table(comparison: ByRole, facts: dict[str, str]) -> None:
    with st.expander(wording.TABLE):
        rows = pd.DataFrame(
            {
                "role": [LABELS[role] for role in comparison.roles],
                **{column: getattr(comparison, column) for column in wording.COLUMNS},
            }
        )
        numbers = {
            column: st.column_config.NumberColumn(label, format="%.3g") for column, label in wording.COLUMNS.items()
        }
        st.dataframe(rows, hide_index=True, column_config=numbers)
        table_downloads("importance by role", rows, facts)
