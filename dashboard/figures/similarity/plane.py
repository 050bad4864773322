"""Heads as points on a plane, similar heads close together: by kind, and by layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.layout import HeadPlane
from attention_sieve.dashboard.figures.appearance import AMOUNT, LESS, MORE
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    head_choice,
    head_rows,
    rows_of,
    template,
)
from attention_sieve.dashboard.figures.similarity.head_kinds import HeadKinds, KindLook, by_kind

HEIGHT: Final = 320
NARROWEST: Final = 300
"""Width in pixels on a phone."""
MARGIN: Final = 0.08
"""Margin around the outermost heads, relative to the width of the plane."""
OUTSIDE: Final = 0.05
"""Maximum share of the heads that lie outside of a closer view."""
WORTH: Final = 0.75
"""A closer view has at most this share of the width of the whole plane; otherwise there is none."""
SLACK: Final = 1.1
"""A closer view may be wider by this factor than without as many heads as can be outside, so that fewer are."""
FURTHER: Final = "arrow: the head lies further out in that direction"
READING: Final = ("close together: the heads attend alike", "only distances mean something; ringed: chosen")
RIM: Final = 0.9
"""Place of a head outside, from the middle of the visible part to its edge."""
MANY: Final = 400
"""Number of heads above which marks are small and without numbers."""
MARK: Final = 18.0
"""Diameter of a mark with its number, in pixels."""
RING: Final = 24.0
"""The same for a chosen head."""
NAME: Final = (50.0, 15.0)
"""Width and height of a name in pixels: "L23 H15" in bold."""
TILE: Final = "max(9, min(26, min(width, height) / 16))"
"""Side of a mark that is the pattern of its head, in pixels; an expression of Vega."""
PATTERNS: Final = "mark: its attention in one sentence"
REACHES: Final = (20, 26, 34, 42, 52, 64, 78, 94, 112, 132)
"""Candidate distances in pixels between the middles of a mark and its name; the smallest without overlap is used."""
N_DIRECTIONS: Final = 32

Patterns = Sequence[Sequence[str]] | None


def outermost(plane: HeadPlane) -> Bool[np.ndarray, "layer head"]:
    """The few heads so far out that the others would fill a small part of the plane; none where that is not so."""
    is_out = np.zeros(plane.places.shape[:2], bool)
    present = np.argwhere(~np.isnan(plane.places).any(axis=-1))
    reach = np.abs(plane.points - np.median(plane.points, axis=0)).max(axis=1)
    order = np.argsort(-reach, kind="stable")
    widths = [np.ptp(plane.points[order[n_out:]], axis=0).max() for n_out in range(int(OUTSIDE * len(order)) + 1)]
    if widths[-1] < WORTH * widths[0]:
        n_out = next(number for number, width in enumerate(widths) if width <= SLACK * widths[-1])
        is_out[tuple(present[order[:n_out]].T)] = True
        *middle, half = _span(plane, is_out)
        is_out &= np.abs(plane.places - middle).max(axis=-1) > half
    return is_out


def heads_by_kind(
    plane: HeadPlane,
    kinds: HeadKinds,
    chosen: Sequence[Head],
    outside: Bool[np.ndarray, "layer head"],
    patterns: Patterns = None,
) -> Figure:
    """The plane with the kind of each head as colour and mark.

    Args:
        outside: heads that are left out of the visible part, and marked at its rim, in their direction.
        patterns: address of a picture of each head, by layer, which is its mark; None for marks by kind or layer.

    Source: Clark et al. 2019, Figure 6, upper panel.
    """
    points = _points(plane, chosen, outside, patterns)
    points["kind of head"] = [
        kinds.look(layer, head).label for layer, head in zip(points["layer"].tolist(), points["head"].tolist())
    ]
    style = _style(plane, outside, points)
    spec = _kind_spec(kinds.title, kinds.present(), style)
    counts = points.loc[points["kind"] == "head", "kind of head"].value_counts(sort=False)
    kind_counts = ", ".join(f"{look.label} {counts[look.label]}" for look in kinds.present())
    return Figure(spec, points, f"{_description(plane)} Heads by {kinds.title}: {kind_counts}.")


def heads_by_layer(
    plane: HeadPlane, chosen: Sequence[Head], outside: Bool[np.ndarray, "layer head"], patterns: Patterns = None
) -> Figure:
    """The plane with the layer of each head as colour and number; arguments as for `heads_by_kind`.

    Source: Clark et al. 2019, Figure 6, lower panel.
    """
    points = _points(plane, chosen, outside, patterns)
    spec = _layer_spec(len(plane.places), _style(plane, outside, points))
    return Figure(spec, points, _description(plane))


@dataclass(frozen=True)
class _Style:
    """What the marks of a plane depend on."""

    span: tuple[float, float, float]
    many: bool
    has_outside: bool
    has_patterns: bool

    @property
    def reading(self) -> tuple[str, ...]:
        return (*((PATTERNS,) if self.has_patterns else ()), *READING, *((FURTHER,) if self.has_outside else ()))


def _style(plane: HeadPlane, outside: Bool[np.ndarray, "layer head"], points: pd.DataFrame) -> _Style:
    return _Style(_span(plane, outside), len(points) > MANY, bool(outside.any()), "pattern" in points)


def _points(
    plane: HeadPlane, chosen: Sequence[Head], outside: Bool[np.ndarray, "layer head"], patterns: Patterns
) -> pd.DataFrame:
    """Every head where it is drawn, those outside again, and the chosen ones with the positions of their names."""
    n_layers, n_heads, _ = plane.places.shape
    points = head_rows(n_layers, n_heads)
    points["x"], points["y"] = plane.places.reshape(-1, 2).T
    *middle, half = _span(plane, outside)
    points[["shown_x", "shown_y"]] = points[["x", "y"]]
    steps = plane.places[outside] - middle
    points.loc[outside.ravel(), "angle"] = np.degrees(np.arctan2(steps[:, 0], steps[:, 1]))  # clockwise from above
    inside = half * RIM / np.abs(steps).max(axis=1, keepdims=True)
    points.loc[outside.ravel(), ["shown_x", "shown_y"]] = middle + steps * inside
    points = points.dropna(subset="x", ignore_index=True)  # without removed heads
    places = points[["shown_x", "shown_y"]].to_numpy()
    ringed = [index for index, head in enumerate(zip(points["layer"], points["head"])) if head in chosen]
    # `half` is half of the visible height or width, whichever is smaller; the other side shows more.
    pixels = [side / (2 * half) for side in (HEIGHT, NARROWEST)]
    names = np.array(middle) + name_places(places - middle, ringed, np.full(2, half), pixels)
    named = points.iloc[ringed].assign(kind="chosen")
    named[["name_x", "name_y"]] = names
    named[["line_x", "line_y"]] = line_ends(names, named[["shown_x", "shown_y"]].to_numpy(), pixels[-1])
    if patterns is not None and len(points) <= MANY:
        points["pattern"] = [patterns[layer][head] for layer, head in zip(points["layer"], points["head"])]
    further = points.dropna(subset="angle").assign(kind="further")
    return pd.concat([points.assign(kind="head"), further, named], ignore_index=True)


def _description(plane: HeadPlane) -> str:
    return f"{len(plane.points)} heads as points on a plane (stress {plane.stress:.2f})."


def _span(plane: HeadPlane, outside: Bool[np.ndarray, "layer head"]) -> tuple[float, float, float]:
    """Middle of both axes, and half of their visible range, of the heads that are not outside."""
    flat = plane.places[~np.isnan(plane.places).any(axis=-1) & ~outside]
    low, high = flat.min(axis=0), flat.max(axis=0)
    half = float((high - low).max()) / 2 * (1 + 2 * MARGIN) or 1.0
    middle = (low + high) / 2
    return float(middle[0]), float(middle[1]), half


def _axes(span: tuple[float, float, float]) -> "tuple[alt.X, alt.Y]":
    """Both axes with the same number of pixels per unit, for any width of the figure."""

    def scale(middle: float, sides: str) -> alt.Scale:
        reach = f"{span[2]!r} * max(1, {sides})"
        # With given ends, Vega does not compute them before it has data, and does not warn that there is none.
        ends = [alt.expr(f"{middle!r} - {reach}"), alt.expr(f"{middle!r} + {reach}")]
        return alt.Scale(domain=ends, nice=False, zero=False)

    x = alt.X("shown_x:Q", axis=None, scale=scale(span[0], "width / height"))
    return x, alt.Y("shown_y:Q", axis=None, scale=scale(span[1], "height / width"))


def _heads(points: "alt.Chart", axes: "tuple[alt.X, alt.Y]") -> "alt.Chart":
    return points.encode(*axes, description=alt.Description("name:N")).add_params(head_choice())


def _chosen(axes: "tuple[alt.X, alt.Y]", style: _Style) -> "tuple[alt.Chart, ...]":
    """Rings around the chosen heads, or frames around their patterns, their names, and lines between the two."""
    x, y = (axis.copy() for axis in axes)
    x.shorthand, y.shorthand = "name_x:Q", "name_y:Q"
    line = rows_of("chosen").mark_rule(color=INK, strokeWidth=1, opacity=0.6, tooltip=False)
    shape, size = ("square", alt.expr(f"pow({TILE} + 5, 2)")) if style.has_patterns else ("circle", 320)
    ring = rows_of("chosen").mark_point(
        shape=shape, filled=False, color=INK, size=size, strokeWidth=2.5, opacity=1, tooltip=False
    )
    name = rows_of("chosen").mark_text(color=INK, fontWeight="bold", fontSize=12, baseline="middle", tooltip=False)
    return (
        line.encode(*axes, x2=alt.X2("line_x:Q"), y2=alt.Y2("line_y:Q")),
        ring.encode(*axes),
        name.encode(x, y, text=alt.Text("name:N")),
    )


def _further(axes: "tuple[alt.X, alt.Y]", style: _Style) -> "alt.Chart":
    arrow = rows_of("further").mark_text(
        text="↑",
        dy=-24 if style.has_patterns else -16,
        color=INK,
        fontWeight="bold",
        fontSize=16,
        baseline="middle",
        tooltip=False,
    )
    return arrow.encode(*axes, angle=alt.Angle("angle:Q", scale=None))


def _framed(points: "alt.Chart", axes: "tuple[alt.X, alt.Y]", **encoded: Any) -> "tuple[alt.Chart, ...]":
    """The patterns of heads, and above them frames, which a click chooses from."""
    side = alt.expr(TILE)
    image = points.mark_image(width=side, height=side, tooltip=False).encode(*axes, url=alt.Url("pattern:N"))
    frame = points.mark_point(
        shape="square", size=alt.expr(f"pow({TILE}, 2)"), fill="transparent", strokeWidth=2, opacity=1, cursor="pointer"
    )
    return image, _heads(frame.encode(**encoded), axes)


@lru_cache(maxsize=32)
def _kind_spec(title: str, looks: tuple[KindLook, ...], style: _Style) -> Spec:
    axes, points = _axes(style.span), rows_of("head")
    colors = [look.color for look in looks]
    tooltip = tooltips(("name", "head"), ("kind of head", title))
    if style.has_patterns:
        marks = _framed(points, axes, stroke=by_kind(alt.Stroke, title, looks, colors), tooltip=tooltip)
    else:
        points = points.mark_point(filled=True, size=30 if style.many else 90, opacity=0.85, cursor="pointer")
        shape = by_kind(alt.Shape, title, looks, [look.shape for look in looks])
        color = by_kind(alt.Color, title, looks, colors)
        marks = (_heads(points.encode(color=color, shape=shape, tooltip=tooltip), axes),)
    return _plane(marks, axes, style, title)


@lru_cache(maxsize=32)
def _layer_spec(n_layers: int, style: _Style) -> Spec:
    axes, points = _axes(style.span), rows_of("head")
    scale = alt.Scale(domain=[0, max(1, n_layers - 1)], range=[LESS, AMOUNT, MORE])
    legend = alt.Legend(orient="bottom", title="layer", format="d", tickMinStep=1, gradientLength=160)
    tooltip = tooltips(("name", "head"), "layer")
    if style.has_patterns:
        marks = _framed(points, axes, stroke=alt.Stroke("layer:Q", scale=scale, legend=legend), tooltip=tooltip)
        return _plane(marks, axes, style, "layer")
    size = 40 if style.many else 200
    dots = points.mark_point(shape="circle", filled=True, size=size, opacity=0.9, cursor="pointer")
    marks = (_heads(dots.encode(color=alt.Color("layer:Q", scale=scale, legend=legend), tooltip=tooltip), axes),)
    if not style.many:
        numbers = points.mark_text(color="#FFFFFF", fontWeight="bold", fontSize=10, tooltip=False, cursor="pointer")
        marks += (numbers.encode(*axes, text=alt.Text("layer:N")),)
    return _plane(marks, axes, style, "layer")


def _plane(marks: "Sequence[alt.Chart]", axes: "tuple[alt.X, alt.Y]", style: _Style, by: str) -> Spec:
    further = [_further(axes, style)] if style.has_outside else []
    chart = alt.layer(*marks, *further, *_chosen(axes, style))
    return template(chart, title=f"Heads by {by}", reading=style.reading, height=HEIGHT)


def name_places(
    marks: Float[np.ndarray, "head 2"],
    chosen: Sequence[int],
    half: Float[np.ndarray, " 2"],
    pixels: Sequence[float],
) -> Float[np.ndarray, "chosen 2"]:
    """The middle of each chosen head's name, such that it overlaps no mark and no other name.

    Args:
        marks: coordinates of each head relative to the middle of the picture, in any unit.
        chosen: the heads that are named, as rows of `marks`.
        half: half the visible width and height, in the same unit.
        pixels: pixels per unit for each possible size of the picture, the largest first; a name must not overlap in
            any of them.

    Returns: coordinates of each name, in the unit of `marks`. If every position overlaps, the one with the fewest
        overlaps.
    """
    # Offsets from a mark to its name in pixels, the nearest and uppermost first.
    directions = sorted(range(N_DIRECTIONS), key=lambda direction: min(direction, N_DIRECTIONS - direction))
    angles = 2 * np.pi * np.array(directions) / N_DIRECTIONS
    vectors = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    offsets = (np.array(REACHES)[:, None, None] * vectors).reshape(-1, 2) / pixels[0]
    placed: list[np.ndarray] = []
    for head in chosen:
        places = marks[head] + offsets
        overlaps = np.zeros(len(places))
        for scale in pixels:
            overlaps += (np.abs(places) + np.array(NAME) / 2 / scale > half).any(axis=-1) * len(marks)
            sizes = np.full(len(marks), MARK)
            sizes[list(chosen)] = RING
            overlaps += _n_overlaps(places, marks, sizes[:, None] + np.array(NAME), scale)
            if placed:
                overlaps += _n_overlaps(places, np.stack(placed), 2 * np.array(NAME), scale)
        placed.append(places[overlaps.argmin()])
    return np.stack(placed) if placed else np.empty((0, 2))


def line_ends(
    names: Float[np.ndarray, "chosen 2"], marks: Float[np.ndarray, "chosen 2"], pixels: float
) -> Float[np.ndarray, "chosen 2"]:
    """End of the line from each mark to its name, at the edge of the name; `pixels` per unit."""
    steps = marks - names
    shares = np.array(NAME) / 2 / pixels / np.maximum(np.abs(steps), 1e-9)
    return names + steps * np.minimum(shares.min(axis=1, keepdims=True), 1)


def _n_overlaps(
    places: Float[np.ndarray, "place 2"], others: Float[np.ndarray, "other 2"], sizes: np.ndarray, scale: float
) -> Float[np.ndarray, " place"]:
    """Number of others that a name would overlap at each place; `sizes` are the sums of both sizes, in pixels."""
    gaps = np.abs(places[:, None] - others) * scale
    return (2 * gaps < sizes).all(axis=-1).sum(axis=1).astype(float)
