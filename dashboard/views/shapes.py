"""Two checkpoints whose heads cannot be laid on heads: by relative depth, and as a whole."""

import numpy as np
import streamlit as st

from core.roles import ROLES
from core.transitions import depths, shares_per_layer
from dashboard import compare_wording as wording
from dashboard.figures.depths import overall_shares, roles_by_depth
from dashboard.views.charts import chart
from dashboard.views.comparing import Focus


def unlike_shapes(focus: Focus) -> None:
    """What can be compared where layers or heads differ in number, and why no more."""
    tests_a, tests_b = focus.pair.tests
    st.info(wording.other_shape(tests_a.mean.shape[1:], tests_b.mean.shape[1:]))
    places = [ROLES.index(role) for role in focus.coarse]
    holds = [tests.holds[places] for tests in focus.pair.tests]
    st.markdown(wording.DEPTH)
    shares = [shares_per_layer(of_one) for of_one in holds]
    by_depth = roles_by_depth(focus.names, shares, [depths(of_one.shape[1]) for of_one in holds], focus.coarse)
    chart("roles by depth", by_depth, focus.facts)
    overall = np.stack([of_one.mean(axis=(1, 2)) for of_one in holds])
    n_heads = [of_one[0].size for of_one in holds]
    chart("overall shares", overall_shares(focus.names, overall, n_heads, focus.coarse), focus.facts)
