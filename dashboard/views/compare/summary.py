"""What changed, at the top of the page: one sentence, what it stands on, and the head that is shown."""

import numpy as np
import streamlit as st

from core.attention.settings import head_name
from core.comparison.transitions import changed_heads, role_changes
from core.roles.roles import ROLES
from dashboard import wording as shared_wording
from dashboard.figures.appearance import LOOKS
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Focus, n_other_tokens, paired
from dashboard.views.compare.sentence import what_changed


def summary(focus: Focus) -> None:
    """The sentence of what changed, and what has to be known to read it."""
    pair, chosen = focus.pair, focus.chosen
    holds_a, holds_b = (tests.holds for tests in pair.tests)
    of_roles = [change for change in role_changes(holds_a, holds_b, ROLES) if change.role in focus.coarse]
    changed = changed_heads(holds_a, holds_b, ROLES, focus.coarse)
    differs = paired(pair, chosen).differs & (holds_a != holds_b)
    also = differs[[ROLES.index(role) for role in focus.coarse]].any(axis=0)
    settings = [chosen.pass_settings(engine) for engine in pair.engines]
    gone = set.intersection(
        *(set(engine.files.removed_of(of_one.kind)) for engine, of_one in zip(pair.engines, settings, strict=True))
    )
    stands_on = wording.summary(
        int(changed.sum()),
        changed.size - len(gone),
        shared_wording.at_tau(chosen.criterion.tau, chosen.scale),
        int(also.sum()),
        chosen.scale,
    )
    st.markdown(f"**{what_changed(of_roles, len(changed), focus.training)}** {stands_on}")
    if pair.engines[0].files.fingerprint == pair.engines[1].files.fingerprint:
        st.info(wording.SAME)
    if n_other := n_other_tokens(pair):
        st.info(wording.other_tokens(n_other, pair.n_texts))
    with st.container(key="head shown"):
        _head_shown(focus)


def _head_shown(focus: Focus) -> None:
    """How the score of the head chosen last moved, and why it is shown where no reader chose it."""
    if not focus.heads:
        return
    head, place = focus.heads[-1], ROLES.index(focus.role)
    scores = [float(tests.mean[place, *head]) for tests in focus.pair.tests]
    if not np.isnan(scores).any():
        label, is_most = LOOKS[focus.role].label, head == focus.moved_most
        st.markdown(
            wording.head_shown(head_name(*head), label, scores[0], scores[1], focus.chosen.scale, is_most=is_most),
            help=wording.HEAD_SHOWN_HELP,
        )
