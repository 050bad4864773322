"""Heads as points in a rotatable 3-D view, similar heads close together: by kind, and by layer."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.layout import HeadPlane
from attention_sieve.dashboard.figures.appearance import AMOUNT, HEXAGON, LESS, MORE, PENTAGON
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.heads import head_rows
from attention_sieve.dashboard.figures.plotly_figure import THEME_INK, TOP, PlotlyFigure, heading
from attention_sieve.dashboard.figures.similar.head_kinds import HeadKinds
from attention_sieve.dashboard.figures.similar.plane import MANY, MARGIN, heads_by_kind, heads_by_layer

if TYPE_CHECKING:
    import plotly.graph_objects as go

Point = tuple[float, float, float]

HEIGHT: Final = 480
GRID: Final = "#A0A0A0"
MARKS: Final = {
    "square": "square",
    "diamond": "diamond",
    "triangle-up": "cross",
    "triangle-right": "cross",
    "triangle-left": "square-open",
    HEXAGON: "circle-open",
    PENTAGON: "diamond-open",
    "wedge": "square-open",
}
"""Marks in space for those of the plane. Plotly draws them with the user's fonts, and many lack its `x`."""
LEAST_TURN: Final = 1e-9
"""Minimum norm of the cross product of line of sight and up vector, below which the view is undefined."""
WRITTEN: Final = re.compile(r"-?\d{1,3}(\.\d{1,3})?(,-?\d{1,3}(\.\d{1,3})?){8}")
"""Nine numbers."""
READING: Final = ("close together: the heads attend alike", "drag to turn; ringed: chosen")
STILL_READING: Final = (
    "heads in three dimensions, seen from one side",
    "only distances mean something; ringed: chosen",
)


@dataclass(frozen=True)
class Camera:
    """Camera position in Plotly's units: the axes run from -0.5 to 0.5."""

    eye: Point = (0.8, 0.8, 0.6)
    center: Point = (0.0, 0.0, 0.0)
    up: Point = (0.0, 0.0, 1.0)

    @property
    def written(self) -> str:
        """Eye, centre and up vector as text for a link, rounded to 0.001."""
        return ",".join(f"{round(value, 3) + 0:g}" for value in (*self.eye, *self.center, *self.up))


def read_camera(written: str) -> Camera | None:
    """The camera in a link; None if it is missing or invalid."""
    if not WRITTEN.fullmatch(written):
        return None
    values = [float(value) for value in written.split(",")]
    points = (dict(zip("xyz", values[start : start + 3])) for start in (0, 3, 6))
    return camera_of(dict(zip(("eye", "center", "up"), points)))


def camera_of(value: object) -> Camera | None:
    """The camera sent by a browser; None if it is invalid."""
    eye, center, up = (
        _point(value.get(name)) if isinstance(value, Mapping) else None for name in ("eye", "center", "up")
    )
    if eye is None or center is None or up is None:
        return None
    across = np.cross(np.subtract(eye, center), up)
    return Camera(eye, center, up) if np.linalg.norm(across) > LEAST_TURN else None


def heads_in_space_by_kind(space: HeadPlane, kinds: HeadKinds, chosen: Sequence[Head], camera: Camera) -> PlotlyFigure:
    """The points with the kind of each head as colour and mark.

    Args:
        space: coordinates of the heads in three dimensions.
        kinds: of the heads.
        chosen: heads that are ringed.
        camera: the current camera.
    """
    table = _table(space)
    labels = [kinds.look(*head).label for head in zip(table["layer"].tolist(), table["head"].tolist())]
    table = table.assign(**{kinds.title: labels})
    traces = [
        _trace(
            table[table[kinds.title] == look.label],
            f"{kinds.title}: {look.label}",
            name=look.label,
            marker={
                "color": look.color,
                "symbol": MARKS.get(look.shape, "circle"),
                "size": 2 if len(table) > MANY else 4,
                "line": {"width": 0},
            },
        )
        for look in kinds.present()
    ]
    still = heads_by_kind(_seen_from(space, camera), kinds, chosen)
    counts = ", ".join(f"{look.label} {labels.count(look.label)}" for look in kinds.present())
    description = f"{_description(space)} Heads by {kinds.title}: {counts}."
    chart = _chart(f"Heads by {kinds.title}", space, [*traces, _rings(table, chosen)], camera)
    return PlotlyFigure(chart=chart, data=table, still=_from_one_side(still, description))


