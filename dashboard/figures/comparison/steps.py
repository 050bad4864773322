"""Several checkpoints by training step or side by side: heads per role, and the change of a score.

A line joins the steps of one run only: between other checkpoints there is nothing for it to lead through.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.comparison.shifts import NO_CHANGE, change_axis
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, drawable, rows_of, template

HEIGHT: Final = 260
LINE: Final = 14
"""Pixels between the names of two lines."""
Axis = tuple[str, ...] | int
"""Names of evenly spaced checkpoints, or the last training step."""
NAME: Final = 16
"""Characters of a checkpoint's name that fit below an axis."""
APART: Final = 0.07
"""Distance of two series at one checkpoint; 1 is that of two checkpoints."""
FOCUS: Final = "dashed: the checkpoint in focus"


def roles_over_steps(
    names: Sequence[str],
    steps: Sequence[int] | None,
    counts: Float[np.ndarray, "checkpoint role"],
    roles: Sequence[str],
    marked: int | None = None,
) -> Figure:
    """How many heads hold each role in each checkpoint: a line for each role over steps, points for other checkpoints.

    Args:
        names: of the checkpoints, the reference first.
        steps: training step of each; None for checkpoints that are not steps of one run.
        counts: heads that hold each role; NaN where it does not apply.
        roles: names along the role axis.
    """
    at, axis = range(len(names)) if steps is None else steps, axis_of(names, steps)
    number, role_index = np.indices(counts.shape).reshape(2, -1)
    points = pd.DataFrame(
        {
            "kind": "point",
            "checkpoint": np.array([drawable(name) for name in names])[number],
            "at": apart_at(np.array(at)[number], role_index, axis),
            "role": np.array(roles)[role_index],
            "heads": counts.ravel(),
        }
    )
    applies = points["heads"].notna()
    points, last = points[applies], points[applies & (number == np.argmax(at))]
    top = max(1, int(np.nanmax(counts, initial=1)))
    labels = [LOOKS[role].lettered for role in last["role"]]
    heights = axes.apart(last["heads"].to_numpy(float), (0, top), LINE * top / HEIGHT)
    ends = last.assign(kind="end", label=labels, heads=heights, at=last["at"].max())
    data = pd.concat([points, ends, lines(names, at, marked)])
    return Figure(_roles_spec(tuple(roles), axis, top), data, _roles_description(names, steps, counts, roles))


def shift_over_steps(
    names: Sequence[str],
    steps: Sequence[int] | None,
    shift: Float[np.ndarray, " checkpoint"],
    role: str,
    marked: int | None = None,
    scale: Scale = "score",
) -> Figure:
    """The mean change of a role's score against the reference in each checkpoint.

    Args:
        names: of the checkpoints, the reference first.
        steps: training step of each; None for checkpoints that are not steps of one run, which no line joins.
        shift: mean change b − a over all heads and texts; NaN if not available.
    """
    at = range(len(names)) if steps is None else steps
    points = pd.DataFrame(
        {"kind": "point", "checkpoint": [drawable(name) for name in names], "at": at, "change": shift}
    )
    data = pd.concat([points, lines(names, at, marked), axes.note_rows(bool(np.isnan(shift).all()), NO_CHANGE)])
    description = _shift_description(names, steps, shift, role, scale)
    return Figure(_shift_spec(role, axis_of(names, steps), scale, axes.round_ends(shift)), data, description)


def axis_of(names: Sequence[str], steps: Sequence[int] | None) -> Axis:
    """The axis for these checkpoints: their names, or the last step."""
    return tuple(drawable(name, NAME) for name in names) if steps is None else max(1, *steps)


def apart_at(
    at: Int[np.ndarray, " point"], series: Int[np.ndarray, " point"], axis: Axis
) -> Float[np.ndarray, " point"]:
    """Positions of points: by step, or, for checkpoints that no line joins, those of each series beside the others."""
    if isinstance(axis, int):
        return at.astype(float)
    return at + APART * (series - series.max(initial=0) / 2)


def across(axis: Axis) -> "alt.X":
    if isinstance(axis, int):
        return axes.steps_position("at", axes.STEP_AXIS, axis)
    return alt.X(
        "at:Q",
        title="checkpoint",
        scale=alt.Scale(domain=[-0.2, len(axis) - 0.8], nice=False, zero=False),
        axis=alt.Axis(
            values=list(range(len(axis))),
            labelExpr=f"{json.dumps(axis)}[datum.value]",
            labelOverlap=False,
            grid=False,
            labelAngle=-30,
            labelAlign="right",
            labelBaseline="top",
            labelLimit=0,
        ),
    )


def focus_layers(x: "alt.X") -> "list[alt.Chart]":
    """The line through the checkpoint in focus, and its name."""
    name = {"color": INK, "fontSize": 11, "baseline": "bottom", "limit": alt.expr("width / 2"), "dir": "rtl"}
    left = rows_of("left").mark_text(**name, align="right", dx=-4)
    right = rows_of("right").mark_text(**name, align="left", dx=4)
    return [
        rows_of("marked").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=x),
        *(side.encode(x=x, y=alt.YValue(-6), text=alt.Text("label:N")) for side in (left, right)),
    ]


def lines(names: Sequence[str], at: Sequence[int], marked: int | None) -> pd.DataFrame:
    """The line at 0 and the one through the checkpoint in focus."""
    rows: list[dict[str, object]] = [{"kind": "floor", "value": 0.0}]
    if marked is not None:
        # The name is on the side of its line with more room.
        side = "left" if 2 * at[marked] > min(at) + max(at) else "right"
        name = drawable(names[marked], 2 * NAME)
        rows += [{"kind": kind, "at": at[marked], "label": name} for kind in ("marked", side)]
    return pd.DataFrame(rows)


