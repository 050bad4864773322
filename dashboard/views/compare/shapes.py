"""Two checkpoints whose heads cannot be laid on heads: by relative depth, and as a whole."""

import numpy as np
import streamlit as st

from core.comparison.transitions import depths, shares_per_layer
from core.roles.roles import ROLES
from dashboard.figures.compare.depths import overall_shares, roles_by_depth
from dashboard.views.charts import chart
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Focus


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