def heads_in_space_by_layer(space: HeadPlane, chosen: Sequence[Head], camera: Camera) -> PlotlyFigure:
    """The points with the layer of each head as colour and number.

    Args:
        space: coordinates of the heads in three dimensions.
        chosen: heads that are ringed.
        camera: the current camera.
    """
    table, n_layers = _table(space), len(space.places)
    bar = {"orientation": "h", "thickness": 12, "len": 0.6, "y": 0, "yanchor": "top", "tickformat": "d", "title": None}
    marker = {
        "color": table["layer"],
        "cmin": 0,
        "cmax": max(1, n_layers - 1),
        "colorscale": [[0, LESS], [0.5, AMOUNT], [1, MORE]],
        "colorbar": {**bar, "title": {"text": "layer", "side": "bottom"}, "nticks": min(n_layers, 8)},
        "size": 3 if len(table) > MANY else 7,
        "line": {"width": 0},
    }
    trace = _trace(table, "layer %{marker.color}", marker=marker, showlegend=False)
    if len(table) <= MANY:
        trace.update(mode="markers+text", text=table["layer"].astype(str), textposition="middle center")
        trace.update(textfont={"color": "#FFFFFF", "size": 10, "weight": "bold"})
    still = heads_by_layer(_seen_from(space, camera), chosen)
    chart = _chart("Heads by layer", space, [trace, _rings(table, chosen)], camera)
    return PlotlyFigure(chart=chart, data=table, still=_from_one_side(still, _description(space)))


def _point(value: object) -> Point | None:
    coordinates = [value.get(axis) for axis in "xyz"] if isinstance(value, Mapping) else []
    numbers = [
        float(coordinate)
        for coordinate in coordinates
        if isinstance(coordinate, int | float) and math.isfinite(coordinate)
    ]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _table(space: HeadPlane) -> pd.DataFrame:
    n_layers, n_heads, _ = space.places.shape
    table = head_rows(n_layers, n_heads)
    table[["x", "y", "z"]] = space.places.reshape(-1, 3)
    return table.dropna(subset="x", ignore_index=True)  # without removed heads


def _trace(table: pd.DataFrame, hover_text: str, **extra: Any) -> dict[str, Any]:
    return {
        "mode": "markers",
        **{axis: table[axis] for axis in "xyz"},
        "hovertext": table["name"],
        "customdata": table[["layer", "head"]].values.tolist(),
        "hovertemplate": f"%{{hovertext}}<br>{hover_text}<extra></extra>",
        **extra,
    }


def _rings(table: pd.DataFrame, chosen: Sequence[Head]) -> dict[str, Any]:
    """The chosen heads, ringed and named."""
    rings = table[[head in chosen for head in zip(table["layer"], table["head"])]]
    return _trace(
        rings,
        "chosen",
        mode="markers+text",
        text=rings["name"] + "<br>",  # the empty line moves the name above the ring
        textposition="top center",
        textfont={"color": THEME_INK, "size": 13, "weight": "bold"},
        marker={"symbol": "circle-open", "color": THEME_INK, "size": 11, "line": {"width": 3, "color": THEME_INK}},
        showlegend=False,
    )


def _chart(title: str, space: HeadPlane, traces: Sequence[Mapping[str, Any]], camera: Camera) -> "go.Figure":
    import plotly.graph_objects as go  # imported only when a 3-D view is drawn

    return go.Figure([go.Scatter3d(trace) for trace in traces], _layout(title, space, camera))


def _layout(title: str, space: HeadPlane, camera: Camera) -> dict[str, Any]:
    flat = space.points
    middle = (flat.min(axis=0) + flat.max(axis=0)) / 2
    half = float(np.ptp(flat, axis=0).max()) / 2 * (1 + 2 * MARGIN) or 1.0
    axis = {
        "title": {"text": ""},
        "showticklabels": False,
        "showspikes": False,
        "showbackground": False,
        "zeroline": False,
        "gridcolor": GRID,
        "nticks": 5,
    }
    axes = {
        f"{name}axis": {**axis, "range": [center - half, center + half]}
        for name, center in zip("xyz", middle.tolist(), strict=True)
    }
    camera_settings = {name: dict(zip("xyz", getattr(camera, name))) for name in ("eye", "center", "up")}
    return {
        "height": HEIGHT,
        "margin": {"t": TOP, "b": 10, "l": 4, "r": 4},
        "title": heading(title, READING),
        "scene": {"aspectmode": "cube", "camera": camera_settings, **axes},
        "legend": {
            "orientation": "h",
            "y": 0,
            "yanchor": "top",
            "font": {"color": THEME_INK},
            "itemsizing": "constant",
        },
    }


def _from_one_side(figure: Figure, description: str) -> Figure:
    """A figure of a plane, with the subtitle of a view of three dimensions."""
    title = {**figure.spec["title"], "subtitle": list(STILL_READING)}
    return Figure({**figure.spec, "title": title}, figure.data, description)


def _seen_from(space: HeadPlane, camera: Camera) -> HeadPlane:
    """Orthographic projection of the points onto the plane perpendicular to the line of sight."""
    ahead = np.subtract(camera.center, camera.eye)
    right = np.cross(ahead, camera.up)
    axes: Float[np.ndarray, "2 3"] = np.stack([right, np.cross(right, ahead)])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return HeadPlane(places=space.places @ axes.T, stress=space.stress)


def _description(space: HeadPlane) -> str:
    return f"{len(space.points)} heads as points in three dimensions (stress {space.stress:.2f})."
