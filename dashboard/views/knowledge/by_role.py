"""Whether heads with a role know more of a task than heads without it."""

import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import by_role, frame
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
    facts = without_command(probing.facts)
    st.markdown(by_role.summary(comparison, criterion.alpha))
    by_role.figure("knowledge by role", comparison, facts)
    by_role.table("knowledge by role", comparison, facts)
