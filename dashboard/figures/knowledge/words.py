"""Scores of a checkpoint and names of scores, shared by the figures of probing tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from attention_sieve.dashboard.figures.axes import Ends, apart, tooltips
from attention_sieve.dashboard.figures.figure import INK, alt, rows_of

ACCURACY: Final = "accuracy"
CORRELATION: Final = "Pearson correlation"
NAME: Final = 28
"""Characters of a checkpoint's name that fit in the legend on a narrow page."""
NAME_HEIGHT: Final = 0.11
"""Height of a baseline's name relative to the plot, which is lowest on a projector."""
ROOM: Final = 0.04
"""Free part of an axis at each end."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """Scores of the heads of a checkpoint on a task."""

    label: str
    heads: Float[np.ndarray, "layer head"]
    """On the test part; NaN for a head that was removed."""
    beats: Bool[np.ndarray, "layer head"] | None = None
    """Which heads beat every baseline; None where no test says."""


def score_name(is_regression: bool) -> str:
    return CORRELATION if is_regression else ACCURACY


def number_format(name: str) -> str:
    return ".2f" if name == CORRELATION else ".1%"


def written(value: float, name: str) -> str:
    return f"{value:{number_format(name)}}"


def score_tooltips(name: str, number: str = ".3f") -> "list[alt.Tooltip]":
    return tooltips(("value", name, number), ("low", "95% interval from", number), ("high", "to", number))


def baseline_rows(baselines: Mapping[str, float], name: str, ends: Ends) -> "pd.DataFrame":
    """A line across for each baseline, whose name stands beside the plot, so that it lies on no line.

    Args:
        ends: of the axis of scores.
    """
    values = np.array([*baselines.values()], float)
    heights = apart(values, ends, NAME_HEIGHT * (ends[1] - ends[0])) if len(values) else values
    return pd.DataFrame(
        {
            "kind": "baseline",
            "value": values,
            "label": [f"{baseline}: {written(value, name)}" for baseline, value in baselines.items()],
            "height": heights,
        }
    )


def baseline_marks(name: str, ends: Ends) -> "list[alt.Chart]":
    """The lines and names of `baseline_rows`."""
    rows = rows_of("baseline")
    label = rows.mark_text(color=INK, align="left", baseline="middle", dx=6, clip=False)
    return [
        rows.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7).encode(y=score_axis("value", name, ends)),
        label.encode(x=alt.XValue("width"), y=score_axis("height", name, ends), text=alt.Text("label:N")),
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
    return alt.Y(field, type="quantitative", title=f"test {name}", scale=scale, axis=axis)
