"""How well measures agree with ablation: correlations as dots with intervals, by measure and by layer."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.importance.agreement import Agreement
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import note, note_rows, places_axis, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, rows_of, template

ROW: Final = 34
"""Pixels of one measure."""
LAYERS_HEIGHT: Final = 240
HALF: Final = 0.5
"""Room left of the first layer and right of the last one, in layers."""
SPEARMAN: Final = "Spearman's correlation with ablation"
"""Over heads."""
LEAST_HEIGHT: Final = 2 * ROW
NOTHING: Final = "No measure gives an order of the heads."


def agreement_dots(compared: Sequence[Agreement]) -> Figure:
    """Each measure's correlation with ablation over all heads, the largest first, with its interval."""
    columns = ["measure", "spearman", "low", "high"]
    values = [(each.measure, each.spearman[0], each.low[0], each.high[0]) for each in compared]
    rows = pd.DataFrame(values, columns=columns)
    rows.insert(0, "kind", "measure")
    rows = rows.dropna(subset="spearman").sort_values("spearman", ascending=False, ignore_index=True)
    said = "; ".join(f"{row.measure} {_number(row.spearman, row.low, row.high)}" for row in rows.itertuples())
    description = f"{SPEARMAN}, over all heads, with 95% intervals: {said}." if said else NOTHING
    return Figure(_measures_spec(tuple(rows["measure"])), _with_intervals(rows), description)


def layer_agreement(agreement: Agreement) -> Figure:
    """One measure's correlation with ablation among the heads of each layer."""
    spearman, low, high = (side[1:] for side in (agreement.spearman, agreement.low, agreement.high))
    rows = pd.DataFrame({"kind": "layer", "layer": np.arange(len(spearman)), "spearman": spearman})
    rows = rows.assign(low=low, high=high).dropna(subset="spearman")
    values = "; ".join(f"layer {row.layer} {_number(row.spearman, row.low, row.high)}" for row in rows.itertuples())
    description = f"{SPEARMAN} of {agreement.measure} among the heads of each layer: {values or 'none'}."
    return Figure(_layers_spec(agreement.measure, len(spearman)), _with_intervals(rows), description)


def _with_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    intervals = rows.dropna(subset=["low", "high"]).assign(kind="interval")
    zero = pd.DataFrame({"kind": ["zero"], "spearman": [0.0]})
    return pd.concat([zero, intervals, rows, note_rows(rows.empty, NOTHING)], ignore_index=True)


def _number(value: float, low: float, high: float) -> str:
    return f"{value:.2f}" if np.isnan(low) else f"{value:.2f} ({low:.2f} to {high:.2f})"


def _tooltip(first: "alt.Tooltip") -> "list[alt.Tooltip]":
    return [
        first,
        *tooltips(
            ("spearman", "Spearman's correlation", ".2f"), ("low", "95% interval from", ".2f"), ("high", "to", ".2f")
        ),
    ]


def _correlation(channel: type, field: str) -> "alt.X | alt.Y":
    position: alt.X | alt.Y = channel(
        field,
        type="quantitative",
        title=SPEARMAN,
        scale=alt.Scale(domain=[-1, 1], nice=False),
        axis=alt.Axis(values=[-1, -0.5, 0, 0.5, 1], format=".1~f", gridColor=INK, gridOpacity=0.15),
    )
    return position


@lru_cache(maxsize=16)
def _measures_spec(measures: tuple[str, ...]) -> Spec:
    names = alt.Axis(labelLimit=170, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("measure:N", title=None, sort=None, scale=alt.Scale(domain=list(measures)), axis=names)
    tooltip = _tooltip(alt.Tooltip("measure:N", title="measure"))
    zero = rows_of("zero").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=_correlation(alt.X, "spearman"))
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    dot = rows_of("measure").mark_point(shape="circle", filled=True, color=HEAD_COLORS[0], size=110, opacity=1)
    return template(
        alt.layer(
            zero,
            interval.encode(x=_correlation(alt.X, "low"), x2=alt.X2("high"), y=y),
            dot.encode(x=_correlation(alt.X, "spearman"), y=y, tooltip=tooltip),
            note(),
        ),
        title="Agreement with ablation",
        reading=("dot: over all heads; 1: the same order; line: 95% interval",),
        height=max(ROW * len(measures), LEAST_HEIGHT),
    )


@lru_cache(maxsize=32)
def _layers_spec(measure: str, n_layers: int) -> Spec:
    x, tooltip = places_axis("layer", n_layers, HALF), _tooltip(alt.Tooltip("layer:Q", title="layer"))
    zero = rows_of("zero").mark_rule(color=INK, strokeDash=[5, 3]).encode(y=_correlation(alt.Y, "spearman"))
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    dot = rows_of("layer").mark_point(shape="circle", filled=True, color=HEAD_COLORS[0], size=90, opacity=1)
    return template(
        alt.layer(
            zero,
            interval.encode(x=x, y=_correlation(alt.Y, "low"), y2=alt.Y2("high")),
            dot.encode(x=x, y=_correlation(alt.Y, "spearman"), tooltip=tooltip),
            note(),
        ),
        title=f"Within each layer: {measure}",
        reading=("dot: among the heads of the layer; line: 95% interval",),
        height=LAYERS_HEIGHT,
    )
