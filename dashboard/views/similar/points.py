"""Heads as points on a plane or in space, by kind and by layer."""

from typing import Any, Final

import streamlit as st

from dashboard import state
from dashboard.downloads import table_downloads
from dashboard.figures.plotly_figure import PlotlyFigure
from dashboard.figures.similar.plane import heads_by_kind, heads_by_layer
from dashboard.figures.similar.space import Camera, camera_of, heads_in_space_by_kind, heads_in_space_by_layer
from dashboard.views.charts import chart
from dashboard.views.layout import halves
from dashboard.views.pickers import one_of
from dashboard.views.plotly_charts import plotly_chart
from dashboard.views.similar import wording
from dashboard.views.similar.numbers import Similar

DIMENSIONS: Final = "similar dimensions"
CAMERA: Final = "similar camera"


def points(similar: Similar) -> None:
    """Both figures in as many dimensions as the reader chose, and how much of the distances they show."""
    draw = one_of(
        wording.DIMENSIONS, {wording.PLANE: _plane, wording.SPACE: _space}, key=DIMENSIONS, help=wording.DIMENSIONS_HELP
    )
    draw(similar)
    if similar.kinds.title == wording.BEHAVIOUR:
        st.caption(wording.TWO_LABELS)


def _plane(similar: Similar) -> None:
    plane = similar.arranged.plane
    st.markdown(wording.distances_shown(plane.shown))
    left, right = halves()
    with left:
        figure = heads_by_kind(plane, similar.kinds, similar.heads)
        chart(f"heads by {similar.kinds.title}", figure, similar.facts, wording.CLARK_6, selects=True)
    with right:
        chart("heads by layer", heads_by_layer(plane, similar.heads), similar.facts, wording.CLARK_6, selects=True)


def _space(similar: Similar) -> None:
    space = similar.arranged.space
    st.markdown(f"{wording.distances_shown(similar.arranged.plane.shown, space.shown)} {wording.SPACE_SEE}")
    camera = st.session_state.get(CAMERA, Camera())
    by_kind = heads_in_space_by_kind(space, similar.kinds, similar.heads, camera)
    left, right = halves()
    with left:
        _draw(similar, f"heads in space by {similar.kinds.title}", by_kind)
    with right:
        _draw(similar, "heads in space by layer", heads_in_space_by_layer(space, similar.heads, camera))
    with st.expander(wording.PLACES):
        st.dataframe(by_kind.data, hide_index=True)
        table_downloads("places of heads", by_kind.data, similar.facts)


def _draw(similar: Similar, name: str, figure: PlotlyFigure) -> None:
    n_layers, n_heads = similar.arranged.divergences.shape

    def take(mark: Any, camera: Any) -> None:
        layer, head = mark if isinstance(mark, list) and len(mark) == 2 else (None, None)
        if type(layer) is int and type(head) is int and 0 <= layer < n_layers and 0 <= head < n_heads:
            state.push_heads([(layer, head)])
            # Streamlit builds the chart anew with the head ringed, and the view should stay turned as it is.
            st.session_state[CAMERA] = camera_of(camera) or st.session_state.get(CAMERA, Camera())

    plotly_chart(name, figure, similar.facts, wording.NO_FIGURE, on_click=take)
