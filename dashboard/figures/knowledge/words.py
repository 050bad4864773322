"""Scores of a checkpoint and names of scores, shared by the figures of probing tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures.axes import Ends, tooltips
from attention_sieve.dashboard.figures.figure import INK, alt, rows_of

ACCURACY: Final = "accuracy"
CORRELATION: Final = "Pearson correlation"
NAME: Final = 28
"""Characters of a checkpoint's name that fit in the legend on a narrow page."""
ROOM: Final = 0.04
"""Free part of an axis at each end."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """Scores of the heads of a checkpoint on a task."""

    label: str
    heads: Float[np.ndarray, "layer head"]
    """On the test part; NaN for a head that was removed."""


def score_name(is_regression: bool) -> str:
    return CORRELATION if is_regression else ACCURACY


def number_format(name: str) -> str:
    return ".2f" if name == CORRELATION else ".1%"


def written(value: float, name: str) -> str:
    return f"{value:{number_format(name)}}"


def score_tooltips(name: str, number: str = ".3f") -> "list[alt.Tooltip]":
    return tooltips(("value", name, number), ("low", "95% interval from", number), ("high", "to", number))


def baseline_rows(baselines: Mapping[str, float], name: str, ends: Ends) -> "pd.DataFrame":
    """A line across for each baseline, whose names stand beside each other: that of the lowest below its line.

    Args:
        ends: of the horizontal axis.
    """
    rising = sorted(baselines.items(), key=lambda entry: entry[1])
    low, high = ends
    return pd.DataFrame(
        [
            {
                "kind": "baseline",
                "value": value,
                "label": f"{baseline}: {written(value, name)}",
                "place": low + (high - low) * number / len(rising),
                "below": number == 0,
            }
            for number, (baseline, value) in enumerate(rising)
        ],
        columns=["kind", "value", "label", "place", "below"],
    )


def baseline_marks(x: "alt.X", y: "alt.Y") -> "list[alt.Chart]":
    """The lines and names of `baseline_rows`."""
    rows = rows_of("baseline")
    names = {"color": INK, "align": "left", "dx": 4}
    below = rows.transform_filter("datum.below").mark_text(**names, baseline="top", dy=4)
    above = rows.transform_filter("!datum.below").mark_text(**names, baseline="bottom", dy=-3)
    return [
        rows.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7).encode(y=y),
        *(side.encode(x=x, y=y, text=alt.Text("label:N")) for side in (below, above)),
    ]


def rank_axis(field: str, title: str, most: int) -> "alt.X":
    """Position of heads, or of numbers of heads, the best first."""
    scale = alt.Scale(domain=[1, max(2, most)], nice=False, zero=False)
    axis = alt.Axis(format="d", grid=False, tickMinStep=1, tickCount=8)
    return alt.X(field, title=title, scale=scale, axis=axis)


def score_ends(values: Iterable[float]) -> Ends:
    """Both ends of an axis around all finite values, at multiples of 0.05."""
    finite = [float(value) for value in values if np.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    room = ROOM * (max(finite) - min(finite)) or ROOM
    low, high = (np.floor(20 * (min(finite) - room)) / 20, np.ceil(20 * (max(finite) + room)) / 20)
    return max(float(low), -1.0), min(float(high), 1.0)


def score_axis(field: str, name: str, ends: Ends) -> "alt.Y":
    number = "%" if name == ACCURACY else ".2~f"
    scale = alt.Scale(domain=list(ends), nice=False, zero=False)
    axis = alt.Axis(format=number, tickCount=5)
    return alt.Y(field, type="quantitative", title=f"{name} on the test part", scale=scale, axis=axis)
