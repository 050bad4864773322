"""Heads as points on a plane, similar heads close together: by kind, and by layer."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from core.attention.settings import Head
from core.similarity.layout import HeadPlane
from dashboard.figures.appearance import AMOUNT, LESS, MORE
from dashboard.figures.figure import INK, Figure, Spec, of_kind, template
from dashboard.figures.heads import head_choice, head_rows
from dashboard.figures.similar.head_kinds import HeadKinds, Look, by_kind
from dashboard.figures.similar.names import line_ends, name_places

if TYPE_CHECKING:
    import altair as alt

HEIGHT: Final = 320
NARROWEST: Final = 300
"""Width in pixels on a phone."""
MARGIN: Final = 0.08
"""Margin around the outermost heads, relative to the width of the plane."""
READING: Final = ("close together: the heads attend alike", "only distances mean something; ringed: chosen")
MANY: Final = 400
"""Number of heads above which marks are small and without numbers."""


def heads_by_kind(plane: HeadPlane, kinds: HeadKinds, chosen: Sequence[Head]) -> Figure:
    """The plane with the kind of each head as colour and mark.

    Args:
        plane: coordinates of the heads.
        kinds: of the heads.
        chosen: heads that are ringed.

    Source: Clark et al. 2019, Figure 6, upper panel.
    """
    points = _points(plane, chosen)
    points["kind of head"] = [
        kinds.look(layer, head).label for layer, head in zip(points["layer"].tolist(), points["head"].tolist())
    ]
    spec = _kind_spec(kinds.title, kinds.present(), _span(plane), len(points) > MANY)
    counts = points.loc[points["kind"] == "head", "kind of head"].value_counts(sort=False)
    kind_counts = ", ".join(f"{look.label} {counts[look.label]}" for look in kinds.present())
    return Figure(spec, points, f"{_description(plane)} Heads by {kinds.title}: {kind_counts}.")


def heads_by_layer(plane: HeadPlane, chosen: Sequence[Head]) -> Figure:
    """The plane with the layer of each head as colour and number.

    Source: Clark et al. 2019, Figure 6, lower panel.
    """
    points = _points(plane, chosen)
    return Figure(_layer_spec(len(plane.places), _span(plane), len(points) > MANY), points, _description(plane))


def _points(plane: HeadPlane, chosen: Sequence[Head]) -> pd.DataFrame:
    """Every head, and the chosen ones again with the positions of their names."""
    n_layers, n_heads, _ = plane.places.shape
    points = head_rows(n_layers, n_heads)
    points["x"], points["y"] = plane.places.reshape(-1, 2).T
    points = points.dropna(subset="x", ignore_index=True)  # without removed heads
    places = points[["x", "y"]].to_numpy()
    ringed = [index for index, head in enumerate(zip(points["layer"], points["head"])) if head in chosen]
    *middle, half = _span(plane)
    # `half` is half of the visible height or width, whichever is smaller; the other side shows more.
    pixels = [side / (2 * half) for side in (HEIGHT, NARROWEST)]
    names = np.array(middle) + name_places(places - middle, ringed, np.full(2, half), pixels)
    named = points.iloc[ringed].assign(kind="chosen")
    named[["name_x", "name_y"]] = names
    named[["line_x", "line_y"]] = line_ends(names, named[["x", "y"]].to_numpy(), pixels[-1])
    return pd.concat([points.assign(kind="head"), named], ignore_index=True)


def _description(plane: HeadPlane) -> str:
    return f"{len(plane.points)} heads as points on a plane (stress {plane.stress:.2f})."


def _span(plane: HeadPlane) -> tuple[float, float, float]:
    """Middle of both axes, and half of their visible range."""
    flat = plane.points
    low, high = flat.min(axis=0), flat.max(axis=0)
    half = float((high - low).max()) / 2 * (1 + 2 * MARGIN) or 1.0
    middle = (low + high) / 2
    return float(middle[0]), float(middle[1]), half


def _axes(span: tuple[float, float, float]) -> "tuple[alt.X, alt.Y]":
    """Both axes with the same number of pixels per unit, for any width of the figure."""
    import altair as alt

    def scale(middle: float, sides: str) -> alt.Scale:
        reach = f"{span[2]!r} * max(1, {sides})"
        # With given ends, Vega does not compute them before it has data, and does not warn that there is none.
        ends = [alt.expr(f"{middle!r} - {reach}"), alt.expr(f"{middle!r} + {reach}")]
        return alt.Scale(domain=ends, nice=False, zero=False)

    x = alt.X("x:Q", axis=None, scale=scale(span[0], "width / height"))
    return x, alt.Y("y:Q", axis=None, scale=scale(span[1], "height / width"))


def _heads(points: "alt.Chart", axes: "tuple[alt.X, alt.Y]") -> "alt.Chart":
    """Marks that select their head, with its name for screen readers."""
    import altair as alt

    return points.encode(*axes, description=alt.Description("name:N")).add_params(head_choice())


def _chosen(axes: "tuple[alt.X, alt.Y]") -> "tuple[alt.Chart, ...]":
    """Rings around the chosen heads, their names, and lines between the two."""
    import altair as alt

    x, y = (axis.copy() for axis in axes)
    x.shorthand, y.shorthand = "name_x:Q", "name_y:Q"
    line = of_kind("chosen").mark_rule(color=INK, strokeWidth=1, opacity=0.6, tooltip=False)
    ring = of_kind("chosen").mark_point(
        shape="circle", filled=False, color=INK, size=320, strokeWidth=2.5, opacity=1, tooltip=False
    )
    name = of_kind("chosen").mark_text(color=INK, fontWeight="bold", fontSize=12, baseline="middle", tooltip=False)
    return (
        line.encode(*axes, x2=alt.X2("line_x:Q"), y2=alt.Y2("line_y:Q")),
        ring.encode(*axes),
        name.encode(x, y, text=alt.Text("name:N")),
    )


@lru_cache(maxsize=32)
def _kind_spec(title: str, looks: tuple[Look, ...], span: tuple[float, float, float], many: bool) -> Spec:
    import altair as alt

    axes = _axes(span)
    points = of_kind("head").mark_point(filled=True, size=30 if many else 90, opacity=0.85, cursor="pointer")
    points = points.encode(
        color=by_kind(alt.Color, title, looks, [look.color for look in looks]),
        shape=by_kind(alt.Shape, title, looks, [look.shape for look in looks]),
        tooltip=[alt.Tooltip("name:N", title="head"), alt.Tooltip("kind of head:N", title=title)],
    )
    chart = alt.layer(_heads(points, axes), *_chosen(axes))
    return template(chart, title=f"Heads by {title}", reading=READING, height=HEIGHT)


@lru_cache(maxsize=32)
def _layer_spec(n_layers: int, span: tuple[float, float, float], many: bool) -> Spec:
    import altair as alt

    axes = _axes(span)
    color = alt.Color(
        "layer:Q",
        scale=alt.Scale(domain=[0, max(1, n_layers - 1)], range=[LESS, AMOUNT, MORE]),
        legend=alt.Legend(orient="bottom", title="layer", format="d", tickMinStep=1, gradientLength=160),
    )
    tooltip = [alt.Tooltip("name:N", title="head"), alt.Tooltip("layer:N", title="layer")]
    size = 40 if many else 200
    points = of_kind("head").mark_point(shape="circle", filled=True, size=size, opacity=0.9, cursor="pointer")
    layers = [_heads(points.encode(color=color, tooltip=tooltip), axes)]
    if not many:
        numbers = of_kind("head").mark_text(
            color="#FFFFFF", fontWeight="bold", fontSize=10, tooltip=False, cursor="pointer"
        )
        layers.append(numbers.encode(*axes, text=alt.Text("layer:N")))
    return template(alt.layer(*layers, *_chosen(axes)), title="Heads by layer", reading=READING, height=HEIGHT)
