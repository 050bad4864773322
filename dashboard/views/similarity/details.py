"""One head's distances to all others, and the views of all distances: points, tree, matrices, table."""

from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.similarity.analysis import distance_table
from attention_sieve.core.similarity.distances import MOST, layer_distances, nearest_heads, within_and_between
from attention_sieve.core.similarity.layout import HeadPlane, groups
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.similarity.dendrogram import dendrogram
from attention_sieve.dashboard.figures.similarity.matrix import MatrixSide, distance_matrix
from attention_sieve.dashboard.figures.similarity.plane import heads_by_kind, heads_by_layer, outermost
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.pickers import halves, one_of, toggle
from attention_sieve.dashboard.views.similarity import wording
from attention_sieve.dashboard.views.similarity.numbers import MEAN_UNIT, Similar

ROWS_HEIGHT: Final = 330
"""Height of the table of distances in pixels: that of a map of 6 layers next to it; the table scrolls."""
MOST_ROWS: Final = 20_000
"""Maximum number of pairs shown on the page; 1,024 heads make half a million."""


def nearest(similar: Similar) -> None:
    left, right = halves()
    with left:
        heads = _map(similar)
    with right:
        if not heads:
            st.info(wording.NONE_CHOSEN)
            return
        head = heads[-1]
        neighbours = nearest_heads(similar.arranged.distances, head)
        table = pd.DataFrame(
            {
                "head": [head_name(*neighbour) for neighbour, _ in neighbours],
                "distance": [distance for _, distance in neighbours],
                similar.kinds.title: [similar.kinds.look(*neighbour).label for neighbour, _ in neighbours],
                "same layer": ["yes" if neighbour[0] == head[0] else "no" for neighbour, _ in neighbours],
            }
        )
        distance = st.column_config.NumberColumn(wording.distance(similar.unit), format="%.4f")
        st.dataframe(table, hide_index=True, column_config={"distance": distance}, height=ROWS_HEIGHT)
        files = with_sentences(table, similar.sentences)
        table_downloads(f"nearest to {head_name(*head)}", files, similar.facts)


def _map(similar: Similar) -> list[tuple[int, int]]:
    distances = similar.arranged.distances
    head = similar.heads[-1] if similar.heads else None
    values = np.full(distances.shape[:2], np.nan) if head is None else distances[head]
    finite = values[np.isfinite(values)]
    bound = round_bound(float(finite.max())) if finite.size else 1.0
    bound = min(bound, MOST) if similar.unit == MEAN_UNIT else bound
    to_head = "" if head is None else f" to {head_name(*head)}"
    name = similar.engine.files.name
    kinds = [[similar.kinds.look(layer, head).label for head, _ in enumerate(row)] for layer, row in enumerate(values)]
    picture = HeadMap(
        title=f"distance{to_head} ({similar.unit})",
        label=f"Distance of the heads of {name}{to_head} ({similar.unit})",
        values=values,
        bound=bound,
        low_label="alike",
        details=[(wording.HOW_FAR.lower(), values), (similar.kinds.title, kinds)],
    )
    reset = (name, similar.engine.files.fingerprint, state.n_pushed())
    selection = head_selection("similarity map", similar.heads, reset)
    return show_head_map(picture, selection, file="distances", facts=similar.facts)


def left_outside(plane: HeadPlane) -> Bool[np.ndarray, "layer head"]:
    """The heads that the map shows at its rim alone; the reader may have all heads in it."""
    outside = outermost(plane)
    if names := [head_name(int(layer), int(head)) for layer, head in np.argwhere(outside)]:
        views = {wording.MOST_HEADS: outside, wording.ALL_HEADS: np.zeros_like(outside)}
        outside = one_of(wording.VIEW, views, key="similarity view", help=wording.view_help(names))
    return outside


