"""One dot per head by layer: numbers of several series side by side, with the mean of each layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name, highest_head
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    counted,
    head_choice,
    rows_of,
    template,
)

HALF: Final = 0.5
"""Room left of the first layer and right of the last one, in layers."""
WIDTH: Final = 0.8
"""Width over which the dots of a layer are spread, in layers."""
HEIGHT: Final = 260
FAR: Final = 1.5
"""Interquartile ranges above the upper quartile of a series beyond which a dot is an outlier (Tukey's fences)."""
MOST_NAMED: Final = 12
NAME_ROOM: Final = (0.06, 0.045)
"""Width and height of the name of a head, as parts of the axes."""
MANY: Final = 600
"""Number of dots above which they are small and faint."""
NOTHING: Final = "Not applicable: no text has a value for any head."


@dataclass(frozen=True, eq=False, kw_only=True)
class DotSeries:
    label: str
    mean: Float[np.ndarray, "layer head"]
    """Mean over the texts; NaN where not applicable."""
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    """Interval over the texts; NaN for none."""
    n_texts: int


def head_dots(
    series: Sequence[DotSeries],
    axis: axes.ValueAxis,
    *,
    title: str,
    means: bool = True,
    level: tuple[str, Float[np.ndarray, " layer"]] | None = None,
    chosen: Sequence[Head],
) -> Figure:
    """Draw numbers of every head against its layer; the caller completes the description.

    Args:
        series: side by side within a layer, each with its own colour, mark and dash.
        means: whether to draw a line through the means of the layers.
        level: name of a horizontal line, and its value in each layer; NaN leaves a layer out.
    """
    dots = pd.concat([_dots(numbers, number, len(series)) for number, numbers in enumerate(series)])
    layer_means = dots.groupby(["series", "label", "layer"], as_index=False)["value"].mean()
    middles = layer_means["layer"] + _offset(layer_means["series"] + 0.5, len(series))
    lines = layer_means.assign(kind="mean", place=middles) if means else layer_means[:0]
    rings = dots[[head in chosen for head in zip(dots["layer"], dots["head"])]].assign(kind="chosen")
    steps = pd.DataFrame([] if level is None else _steps(*level))
    edges = pd.DataFrame({"kind": "edge", "place": np.arange(1, len(series[0].mean)) - 0.5})
    labels = tuple(numbers.label for numbers in series)
    spec = _spec(labels, axis, title, means, len(series[0].mean), len(dots) > MANY)
    data = pd.concat(
        [edges, dots, lines, _outliers(dots, axis.most), rings, steps, axes.note_rows(dots.empty, NOTHING)]
    )
    return Figure(spec, data, " ".join(_of_series(numbers, axis) for numbers in series))


def _dots(series: DotSeries, number: int, n_series: int) -> pd.DataFrame:
    n_heads = series.mean.shape[1]
    layer, head = np.indices(series.mean.shape).reshape(2, -1)
    dots = pd.DataFrame(
        {
            "kind": "dot",
            "series": number,
            "label": series.label,
            "layer": layer,
            "head": head,
            "name": [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())],
            "texts": series.n_texts,
            "value": series.mean.ravel(),
            "low": series.low.ravel(),
            "high": series.high.ravel(),
            "place": layer + _offset(number + (head + 0.5) / n_heads, n_series),
        }
    )
    return dots[dots["value"].notna()]


def _offset(place: Any, n_series: int) -> Any:
    """Distance of a place among series, which stand side by side around the tick of their layer, from this tick."""
    return WIDTH * (place / n_series - 0.5)


def _outliers(dots: pd.DataFrame, end: float) -> pd.DataFrame:
    """Names of the dots far above most of their series, the highest first, as many as have room."""
    if dots.empty:
        return dots
    quartiles = dots.groupby("series")["value"].quantile([0.25, 0.75]).unstack()
    fence = quartiles[0.75] + FAR * (quartiles[0.75] - quartiles[0.25])
    far = dots[dots["value"] > dots["series"].map(fence)].sort_values("value", ascending=False)[:MOST_NAMED]
    room = NAME_ROOM[0] * (dots["layer"].max() + 1), NAME_ROOM[1] * end
    return far[axes.has_room(far[["place", "value"]].to_numpy(float), room)].assign(kind="outlier")


def _steps(label: str, values: Float[np.ndarray, " layer"]) -> list[dict[str, object]]:
    """A line that is horizontal within each layer, with its name at its start."""
    steps: list[dict[str, object]] = [
        {"kind": "level", "place": layer + side, "value": value}
        for layer, value in enumerate(values.tolist())
        for side in (-0.5, 0.5)
        if not np.isnan(value)
    ]
    return [*steps, {**steps[0], "kind": "level name", "label": label}] if steps else []


def _of_series(series: DotSeries, axis: axes.ValueAxis) -> str:
    if np.isnan(series.mean).all():
        return f"{series.label}: not applicable."
    head = highest_head(series.mean)
    n_without = int(np.isnan(series.mean).sum())
    without = f" {counted(n_without, 'head')} without a value left out." if n_without else ""
    most = f"highest {axis.written(series.mean[head])} for {head_name(*head)}"
    return f"{series.label}: {axis.written(float(np.nanmean(series.mean)))} on average, {most}.{without}"


@lru_cache(maxsize=64)
def _spec(labels: tuple[str, ...], axis: axes.ValueAxis, title: str, means: bool, n_layers: int, many: bool) -> Spec:
    x, y = axes.places_axis("place", n_layers, HALF), axes.values_axis(axis)
    color, form = axes.series_channel(alt.Color, labels, HEAD_COLORS), axis.format
    interval = ("low", "interval from", form), ("high", "to", form)
    tooltip = axes.tooltips(("label", "what"), ("name", "head"), ("value", "mean", form), *interval, "texts")
    level = rows_of("level").mark_line(color=INK, strokeDash=[5, 3], strokeWidth=1.5)
    size, opacity = (14, 0.55) if many else (34, 0.8)
    dots = rows_of("dot").mark_point(filled=True, cursor="pointer", size=size, opacity=opacity)
    dots = dots.encode(x=x, y=y, color=color, shape=axes.series_channel(alt.Shape, labels, axes.MARKS), tooltip=tooltip)
    ring = rows_of("chosen").mark_point(filled=False, color=INK, size=130, strokeWidth=2, opacity=1)
    outlier = (
        rows_of("outlier")
        .mark_text(color=INK, align="left", dx=6, fontSize=10)
        .encode(x=x, y=y, text=alt.Text("name:N"))
    )
    edge = rows_of("edge").mark_rule(color=INK, opacity=0.15).encode(x=x)
    name = rows_of("level name").mark_text(color=INK, align="left", baseline="bottom", dx=4, dy=-3, fontSize=11)
    return template(
        alt.layer(
            edge,
            level.encode(x=x, y=y),
            dots.add_params(head_choice()),
            axes.series_line(rows_of("mean").encode(x=x, y=y), labels),
            ring.encode(x=x, y=y, tooltip=tooltip),
            outlier,
            name.encode(x=alt.XValue(0), y=y, text=alt.Text("label:N")),
            axes.note(),
        ),
        title=title,
        reading=("dot: a head, mean over texts" + ("; line: layer mean" if means else ""),),
        height=HEIGHT,
    )
