"""Heads of each layer sorted by a number, the best first: whether few or many heads of a layer encode a task."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.figures.appearance import AMOUNT, LESS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, of_kind, template
from attention_sieve.dashboard.figures.heads import head_choice, head_rows

ROW: Final = 40
"""Height of a layer in pixels."""
LEAST_HEIGHT: Final = 220
MOST_HEIGHT: Final = 600
NAMED: Final = 16
"""Maximum number of heads per layer for which a cell has room for the name of its head."""
STRONGEST: Final = 0.8
"""Opacity of the largest number; text on it is still legible."""


def sorted_heads(values: Float[np.ndarray, "layer head"], name: str, chosen: Sequence[Head] = ()) -> Figure:
    """A cell per head, the best of each layer on the left; a click chooses its head.

    Args:
        values: of each head; NaN for one that was removed.

    Source: Jo and Myaeng 2020, their sorted heat maps.
    """
    rows = head_rows(*values.shape).assign(kind="cell", value=values.ravel())
    rows["place"] = rows.groupby("layer")["value"].rank(method="first", ascending=False) - 1
    rows = rows.dropna(subset="value")
    rows["left"], rows["right"] = rows["place"] - 0.48, rows["place"] + 0.48
    rows["top"], rows["bottom"] = rows["layer"] - 0.46, rows["layer"] + 0.46
    rings = rows[[head in chosen for head in zip(rows["layer"], rows["head"])]].assign(kind="chosen")
    most = float(rows["value"].abs().max()) if len(rows) else 0.0
    spec = _spec(values.shape, name, most or 1.0)
    return Figure(spec, pd.concat([rows, rings], ignore_index=True), _description(values, name))


def _description(values: Float[np.ndarray, "layer head"], name: str) -> str:
    parts = [
        f"layer {layer}: {np.nanmax(row):.2f} to {np.nanmin(row):.2f}"
        for layer, row in enumerate(values)
        if not np.isnan(row).all()
    ]
    return f"Heads of each layer sorted by {name}, from the best to the worst; {'; '.join(parts)}."


@lru_cache(maxsize=32)
def _spec(shape: tuple[int, int], name: str, most: float) -> Spec:
    n_layers, n_heads = shape
    across = alt.Scale(domain=[-0.5, n_heads - 0.5], nice=False, zero=False)
    down = alt.Scale(domain=[n_layers - 0.5, -0.5], nice=False, zero=False)
    x_axis = alt.Axis(values=[0, n_heads - 1], labelExpr="datum.value == 0 ? 'best' : 'worst'", grid=False, ticks=False)
    y_axis = alt.Axis(values=list(range(n_layers)), format="d", labelOverlap="greedy", grid=False, ticks=False)

    def x(field: str) -> alt.X:
        return alt.X(field, type="quantitative", scale=across, title="heads of the layer, sorted", axis=x_axis)

    def y(field: str) -> alt.Y:
        return alt.Y(field, type="quantitative", scale=down, title="layer", axis=y_axis)

    tooltip = [alt.Tooltip("name:N", title="head"), alt.Tooltip("value:Q", title=name, format="+.3f")]
    sign = alt.when("datum.value < 0").then(alt.value(LESS)).otherwise(alt.value(AMOUNT))
    strength = alt.FillOpacity("strength:Q", scale=alt.Scale(domain=[0, most], range=[0, STRONGEST]), legend=None)
    area = {"x": x("left"), "x2": alt.X2("right"), "y": y("top"), "y2": alt.Y2("bottom")}
    cells = of_kind("cell").transform_calculate(strength="abs(datum.value)")
    cells = cells.mark_rect(cursor="pointer", stroke=INK, strokeOpacity=0.25, strokeWidth=1)
    ring = of_kind("chosen").mark_rect(fillOpacity=0, stroke=INK, strokeWidth=2.5, tooltip=False, aria=False)
    layers = [
        cells.encode(
            **area, fill=sign, fillOpacity=strength, tooltip=tooltip, description=alt.Description("name:N")
        ).add_params(head_choice()),
        ring.encode(**area),
    ]
    if n_heads <= NAMED:
        text = of_kind("cell").transform_calculate(label="'H' + datum.head").mark_text(color=INK, fontSize=10)
        layers.append(text.encode(x=x("place"), y=y("layer"), text=alt.Text("label:N")))
    return template(
        alt.layer(*layers),
        title="Heads sorted in each layer",
        reading=(f"stronger colour: more {name}",),
        height=min(max(ROW * n_layers, LEAST_HEIGHT), MOST_HEIGHT),
    )
