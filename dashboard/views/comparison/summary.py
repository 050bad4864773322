"""Summary at the top of the page: one sentence, the numbers behind it, and the head that is shown."""

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.comparison.transitions import role_changes
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus, n_other_tokens
from attention_sieve.dashboard.views.comparison.sentence import what_changed


def what_changed_in_roles(focus: CheckpointFocus) -> str:
    """One sentence on what changed."""
    of_roles = role_changes(*focus.compared.holds, focus.pair.roles)
    changes = [change for change in of_roles if change.role in focus.coarse]
    return what_changed(changes, len(focus.pair.tests[0].mean[0]), focus.training.sentence)


def summary(focus: CheckpointFocus) -> None:
    """One sentence on what changed, and notes needed to read it."""
    pair, choice = focus.pair, focus.choice
    (holds_a, holds_b), changed = focus.compared.holds, focus.compared.changed
    differs = focus.compared.tests.differs & (holds_a != holds_b)
    differs_too = differs[[focus.pair.roles.index(role) for role in focus.coarse]].any(axis=0)
    settings = [choice.pass_settings(engine) for engine in pair.engines]
    removed = set.intersection(
        *(set(engine.files.removed_of(options.kind)) for engine, options in zip(pair.engines, settings, strict=True))
    )
    counts = wording.summary(
        int(changed.sum()),
        changed.size - len(removed),
        shared_wording.at_tau(choice.criterion.tau, choice.scale),
        int(differs_too.sum()),
        choice.scale,
    )
    st.markdown(f"**{what_changed_in_roles(focus)}** {counts}")
    if focus.training.chance is not None:
        st.warning(wording.not_above_chance(focus.training.chance), icon=":material/warning:")
    if pair.engines[0].files.fingerprint == pair.engines[1].files.fingerprint:
        st.info(wording.SAME)
    if n_other := n_other_tokens(pair):
        st.info(wording.other_tokens(n_other, pair.n_texts))
    with st.container(key="head shown"):
        _head_shown(focus)


def _head_shown(focus: CheckpointFocus) -> None:
    """Change of the score of the head chosen last; the help explains why it is shown if the reader chose none."""
    if not focus.heads:
        return
    head, index = focus.heads[-1], focus.pair.roles.index(focus.role)
    scores = [float(tests.mean[index, *head]) for tests in focus.pair.tests]
    if not np.isnan(scores).any():
        label, is_most = LOOKS[focus.role].label, head == focus.moved_most
        st.markdown(
            wording.head_shown(head_name(*head), label, scores[0], scores[1], focus.choice.scale, is_most=is_most),
            help=wording.HEAD_SHOWN_HELP,
        )
