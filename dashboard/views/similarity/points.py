"""Heads as points on a plane, by kind and by layer."""

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.dashboard.figures.similarity.plane import heads_by_kind, heads_by_layer, outermost
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.pickers import one_of
from attention_sieve.dashboard.views.similarity import wording
from attention_sieve.dashboard.views.similarity.numbers import Similar


def points(similar: Similar) -> None:
    """Draw both figures, and say how much of the distances they show."""
    plane = similar.arranged.plane
    st.markdown(wording.distances_shown(plane.shown))
    outside = outermost(plane)
    if names := [head_name(int(layer), int(head)) for layer, head in np.argwhere(outside)]:
        views = {wording.MOST_HEADS: outside, wording.ALL_HEADS: np.zeros_like(outside)}
        outside = one_of(wording.VIEW, views, key="similarity view", help=wording.view_help(names))
    left, right = halves()
    with left:
        figure = heads_by_kind(plane, similar.kinds, similar.heads, outside)
        chart(f"heads by {similar.kinds.title}", figure, similar.facts, wording.CLARK_6, selects=True)
    with right:
        figure = heads_by_layer(plane, similar.heads, outside)
        chart("heads by layer", figure, similar.facts, wording.CLARK_6, selects=True)
