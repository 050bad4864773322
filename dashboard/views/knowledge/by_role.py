"""Whether heads with a role know more of a task than heads without it."""

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import ByRole, compare_by_role
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.role_superiority import NOTHING, role_superiority
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_baselines


def roles_that_know(probing: Probing) -> None:
    st.markdown(wording.ROLES_SEE)
    visit = frame.with_corpus(probing.visit)
    tested = None if visit is None else corpus(visit)
    if tested is None:
        return
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    roles = tuple(role for role in tested.tests.roles if role in coarse + fine)
    has_role = tested.tests.holds[[tested.tests.roles.index(role) for role in roles]]
    criterion = probing.visit.choice.criterion
    comparison = compare_by_role(above_baselines(probing.shown.report), has_role, roles, criterion.correction)
    labels, facts = {role: LOOKS[role].label for role in comparison.roles}, without_command(probing.facts)
    summary = zip(comparison.roles, comparison.superiority, comparison.p_adjusted, comparison.p_in_layers_adjusted)
    st.markdown(
        wording.roles_summary(
            [(labels[role], float(s), float(p), float(q)) for role, s, p, q in summary], criterion.alpha
        )
    )
    if np.isnan(comparison.superiority).all():
        st.info(NOTHING)
    else:
        chart("knowledge by role", role_superiority(comparison, labels), facts)
    st.caption(wording.ROLES_CAUTION)
    _table(comparison, facts)


def _table(comparison: ByRole, facts: dict[str, str]) -> None:
    with st.expander(wording.ROLES_TABLE):
        rows = pd.DataFrame(
            {
                "role": [LOOKS[role].label for role in comparison.roles],
                **{column: getattr(comparison, column) for column in wording.ROLE_COLUMNS},
            }
        )
        numbers = {
            column: st.column_config.NumberColumn(label, format="%.3g")
            for column, label in wording.ROLE_COLUMNS.items()
        }
        st.dataframe(rows, hide_index=True, column_config=numbers)
        table_downloads("knowledge by role", rows, facts)
