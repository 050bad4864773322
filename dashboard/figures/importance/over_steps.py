"""A score over the saved steps of a fine-tuning run, for several numbers of heads removed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.importance.pruning.curves import relative
from attention_sieve.core.importance.pruning.over_steps import StepCurve
from attention_sieve.dashboard.figures.appearance import LESS, MORE
from attention_sieve.dashboard.figures.axes import STEP_AXIS, Ends, apart, steps_position, tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    counted,
    interval,
    percent,
    rows_of,
    template,
)

HEIGHT: Final = 300
LINE: Final = 13
"""Pixels between the names of two lines."""
SHARE: Final = "share of the score with all heads on"


def score_over_steps(curves: Sequence[StepCurve], n_heads: int, name: str, chosen: int) -> Figure:
    """The score at each saved step: a line for each number of heads removed.

    Args:
        curves: one or more in the order of their steps, over the same numbers of heads removed.
        chosen: number of heads removed whose intervals are drawn.

    Source: Michel et al. 2019, figure 5, left.
    """
    points = _points(curves, n_heads, shares=False)
    steps, last = points["at"].unique().tolist(), curves[-1].step
    # For equal scores, the name of the line with more heads removed is lower.
    ends = points[points["at"] == last][::-1]
    data, room = _with_marks(points, points["removed"] == chosen, ends)
    full, pruned = (points[points["removed"] == count].set_index("at") for count in (0, chosen))
    sentences = [
        f"{name[:1].upper()}{name[1:]} over {counted(len(steps), 'saved step')}, a line for each share removed."
    ]
    sentences += [
        f"At step {step:,}: {full['value'][step]:.3g} with all heads on, {pruned['value'][step]:.3g} with "
        f"{percent(chosen / n_heads, 0)} removed{_in_brackets(pruned['interval'][step])}."
        for step in dict.fromkeys((steps[0], last))
    ]
    return Figure(_over_steps_spec(name, max(1, last), room, _has_bars(data)), data, " ".join(sentences))


def relative_score(curves: Sequence[StepCurve], n_heads: int) -> Figure:
    """The score as a share of that with all heads on, against the share of heads removed: a line for each saved step.

    Args:
        curves: as for `score_over_steps`; at least one score with all heads on must be above 0. The intervals of the
            last step are drawn.

    Source: Michel et al. 2019, figure 5, right.
    """
    points = _points(curves, n_heads, shares=True).dropna(subset="value")
    points["label"] = [f"step {step:,}" for step in points["at"]]
    steps, last, most = points["at"].unique().tolist(), int(points["at"].max()), points["removed"].max()
    data, room = _with_marks(points, points["at"] == last, points[points["removed"] == most])
    middle = sorted(points["removed"].unique().tolist())[len(points["removed"].unique()) // 2]
    at_middle = points[points["removed"] == middle].set_index("at")
    sentences = [
        f"Score as a share of that with all heads on at the same step, against the share of heads removed, for "
        f"{counted(len(steps), 'saved step')}."
    ]
    sentences += [
        f"With {percent(middle / n_heads, 0)} removed at step {step:,}: {percent(at_middle['value'][step], 0)}"
        f"{_in_brackets(at_middle['interval'][step])}."
        for step in dict.fromkeys((steps[0], last))
    ]
    return Figure(_relative_spec(max(1, last), room, _has_bars(data)), data, " ".join(sentences))


def _in_brackets(interval: str) -> str:
    return f" ({interval})" if interval else ""


def _with_marks(points: pd.DataFrame, marked: pd.Series, ends: pd.DataFrame) -> tuple[pd.DataFrame, Ends]:
    """The points, the intervals of some, and names at the ends of lines without overlap; and the ends of the axis."""
    values = pd.concat([points["value"], points.loc[marked, ["low", "high"]].stack()]).to_numpy(float)
    room = _ends(values)
    bars = points[marked & points["low"].notna()].assign(kind="interval")
    ends = ends.dropna(subset="value")
    heights = apart(ends["value"].to_numpy(float), room, LINE * (room[1] - room[0]) / HEIGHT)
    return pd.concat([points, bars, ends.assign(kind="name", value=heights)], ignore_index=True), room


def _has_bars(data: pd.DataFrame) -> bool:
    return bool((data["kind"] == "interval").any())


def _points(curves: Sequence[StepCurve], n_heads: int, *, shares: bool) -> pd.DataFrame:
    """One row per step and number of heads removed; as shares of the score of that step with all heads on, or not."""
    parts = []
    for step_curve in curves:
        curve = step_curve.curve
        value, low, high = curve.score, curve.score[0] + curve.low, curve.score[0] + curve.high
        if shares:
            ratio = relative(curve)
            value, low, high = ratio.value, ratio.low, ratio.high
        points = {
            "kind": "point",
            "at": step_curve.step,
            "removed": curve.n_removed,
            "share": curve.n_removed / n_heads,
            "label": [percent(count / n_heads, 0) for count in curve.n_removed],
            "value": value,
            "low": low,
            "high": high,
            "interval": [interval(*ends, ".3g") for ends in zip(low, high)],
        }
        parts.append(pd.DataFrame(points))
    return pd.concat(parts, ignore_index=True)


def _ends(values: np.ndarray) -> Ends:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.05 * (high - low) or 0.01
    return float(f"{low - room:.4g}"), float(f"{high + room:.4g}")


@lru_cache(maxsize=32)
def _over_steps_spec(name: str, last: int, ends: Ends, has_bars: bool) -> Spec:
    x = steps_position("at", STEP_AXIS, last)
    color = alt.Color("share:Q", scale=alt.Scale(domain=[0, 1], range=[LESS, MORE], interpolate="rgb"), legend=None)
    bars = ("bar: 95% interval, at the share chosen above",) if has_bars else ()
    reading = ("line: a share of heads removed, written at its end", *bars)
    chart = _lines(x, color, "removed", name, ".3~g", ends)
    return template(chart, title="Score over training", reading=reading, height=HEIGHT)


@lru_cache(maxsize=32)
def _relative_spec(last: int, ends: Ends, has_bars: bool) -> Spec:
    axis = alt.Axis(format=".0%", tickCount=6)
    x = alt.X("share:Q", title="share of heads removed", scale=alt.Scale(domain=[0, 1]), axis=axis)
    color = alt.Color("at:Q", scale=alt.Scale(domain=[0, last], range=[LESS, MORE], interpolate="rgb"), legend=None)
    bars = ("bar: 95% interval, at the last step",) if has_bars else ()
    reading = ("line: a saved step, written at its end", *bars)
    chart = _lines(x, color, "at", SHARE, ".0%", ends)
    return template(chart, title="Relative to all heads on", reading=reading, height=HEIGHT)


def _lines(x: "alt.X", color: "alt.Color", line: str, name: str, number: str, ends: Ends) -> "alt.LayerChart":
    """Lines with their points, the intervals of some of these, and a name at each line's end."""

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=list(ends), nice=False, zero=False)
        return alt.Y(field, type="quantitative", title=name, scale=scale, axis=alt.Axis(format=number, tickCount=6))

    tooltip = tooltips(
        ("at", "step", ",d"),
        ("removed", "heads removed", ",d"),
        ("share", "share removed", ".0%"),
        ("value", name, ".1%" if number == ".0%" else number),
        ("interval", "95% interval"),
    )
    point, interval = rows_of("point"), rows_of("interval").mark_rule(strokeWidth=2)
    names = rows_of("name").mark_text(color=INK, align="left", dx=8, fontSize=11)
    return alt.layer(
        interval.encode(x=x, y=y("low"), y2=alt.Y2("high"), color=color),
        point.mark_line(strokeWidth=2).encode(
            x=x, y=y("value"), color=color, detail=alt.Detail(line, type="quantitative")
        ),
        point.mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y("value"), color=color, tooltip=tooltip),
        names.encode(x=x, y=y("value"), text=alt.Text("label:N")),
    )
