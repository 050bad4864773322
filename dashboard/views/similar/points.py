"""Heads as points on a plane or in space, by kind and by layer."""

from typing import Any, Final

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import head_name
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard.figures.plotly_figure import PlotlyFigure
from attention_sieve.dashboard.figures.similar.plane import heads_by_kind, heads_by_layer, outermost
from attention_sieve.dashboard.figures.similar.space import (
    Camera,
    camera_of,
    heads_in_space_by_kind,
    heads_in_space_by_layer,
    read_camera,
)
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.pickers import one_of
from attention_sieve.dashboard.views.plotly_charts import plotly_chart
from attention_sieve.dashboard.views.similar import wording
from attention_sieve.dashboard.views.similar.numbers import Similar

DIMENSIONS: Final = "similar dimensions"
CAMERA: Final = "camera"
"""Session-state key and query parameter of the direction from which heads in space are seen."""


def points(similar: Similar) -> None:
    """Draw both figures in two or three dimensions, and say how much of the distances they show."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        draw = one_of(
            wording.DIMENSIONS,
            {wording.PLANE: _plane, wording.SPACE: _space},
            key=DIMENSIONS,
            help=wording.DIMENSIONS_HELP,
        )
        note_slot = st.container(width="stretch")
    draw(similar, note_slot)


def _plane(similar: Similar, note_slot: DeltaGenerator) -> None:
    plane = similar.arranged.plane
    note_slot.markdown(wording.distances_shown(plane.shown))
    outside = outermost(plane)
    if names := [head_name(int(layer), int(head)) for layer, head in np.argwhere(outside)]:
        views = {wording.MOST_HEADS: outside, wording.ALL_HEADS: np.zeros_like(outside)}
        outside = one_of(wording.VIEW, views, key="similar view", help=wording.view_help(names))
    left, right = halves()
    with left:
        figure = heads_by_kind(plane, similar.kinds, similar.heads, outside)
        chart(f"heads by {similar.kinds.title}", figure, similar.facts, wording.CLARK_6, selects=True)
    with right:
        figure = heads_by_layer(plane, similar.heads, outside)
        chart("heads by layer", figure, similar.facts, wording.CLARK_6, selects=True)


def _space(similar: Similar, note_slot: DeltaGenerator) -> None:
    shares_shown = similar.arranged.plane.shown, similar.arranged.space.shown
    note_slot.markdown(f"{wording.distances_shown(*shares_shown)} {wording.SPACE_SEE}")
    _figures_in_space(similar)


@st.fragment
def _figures_in_space(similar: Similar) -> None:
    """Draw both figures with one camera: turning one turns the other, and only this fragment runs again."""
    space = similar.arranged.space
    camera = _camera()
    by_kind = heads_in_space_by_kind(space, similar.kinds, similar.heads, camera)
    left, right = halves()
    with left:
        _draw(similar, f"heads in space by {similar.kinds.title}", by_kind)
    with right:
        _draw(similar, "heads in space by layer", heads_in_space_by_layer(space, similar.heads, camera))
    with st.expander(wording.PLACES):
        st.dataframe(by_kind.data, hide_index=True)
        table_downloads("places of heads", with_sentences(by_kind.data, similar.sentences), similar.facts)


def _camera() -> Camera:
    """The camera: on a first visit that of the link; written to the address bar once the reader turns a figure."""
    if (requested := link.take(CAMERA)) is not None:
        linked = read_camera(requested)
        st.session_state[CAMERA] = linked or Camera()
        if linked is None:
            link.say(wording.no_such_camera(link.quoted(requested)))
    camera: Camera = st.session_state.get(CAMERA, Camera())
    link.put([CAMERA], {} if camera == Camera() else {CAMERA: camera.written})
    return camera


def _draw(similar: Similar, name: str, figure: PlotlyFigure) -> None:
    n_layers, n_heads = similar.arranged.divergences.shape

    def take(mark: Any) -> None:
        layer, head = mark if isinstance(mark, list) and len(mark) == 2 else (None, None)
        if type(layer) is int and type(head) is int and 0 <= layer < n_layers and 0 <= head < n_heads:
            state.push_heads([(layer, head)])
            st.rerun()  # the rest of the page shows the chosen head too

    plotly_chart(name, figure, similar.facts, wording.NO_FIGURE, on_click=take, on_turn=_turn)


def _turn(event: Any) -> None:
    """Store the camera after the reader turned a figure, since Streamlit rebuilds the figure for each ringed head."""
    camera = camera_of(event)
    # Rounded as in a link, so that the link shows the same view.
    st.session_state[CAMERA] = (camera and read_camera(camera.written)) or st.session_state.get(CAMERA, Camera())
