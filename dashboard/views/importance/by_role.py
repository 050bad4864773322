"""The roles of important heads: the map with role letters, and heads with each role compared to heads without it."""

from dataclasses import replace
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.files.provenance import THEN
from attention_sieve.dashboard.views import by_role, frame
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.corpus import Corpus, corpus
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.ablation import damage_map
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import halves

TAB: Final = "Roles of important heads"
SEE: Final = (
    "The letters in a cell are the roles that its head holds over the corpus; the colour says how much the head "
    "matters. Do heads with a role matter more than heads without it?"
)
OTHER_TEXTS: Final = "The roles are those over the corpus of the sidebar; importance is measured on the labelled texts."
ROLES: Final = "roles"
NONE: Final = "none"
VOITA: Final = "Compare Figure 1 of Voita et al. (2019), where colours are functions and the order is importance."


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
    st.markdown(by_role.summary(comparison, choice.criterion.alpha))
    left, right = halves()
    with left:
        lines = (
            importance.material.line("ablate", *importance.material.options),
            corpora.facts(visit, tested)["command"],
        )
        _map(importance, tested, coarse, has_role, facts | {"command": THEN.join(lines)})
    with right:
        by_role.figure("importance by role", comparison, facts)
    by_role.table("importance by role", comparison, facts)


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
                [[", ".join(LOOKS[role].label for role in roles) or NONE for roles in row] for row in head_roles],
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
