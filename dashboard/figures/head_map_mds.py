"""Heads as points on a plane, those that attend alike close together: by kind, and by layer."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from core.head_layout import HeadPlane
from core.similar_heads import Head
from dashboard.figures.appearance import AMOUNT, LESS, MORE
from dashboard.figures.figure import INK, Figure, Spec, layer, picture
from dashboard.figures.head_dots import CHOICE
from dashboard.figures.head_kinds import HeadKinds, Look, by_kind, head_rows

HEIGHT: Final = 380
MARGIN: Final = 0.08
"""Of the plane's width that is left free around the outermost heads."""
_SPOKEN: Final = {"description": {"field": "name"}}
"""What a screen reader says of a point, instead of where it lies."""
READING: Final = ("close together: the heads attend alike", "only distances mean something; ringed: chosen")
MANY: Final = 400
"""Heads above which each mark is small and bears no number."""


def heads_by_kind(plane: HeadPlane, kinds: HeadKinds, chosen: Sequence[Head]) -> Figure:
    """The plane with the kind of each head as colour and mark.

    Args:
        plane: where each head is.
        kinds: of the heads.
        chosen: heads that are ringed.

    Source: Clark et al. 2019, Figure 6, upper panel.
    """
    points = _points(plane, chosen)
    points["kind of head"] = [
        kinds.look(at, of).label for at, of in zip(points["layer"].tolist(), points["head"].tolist())
    ]
    spec = _kind_spec(kinds.title, kinds.present(), _span(plane), len(points) > MANY)
    counts = points.loc[points["kind"] == "head", "kind of head"].value_counts(sort=False)
    said = ", ".join(f"{look.label} {counts[look.label]}" for look in kinds.present())
    return Figure(spec, points, f"{_description(plane)} Heads by {kinds.title}: {said}.")


def heads_by_layer(plane: HeadPlane, chosen: Sequence[Head]) -> Figure:
    """The plane with the layer of each head as colour and number.

    Source: Clark et al. 2019, Figure 6, lower panel.
    """
    points = _points(plane, chosen)
    return Figure(_layer_spec(len(plane.places), _span(plane), len(points) > MANY), points, _description(plane))


def _points(plane: HeadPlane, chosen: Sequence[Head]) -> pd.DataFrame:
    """Every head, and once more those that are chosen."""
    n_layers, n_heads, _ = plane.places.shape
    points = head_rows(n_layers, n_heads)
    points["x"], points["y"] = plane.places.reshape(-1, 2).T
    rings = [head in chosen for head in zip(points["layer"], points["head"])]
    return pd.concat([points.assign(kind="head"), points[rings].assign(kind="chosen")], ignore_index=True)


def _description(plane: HeadPlane) -> str:
    n_layers, n_heads, _ = plane.places.shape
    return f"{n_layers * n_heads} heads as points on a plane (stress {plane.stress:.2f})."


def _span(plane: HeadPlane) -> tuple[float, float, float]:
    """Middle of both axes, and half of what has to be seen of each, rounded so that equal planes have equal specs."""
    flat = plane.places.reshape(-1, 2)
    low, high = flat.min(axis=0), flat.max(axis=0)
    half = float((high - low).max()) / 2 * (1 + 2 * MARGIN) or 1.0
    middle = (low + high) / 2
    return float(middle[0]), float(middle[1]), half


def _axes(span: tuple[float, float, float]) -> dict[str, Spec]:
    """Both axes with as many pixels to a unit, however wide the figure is."""
    axes = {}
    for field, middle, other in (("x", span[0], "width / height"), ("y", span[1], "height / width")):
        reach = f"{span[2]!r} * max(1, {other})"
        ends = {"domainMin": {"expr": f"{middle!r} - {reach}"}, "domainMax": {"expr": f"{middle!r} + {reach}"}}
        scale = {**ends, "nice": False, "zero": False}
        axes[field] = {"field": field, "type": "quantitative", "axis": None, "scale": scale}
    return axes


def _tooltip(*more: tuple[str, str]) -> list[Spec]:
    return [{"field": field, "title": title} for field, title in (("name", "head"), *more)]


def _selectable(spec: Spec) -> Spec:
    return {**spec, "params": [{"name": CHOICE, "select": {"type": "point", "fields": ["layer", "head"]}}]}


def _plane(layers: Sequence[Spec], axes: dict[str, Spec], title: str, **more: Any) -> Spec:
    ring = {"type": "point", "shape": "circle", "filled": False, "color": INK, "size": 320, "strokeWidth": 2.5}
    chosen = layer("chosen", {**ring, "opacity": 1, "tooltip": False}, **axes)
    label = {"type": "text", "color": INK, "fontWeight": "bold", "fontSize": 12, "dy": -17, "tooltip": False}
    name = layer("chosen", label, **axes, text={"field": "name"})
    return picture([*layers, chosen, name], title=title, reading=READING, height=HEIGHT, **more)


@lru_cache(maxsize=32)
def _kind_spec(title: str, looks: tuple[Look, ...], span: tuple[float, float, float], many: bool) -> Spec:
    axes = _axes(span)
    mark = {"type": "point", "filled": True, "size": 30 if many else 90, "opacity": 0.85, "cursor": "pointer"}
    color = by_kind(title, looks, tuple(look.color for look in looks))
    shape = by_kind(title, looks, tuple(look.shape for look in looks))
    points = layer("head", mark, **axes, color=color, shape=shape, tooltip=_tooltip(("kind of head", title)), **_SPOKEN)
    return _plane([_selectable(points)], axes, f"Heads by {title}")


@lru_cache(maxsize=32)
def _layer_spec(n_layers: int, span: tuple[float, float, float], many: bool) -> Spec:
    axes = _axes(span)
    color = {
        "field": "layer",
        "type": "quantitative",
        "scale": {"domain": [0, max(1, n_layers - 1)], "range": [LESS, AMOUNT, MORE]},
        "legend": {"orient": "bottom", "title": "layer", "format": "d", "tickMinStep": 1, "gradientLength": 160},
    }
    mark = {"type": "point", "shape": "circle", "filled": True, "size": 40 if many else 200, "opacity": 0.9}
    points = layer(
        "head", {**mark, "cursor": "pointer"}, **axes, color=color, tooltip=_tooltip(("layer", "layer")), **_SPOKEN
    )
    number = {"type": "text", "color": "#FFFFFF", "fontWeight": "bold", "fontSize": 10, "tooltip": False}
    numbers = [] if many else [layer("head", {**number, "cursor": "pointer"}, **axes, text={"field": "layer"})]
    return _plane([_selectable(points), *numbers], axes, "Heads by layer")