@lru_cache(maxsize=64)
def _roles_spec(roles: tuple[str, ...], axis: Axis, top: int) -> Spec:
    def heads(field: str) -> alt.Y:
        scale, ticks = alt.Scale(domain=[0, top], nice=False), alt.Axis(tickMinStep=1, format="d")
        return alt.Y(field, type="quantitative", title="heads", scale=scale, axis=ticks)

    x = across(axis)
    floor = rows_of("floor").mark_rule(opacity=0).encode(y=heads("value"))
    line = rows_of("point").mark_line(strokeWidth=2)
    line = line.encode(x=x, y=heads("heads"), stroke=axes.role_colors(alt.Stroke, roles))
    point = rows_of("point").mark_point(size=60, stroke=INK, strokeWidth=1, opacity=1)
    point = point.encode(
        x=x,
        y=heads("heads"),
        fill=axes.role_colors(alt.Fill, roles),
        shape=axes.role_shapes(roles),
        tooltip=[*axes.tooltips("role"), *_of_checkpoint(axis), *axes.tooltips("heads")],
    )
    name = rows_of("end").mark_text(color=INK, align="left", dx=9, fontSize=11)
    name = name.encode(x=x, y=heads("heads"), text=alt.Text("label:N"))
    return template(
        alt.layer(floor, *focus_layers(x), *([line] if isinstance(axis, int) else []), point, name),
        title="Heads per role over training" if isinstance(axis, int) else "Heads per role in each checkpoint",
        reading=(FOCUS,),
        height=HEIGHT,
    )


@lru_cache(maxsize=64)
def _shift_spec(role: str, axis: Axis, scale: Scale, ends: axes.Ends) -> Spec:
    def change(field: str) -> alt.Y:
        along = alt.Scale(domain=list(ends), nice=False)
        return alt.Y(field, type="quantitative", title=change_axis(scale), scale=along)

    x, y = across(axis), change("change")
    color = LOOKS[role].color
    change_tooltip = axes.tooltips(("change", "mean change, b − a", "+.3~f"))
    floor = rows_of("floor").mark_rule(color=INK).encode(y=change("value"))
    line = rows_of("point").mark_line(strokeWidth=2, color=color).encode(x=x, y=y)
    point = rows_of("point").mark_point(
        size=60, stroke=INK, strokeWidth=1, opacity=1, fill=color, shape=LOOKS[role].shape
    )
    point = point.encode(x=x, y=y, tooltip=_of_checkpoint(axis) + change_tooltip)
    return template(
        alt.layer(floor, *focus_layers(x), *([line] if isinstance(axis, int) else []), point, axes.note()),
        title=f"Mean change, b − a: {LOOKS[role].label}",
        reading=("each checkpoint minus the first", FOCUS),
        height=HEIGHT,
    )


def _of_checkpoint(axis: Axis) -> "list[alt.Tooltip]":
    name = axes.tooltips("checkpoint")
    return name if isinstance(axis, tuple) else name + axes.tooltips(("at", "step", ",d"))


def _order(names: Sequence[str], steps: Sequence[int] | None) -> str:
    if steps is None:
        return f"{counted(len(names), 'checkpoint')}"
    return f"{counted(len(names), 'checkpoint')} from step {min(steps):,} to {max(steps):,}"


def _written(count: float) -> str:
    return "not applicable" if np.isnan(count) else f"{count:.0f}"


def _roles_description(
    names: Sequence[str],
    steps: Sequence[int] | None,
    counts: Float[np.ndarray, "checkpoint role"],
    roles: Sequence[str],
) -> str:
    if steps is None:
        labels = [LOOKS[role].label for role in roles]
        held = [
            f"{drawable(name)}: {', '.join(map(' '.join, zip(labels, map(_written, row), strict=True)))}"
            for name, row in zip(names, counts, strict=True)
        ]
        return f"How many heads hold each role in each of {counted(len(names), 'checkpoint')}. {'; '.join(held)}."
    parts = [
        f"{LOOKS[role].label} {_written(row[0])} at first, {_written(row[-1])} at last, between "
        f"{_written(np.nanmin(row))} and {_written(np.nanmax(row))}"
        for role, row in zip(roles, counts.T, strict=True)
        if not np.isnan(row).all()
    ]
    return f"A line for each role over {_order(names, steps)}: how many heads hold it. {'; '.join(parts)}."


def _shift_description(
    names: Sequence[str],
    steps: Sequence[int] | None,
    shift: Float[np.ndarray, " checkpoint"],
    role: str,
    scale: Scale,
) -> str:
    start = (
        f"Mean change of the {WORDS[scale].noun} for {LOOKS[role].label} against the first checkpoint, b − a, over "
        f"{_order(names, steps)}"
    )
    known = np.flatnonzero(~np.isnan(shift))
    if not len(known):
        return f"{start}: no change to draw."
    low, high = known[shift[known].argmin()], known[shift[known].argmax()]
    missing = len(shift) - len(known)
    left_out = f" {counted(missing, 'checkpoint')} without a change left out." if missing else ""
    last = "" if steps is None else f"{shift[known[-1]]:+.3g} for {drawable(names[known[-1]])}, the last; "
    return (
        f"{start}: {last}lowest {shift[low]:+.3g} for "
        f"{drawable(names[low])}, highest {shift[high]:+.3g} for {drawable(names[high])}.{left_out}"
    )
