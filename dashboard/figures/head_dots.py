"""One dot per head by layer: numbers of several series side by side, with the mean of each layer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import INK, Figure, Spec, layer, picture

Head = tuple[int, int]
WIDTH: Final = 0.8
"""Part of a layer's place over which its dots are spread."""
MARKS: Final = ("circle", "triangle-up", "square", "diamond")
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
HEIGHT: Final = 260
MANY: Final = 600
"""Dots above which each is small and faint."""
CHOICE: Final = "head"
"""Name of the selection that a click on a dot makes; its fields are `layer` and `head`."""
NOTHING: Final = "Not applicable: no text has a value for any head."


@dataclass(frozen=True)
class Axis:
    """What is written along the value axis, and how its numbers are."""

    title: str
    format: str
    """As d3 formats numbers."""
    most: float | None = None
    """End of the axis; None for what the values ask."""

    def written(self, value: float) -> str:
        """A value in a sentence."""
        return f"{100 * value:.3g} %" if self.format.endswith("%") else f"{value:.3g}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """One number of every head."""

    label: str
    mean: Float[np.ndarray, "layer head"]
    """NaN where it does not apply."""
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    """Interval over the texts; NaN where there is none."""
    n_texts: int


def head_dots(
    series: Sequence[Series],
    axis: Axis,
    *,
    title: str,
    reading: Sequence[str],
    means: bool = True,
    level: tuple[str, Float[np.ndarray, " layer"]] | None = None,
    chosen: Sequence[Head] = (),
) -> Figure:
    """Draw every head's number against its layer; the description names no number and is the caller's to extend.

    Args:
        series: side by side within a layer, each with its own colour, mark and dash.
        axis: of the values.
        title: what is drawn.
        reading: how to read it.
        means: whether a line joins the means of the layers.
        level: name of a line across, and its value in each layer; NaN leaves a layer out.
        chosen: heads that are ringed.
    """
    dots = pd.concat([_dots(one, number, len(series)) for number, one in enumerate(series)])
    of_layers = dots.groupby(["series", "label", "layer"], as_index=False)["value"].mean()
    lines = of_layers.assign(kind="mean", place=of_layers["layer"]) if means else of_layers[:0]
    rings = dots[[head in chosen for head in zip(dots["layer"], dots["head"])]].assign(kind="chosen")
    rest = [] if level is None else _steps(*level)
    rest += [] if len(dots) else [{"kind": "note", "label": NOTHING}]
    labels = tuple(one.label for one in series)
    spec = _spec(labels, axis, title, tuple(reading), len(series[0].mean), len(dots) > MANY)
    return Figure(
        spec, pd.concat([dots, lines, rings, pd.DataFrame(rest)]), " ".join(_of_series(one, axis) for one in series)
    )


def _dots(series: Series, number: int, n_series: int) -> pd.DataFrame:
    n_heads = series.mean.shape[1]
    place, head = np.indices(series.mean.shape).reshape(2, -1)
    dots = pd.DataFrame(
        {
            **{"kind": "dot", "series": number, "label": series.label, "layer": place, "head": head},
            **{"name": [f"L{at} H{of}" for at, of in zip(place.tolist(), head.tolist())], "texts": series.n_texts},
            **{"value": series.mean.ravel(), "low": series.low.ravel(), "high": series.high.ravel()},
            "place": place + WIDTH * ((number + (head + 0.5) / n_heads) / n_series - 0.5),
        }
    )
    return dots[dots["value"].notna()]


def _steps(label: str, values: Float[np.ndarray, " layer"]) -> list[dict[str, object]]:
    """A line that is level within each layer, named where it begins."""
    steps: list[dict[str, object]] = [
        {"kind": "level", "place": place + side, "value": value}
        for place, value in enumerate(values.tolist())
        for side in (-0.5, 0.5)
        if not np.isnan(value)
    ]
    return [*steps, {**steps[0], "kind": "level name", "label": label}] if steps else []


def _of_series(series: Series, axis: Axis) -> str:
    if np.isnan(series.mean).all():
        return f"{series.label}: not applicable."
    layer_, head = np.unravel_index(np.nanargmax(series.mean), series.mean.shape)
    n_without = int(np.isnan(series.mean).sum())
    without = f" {n_without} heads without a value left out." if n_without else ""
    most = f"highest {axis.written(series.mean[layer_, head])} for L{layer_} H{head}"
    return f"{series.label}: {axis.written(float(np.nanmean(series.mean)))} on average, {most}.{without}"


def by_series(labels: Sequence[str], looks: Sequence[object]) -> Spec:
    """A channel that tells series, which are numbered in order, apart.

    Args:
        labels: of the series.
        looks: colours, marks or dashes, one or more.
    """
    numbers = list(range(len(labels)))
    named = {
        **{"orient": "bottom", "columns": 2, "title": None, "symbolOpacity": 1, "labelLimit": 0, "symbolSize": 90},
        "symbolStrokeWidth": 0,
        "labelExpr": f"{json.dumps(list(labels))}[datum.value]",
    }
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": numbers, "range": [looks[number % len(looks)] for number in numbers]},
        "legend": named if len(labels) > 1 else None,
    }


def layers_axis(n_layers: int) -> Spec:
    """Layers from left to right, as a position in which there is room between them."""
    return {
        "field": "place",
        "type": "quantitative",
        "title": "layer (0 is next to the input)",
        "scale": {"domain": [-0.5, n_layers - 0.5], "nice": False, "zero": False},
        "axis": {"values": list(range(n_layers)), "format": "d", "labelOverlap": "greedy", "grid": False},
    }


def values_axis(axis: Axis) -> Spec:
    """Values from bottom to top, from 0 on."""
    scale = {"zero": True, "domainMin": 0} if axis.most is None else {"domain": [0, axis.most], "nice": False}
    return {
        "field": "value",
        "type": "quantitative",
        "title": axis.title,
        "scale": scale,
        "axis": {"format": axis.format, "tickCount": 5},
    }


@lru_cache(maxsize=64)
def _spec(labels: tuple[str, ...], axis: Axis, title: str, reading: tuple[str, ...], n_layers: int, many: bool) -> Spec:
    x, y = layers_axis(n_layers), values_axis(axis)
    color, shape = by_series(labels, HEAD_COLORS), by_series(labels, MARKS)
    number = {"field": "value", "format": axis.format}
    about = [{"field": "label", "title": "what"}, {"field": "name", "title": "head"}, {**number, "title": "mean"}]
    about += [{**number, "field": field, "title": name} for field, name in (("low", "interval from"), ("high", "to"))]
    about += [{"field": "texts", "title": "texts"}]
    dots = layer(
        "dot",
        {
            "type": "point",
            "filled": True,
            "cursor": "pointer",
            "size": 14 if many else 34,
            "opacity": 0.55 if many else 0.8,
        },
        x=x,
        y=y,
        color=color,
        shape=shape,
        tooltip=about,
    )
    dots["params"] = [{"name": CHOICE, "select": {"type": "point", "fields": ["layer", "head"]}}]
    ring = {"type": "point", "filled": False, "color": INK, "size": 130, "strokeWidth": 2, "opacity": 1}
    line = {"type": "line", "strokeWidth": 2, "aria": False}
    label = {"type": "text", "color": INK, "align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "fontSize": 11}
    note = {"type": "text", "color": INK, "fontSize": 13, "align": "left"}
    dash = by_series(labels, DASHES)
    level = {"type": "line", "color": INK, "strokeDash": [5, 3], "strokeWidth": 1.5, "aria": False}
    return picture(
        [
            layer("level", level, x=x, y=y),
            dots,
            layer("mean", line, x=x, y=y, color=color, strokeDash=dash),
            layer("chosen", ring, x=x, y=y, tooltip=about),
            layer("level name", label, x={"value": 0}, y=y, text={"field": "label"}),
            layer("note", note, x={"value": 8}, y={"value": 24}, text={"field": "label"}),
        ],
        title=title,
        reading=reading,
        height=HEIGHT,
    )
