"""Two checkpoints of different shapes: roles by relative depth, and overall."""

import numpy as np
import streamlit as st

from attention_sieve.core.comparison.transitions import depths, shares_per_layer
from attention_sieve.dashboard.figures.comparison.depths import overall_shares, roles_by_depth
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus


def unlike_shapes(focus: CheckpointFocus) -> None:
    """What can be compared if the number of layers or heads differs, and why not more."""
    tests_a, tests_b = focus.pair.tests
    st.info(wording.other_shape(tests_a.mean.shape[1:], tests_b.mean.shape[1:]))
    indices = [focus.pair.roles.index(role) for role in focus.coarse]
    holds = [tests.holds[indices] for tests in focus.pair.tests]
    st.markdown(wording.DEPTH)
    shares = [shares_per_layer(side) for side in holds]
    by_depth = roles_by_depth(focus.names, shares, [depths(side.shape[1]) for side in holds], focus.coarse)
    chart("roles by depth", by_depth, focus.facts)
    overall = np.stack([side.mean(axis=(1, 2)) for side in holds])
    n_heads = [side[0].size for side in holds]
    chart("overall shares", overall_shares(focus.names, overall, n_heads, focus.coarse), focus.facts)
