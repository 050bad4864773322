"""Axes, scales, legends and notes that several figures share."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, HIGHEST_TAU, LOOKS
from attention_sieve.dashboard.figures.figure import INK, alt, rows_of

SCORE_TICKS: Final[dict[Scale, tuple[float, ...]]] = {
    "score": (0, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000),
    "share": (-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8, 1),
}
LEGEND_SYMBOL: Final = 30
"""Pixels of a mark in a legend and of the room around it."""
LEGEND_SIGN: Final = 7
"""Pixels of a letter in a legend, at most on average."""
MARKS: Final = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down", "triangle-right")
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
"""Of series: seven and five, so that 35 series differ without their colours."""
MARKED: Final = (0, *(step * size for size in (1, 10, 100, 1_000) for step in (1, 2, 5)))
"""Numbers of heads that are marked on an axis."""
Ends = tuple[float, float]
LAYER_AXIS: Final = "layer (0 is next to the input)"
STEP_AXIS: Final = "training step (0: before training)"


@dataclass(frozen=True)
class ValueAxis:
    title: str
    format: str
    most: float

    def written(self, value: float) -> str:
        return f"{100 * value:.3g}%" if self.format.endswith("%") else f"{value:.3g}"


def values_axis(axis: ValueAxis) -> "alt.Y":
    """Position of the field `value`, from 0 at the bottom."""
    scale = alt.Scale(domain=[0, axis.most], nice=False)
    return alt.Y("value:Q", title=axis.title, scale=scale, axis=alt.Axis(format=axis.format, tickCount=5))


def shares_axis(field: str, title: str, end: float = 1) -> "alt.X":
    """Position of shares from 0 on the left, with lines at the quarters."""
    return alt.X(
        field,
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=[0, end], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format="%", grid=True, gridColor=INK, gridOpacity=0.15),
    )


def places_axis(field: str, n_places: int, margin: float, title: str = LAYER_AXIS) -> "alt.X":
    """Layers, or other numbered places, from left to right, with a margin of so many places at both ends."""
    return alt.X(
        field,
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=[-margin, n_places - 1 + margin], nice=False, zero=False),
        axis=alt.Axis(values=list(range(n_places)), format="d", labelOverlap="greedy", grid=False),
    )


def apart(values: Float[np.ndarray, " line"], ends: Ends, least: float) -> Float[np.ndarray, " line"]:
    """Heights for the names of lines: near their values, at least so far apart, within the ends if there is room."""
    heights, order = values.copy(), np.argsort(values, kind="stable")
    heights[order[0]] = max(heights[order[0]], ends[0])
    for lower, line in pairwise(order):
        heights[line] = max(heights[line], heights[lower] + least)
    heights[order[-1]] = min(heights[order[-1]], ends[1])
    for higher, line in pairwise(order[::-1]):
        heights[line] = min(heights[line], heights[higher] - least)
    return heights


def has_room(places: Float[np.ndarray, "label 2"], room: tuple[float, float]) -> list[bool]:
    """Which labels to draw so that no two overlap: earlier ones first.

    Args:
        places: across and up, in the units of `room`.
        room: width and height of a label.
    """
    drawn = list[Float[np.ndarray, " 2"]]()
    is_drawn = []
    for place in places:
        is_drawn.append(not any((np.abs(place - other) < room).all() for other in drawn))
        if is_drawn[-1]:
            drawn.append(place)
    return is_drawn


def steps_position(field: str, title: str, last: int) -> "alt.X":
    """Axis of training steps, as whole numbers from 0 to the last step."""
    return alt.X(
        field,
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=[0, last], nice=False),
        axis=alt.Axis(
            tickCount=alt.expr("ceil(width / 80)"),
            labelExpr="datum.value == floor(datum.value) ? format(datum.value, ',d') : ''",
            labelOverlap="greedy",
            grid=False,
        ),
    )


def round_ends(values: Iterable[float]) -> Ends:
    """Both ends of an axis around 0 and all finite values, at round numbers.

    Without given ends, Vega computes them before the page passes it the data, and warns that there is none.
    """
    finite = [0.0, *(float(value) for value in values if math.isfinite(value))]
    low, high = min(finite), max(finite)
    if low == high:
        return 0, 1
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(step for step in (power / 10, power / 5, power / 2, power) if high - low <= 10 * step)
    return float(f"{step * math.floor(low / step):.12g}"), float(f"{step * math.ceil(high / step):.12g}")


def score_position(channel: Any, field: str, scale: Scale, title: str, ends: Ends) -> Any:
    """Position of a score: on a scale of log(1 + score), which includes 0 and compresses; of shares on a linear one."""
    along = alt.Scale(type="symlog", constant=1, domain=list(ends), nice=False)
    if scale == "share":
        along = alt.Scale(domain=list(ends), nice=False)
    ticks = alt.Axis(values=list(SCORE_TICKS[scale]), format="~g", labelOverlap="greedy", grid=False)
    return channel(field, type="quantitative", title=title, scale=along, axis=ticks)


def score_ends(data: pd.DataFrame, fields: Sequence[str], scale: Scale) -> Ends:
    """Both ends of an axis of scores: the ticks around all of them and around every tau.

    As `round_ends`, but at the ticks of scores. They do not depend on tau, so the axis stays the same when tau changes.
    """
    scores = data.reindex(columns=list(fields)).to_numpy(float)
    scores = [HIGHEST_TAU[scale], *scores[np.isfinite(scores)].tolist()]
    ticks = SCORE_TICKS[scale]
    below = ticks if scale == "share" else (*(-tick for tick in reversed(ticks)), 0)  # intervals can start below 0
    least = max((tick for tick in below if tick <= min(scores)), default=below[0])
    return min(least, 0), min((tick for tick in ticks if tick >= max(scores)), default=ticks[-1])


def heads_axis(channel: Any, field: str, n_heads: int) -> Any:
    """Numbers of heads on a square-root scale, on which both small and large numbers are legible."""
    scale = alt.Scale(type="sqrt", domain=[0, n_heads], nice=False)
    axis = alt.Axis(values=[number for number in MARKED if number <= n_heads], format=",d", labelOverlap="greedy")
    return channel(field, type="quantitative", title="heads, on a square-root scale", scale=scale, axis=axis)


def role_colors(channel: Any, roles: Sequence[str], legend: "alt.Legend | None" = None) -> Any:
    scale = alt.Scale(domain=list(roles), range=[LOOKS[role].color for role in roles])
    return channel("role", type="nominal", scale=scale, legend=legend)


def role_shapes(roles: Sequence[str], legend: "alt.Legend | None" = None) -> "alt.Shape":
    scale = alt.Scale(domain=list(roles), range=[LOOKS[role].shape for role in roles])
    return alt.Shape("role", type="nominal", scale=scale, legend=legend)


def role_legend(labels: Mapping[str, str], title: str | None = None) -> "alt.Legend":
    return alt.Legend(
        orient="bottom", columns=2, title=title, symbolOpacity=1, labelExpr=f"{json.dumps(labels)}[datum.label]"
    )


def lettered_legend(roles: Sequence[str]) -> "alt.Legend | None":
    """Legend of roles with their letters; None for a single role."""
    return role_legend({role: LOOKS[role].lettered for role in roles}) if len(roles) > 1 else None


def series_channel(channel: Any, labels: Sequence[str], looks: Sequence[object]) -> Any:
    """Channel that distinguishes series, with a legend if there are several; looks repeat if there are more series."""
    numbers = list(range(len(labels)))
    scale = alt.Scale(domain=numbers, range=[looks[number % len(looks)] for number in numbers])
    legend = alt.Legend(
        orient="bottom",
        columns=alt.expr(f"max(1, min({len(labels)}, floor(2 * width / {_width_of_two(labels)})))"),
        title=None,
        symbolOpacity=1,
        symbolSize=90,
        symbolStrokeWidth=0,
        labelLimit=0,
        labelExpr=f"{json.dumps(list(labels))}[datum.value]",
    )
    return channel("series", type="nominal", scale=scale, legend=legend if len(labels) > 1 else None)


def series_line(rows: "alt.Chart", labels: Sequence[str]) -> "alt.Chart":
    """A line for each series in a colour and dash of its own, through rows that have their positions."""
    color, dash = series_channel(alt.Color, labels, HEAD_COLORS), series_channel(alt.StrokeDash, labels, DASHES)
    return rows.mark_line(strokeWidth=2).encode(color=color, strokeDash=dash)


def series_points(rows: "alt.Chart", labels: Sequence[str], tooltip: "list[alt.Tooltip]", size: int) -> "alt.Chart":
    """A mark at each row, in the colour of its series and a shape that tells them apart without colours."""
    return rows.mark_point(filled=True, size=size, opacity=1).encode(
        color=series_channel(alt.Color, labels, HEAD_COLORS),
        shape=series_channel(alt.Shape, labels, MARKS),
        tooltip=tooltip,
    )


def role_curves(
    line: "alt.Chart", points: "alt.Chart", roles: Sequence[str], tooltip: "list[alt.Tooltip]"
) -> "list[alt.Chart]":
    """A line for each role, and marks that distinguish roles without colours."""
    legend = lettered_legend(roles)
    color = role_colors(alt.Color, roles, legend)
    marks = points.mark_point(filled=True, size=34, opacity=1)
    return [
        line.mark_line(strokeWidth=2).encode(color=color),
        marks.encode(color=color, shape=role_shapes(roles, legend), tooltip=tooltip),
    ]


def learning_curve(rows: "alt.Chart", is_validation: bool, tooltip: "list[alt.Tooltip]") -> "list[alt.Chart]":
    """A line with its points: blue and round for training texts, else orange, square, and dashed beside the former."""
    number, shape, dash = (1, "square", [5, 3]) if is_validation else (0, "circle", [1, 0])
    look = {"color": HEAD_COLORS[number]}
    points = rows.mark_point(filled=True, opacity=1, shape=shape, size=30, **look)
    return [rows.mark_line(strokeWidth=2, strokeDash=dash, **look), points.encode(tooltip=tooltip)]


def _width_of_two(labels: Sequence[str]) -> int:
    """Approximate width in pixels of two columns of a legend."""
    return max(300, 2 * (LEGEND_SYMBOL + LEGEND_SIGN * max(map(len, labels), default=0)))


def lane_scale(n_lanes: int) -> "alt.Scale":
    """Scale of stacked rows of bars or lines, each 1 high."""
    return alt.Scale(domain=[0, n_lanes], nice=False, zero=True)


def lane_names(names: Sequence[Sequence[str]], middle: float) -> "alt.Axis":
    """Names of the lanes on the left, each as lines of text, from the bottom lane to the top one."""
    return alt.Axis(
        values=[lane + middle for lane in range(len(names))],
        labelExpr=f"{json.dumps(names)}[floor(datum.value)]",
        title=None,
        grid=False,
        ticks=False,
        domain=False,
        labelPadding=8,
    )


def lane_ends(n_lanes: int, full: float, most: str, title: str) -> "alt.Axis":
    """Axis of every lane on the right: 0 at the bottom, and the value of a bar of full height."""
    return alt.Axis(
        values=[value for lane in range(n_lanes) for value in (lane, lane + full)],
        labelExpr=f"datum.value == floor(datum.value) ? '0' : '{most}'",
        orient="right",
        title=title,
        grid=True,
        ticks=False,
        domain=False,
        labelOverlap=False,
    )


def tooltips(*fields: str | tuple[str, ...]) -> "list[alt.Tooltip]":
    """What a tooltip says of a mark.

    Args:
        fields: each a field that is its own title, or a field with a title and, for a number, a format of d3.
    """
    rows = [(field, field) if isinstance(field, str) else field for field in fields]
    return [alt.Tooltip(f"{field}:N", **dict(zip(("title", "format"), more))) for field, *more in rows]


def note() -> "alt.Chart":
    """Text of a figure that has nothing to draw."""
    text = rows_of("note").mark_text(color=INK, fontSize=13, align="left")
    return text.encode(x=alt.XValue(8), y=alt.YValue(24), text=alt.Text("label:N"))


def note_rows(is_empty: bool, label: str) -> pd.DataFrame:
    """The row that `note` draws; no rows if there is something else to draw."""
    return pd.DataFrame([{"kind": "note", "label": label}] if is_empty else [])