def points(similar: Similar, outside: Bool[np.ndarray, "layer head"], by: str) -> None:
    """The map of heads, by kind or by layer."""
    plane = similar.arranged.plane
    if by == wording.LAYER:
        figure = heads_by_layer(plane, similar.heads, outside, similar.patterns)
    else:
        figure = heads_by_kind(plane, similar.kinds, similar.heads, outside, similar.patterns)
    chart(f"heads by {by}", figure, similar.facts, wording.CLARK_6, large=True, selects=True)


def tree(similar: Similar) -> None:
    arranged = similar.arranged
    sizes = [len(part) for part in groups(arranged.tree)]
    st.markdown(wording.groups_of(sizes, arranged.tree.cut, similar.unit))
    figure = dendrogram(arranged.tree, similar.kinds, similar.heads, similar.unit)
    chart("tree of heads", figure, similar.facts, wording.NO_FIGURE, selects=True)


def layers(similar: Similar) -> None:
    distances = similar.arranged.distances
    st.markdown(f"{wording.LAYERS_NOTE} {wording.within_a_layer(*within_and_between(distances), similar.unit)}")
    values = layer_distances(distances)
    names = tuple(f"L{layer}" for layer in range(len(values)))
    title, sides = "Mean distance between the heads of two layers", ("layer", "other layer")
    figure = distance_matrix(values, *(MatrixSide(side, names) for side in sides), title=title, unit=similar.unit)
    chart("distance between layers", figure, similar.facts, wording.NO_FIGURE)


def pairs(similar: Similar) -> None:
    n_layers, n_heads = similar.arranged.divergences.shape
    usual = similar.heads[-1][0] if similar.heads else 0
    widget_options: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        numbers = list(map(str, range(n_layers)))
        layer_a = int(st.selectbox(wording.LAYER_A, numbers, index=usual, key="similarity layer", **widget_options))
        other_key = "similarity other layer"
        layer_b = int(st.selectbox(wording.LAYER_B, numbers, index=usual, key=other_key, **widget_options))
        is_apart = layer_a != layer_b
        relative = toggle(wording.RELATIVE, key="similarity relative", help=wording.RELATIVE_HELP, disabled=is_apart)
    relative = relative and not is_apart
    arranged = similar.arranged
    distances = arranged.divergences.relative[layer_a] if relative else arranged.distances[layer_a, :, layer_b]
    values = np.array(distances, dtype=float)
    if layer_a == layer_b:
        np.fill_diagonal(values, np.nan)  # a head and itself are not a pair
    title = f"{wording.RELATIVE if relative else wording.HOW_FAR}, layer {layer_a} against layer {layer_b}"
    rows, columns = (tuple(head_name(layer, head) for head in range(n_heads)) for layer in (layer_a, layer_b))
    unit = MEAN_UNIT if relative else similar.unit
    sides = MatrixSide("head", rows), MatrixSide("other head", columns)
    figure = distance_matrix(values, *sides, title=title, unit=unit)
    chart("heads of two layers", figure, similar.facts, wording.MICHEL if relative else wording.NO_FIGURE)


def table(similar: Similar) -> None:
    rows = distance_table(similar.arranged.divergences).sort_values("divergence", ignore_index=True)
    closest = rows.head(MOST_ROWS)
    displayed = pd.DataFrame(
        {
            "head": _names(closest["layer_a"], closest["head_a"]),
            "other head": _names(closest["layer_b"], closest["head_b"]),
            **{name: closest[name] for name in wording.COLUMNS},
        }
    )
    columns = {
        name: st.column_config.NumberColumn(label, help=help_text, format="%.4f")
        for name, (label, help_text) in wording.COLUMNS.items()
    }
    st.dataframe(displayed, hide_index=True, column_config=columns, placeholder="–")
    if len(rows) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} closest of {len(rows):,} pairs; the files have all.")
    table_downloads("distances of heads", rows, similar.facts)


def _names(layers: pd.Series, heads: pd.Series) -> list[str]:
    return [head_name(*layer_head) for layer_head in zip(layers.tolist(), heads.tolist())]
