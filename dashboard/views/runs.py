"""More than two checkpoints at once, and checkpoints whose heads cannot be laid on heads."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from core.roles import ROLES
from core.transitions import depths, shares_per_layer
from dashboard import compare_wording as wording
from dashboard.figures.checkpoints import role_small_multiples
from dashboard.figures.depths import overall_shares, roles_by_depth
from dashboard.figures.steps import roles_over_steps, shift_over_steps
from dashboard.state import Choice
from dashboard.views.comparing import Compared, shift
from dashboard.views.differences import chart
from dashboard.views.layout import halves


def over_checkpoints(
    chosen: Choice, pairs: Sequence[Compared], focus: Compared, coarse: tuple[str, ...], steps: Sequence[int] | None
) -> None:
    """Small multiples of the roles under each checkpoint, and lines over them.

    Args:
        chosen: the shared choices.
        pairs: each against the reference.
        focus: the one that the rest of the page is about.
        coarse: roles to draw.
        steps: of one training run, where the checkpoints are its saved steps; the reference is its step 0.
    """
    alike = [pair for pair in pairs if pair.same_shape]
    reference = alike[0].engines[0].files.name
    names = [reference, *(pair.name for pair in alike)]
    places = [ROLES.index(role) for role in coarse]
    holds = np.stack([alike[0].tests[0].holds[places], *(pair.tests[1].holds[places] for pair in alike)])
    counts = holds.sum(axis=(2, 3))
    role = "delimiter:sep"
    moved = np.array([0.0, *(shift(pair, chosen, role).overall for pair in alike)])
    marked = 1 + alike.index(focus)
    of_steps = None if steps is None else [0, *steps]
    st.subheader(wording.OVER_STEPS if steps is not None else wording.OVER_CHECKPOINTS)
    left, right = halves()
    with left:
        chart(chosen, focus, "roles over checkpoints", roles_over_steps(names, of_steps, counts, coarse, marked))
    with right:
        if np.isfinite(moved).all():
            chart(chosen, focus, "shift over checkpoints", shift_over_steps(names, of_steps, moved, role, marked))
    chart(chosen, focus, "roles of each checkpoint", role_small_multiples(names, holds, coarse))


def unlike_shapes(chosen: Choice, pair: Compared, coarse: tuple[str, ...]) -> None:
    """What can be compared where layers or heads differ in number."""
    names = [engine.files.name for engine in pair.engines]
    places = [ROLES.index(role) for role in coarse]
    holds = [tests.holds[places] for tests in pair.tests]
    st.markdown(wording.DEPTH)
    shares = [shares_per_layer(of_one) for of_one in holds]
    chart(
        chosen,
        pair,
        "roles by depth",
        roles_by_depth(names, shares, [depths(of_one.shape[1]) for of_one in holds], coarse),
    )
    overall = np.stack([of_one.mean(axis=(1, 2)) for of_one in holds])
    n_heads = [of_one[0].size for of_one in holds]
    chart(chosen, pair, "overall shares", overall_shares(names, overall, n_heads, coarse))
