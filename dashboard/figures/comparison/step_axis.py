"""Checkpoints along an axis, by training step or side by side, and the one in focus.

A line joins the steps of one run only: between other checkpoints there is nothing for it to lead through.
"""

import json
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.dashboard.figures.axes import STEP_AXIS, steps_position
from attention_sieve.dashboard.figures.figure import INK, alt, drawable, of_kind

Axis = tuple[str, ...] | int
"""Names of evenly spaced checkpoints, or the last training step."""
NAME: Final = 16
"""Characters of a checkpoint's name that fit below an axis."""
APART: Final = 0.07
"""Distance of two series at one checkpoint; 1 is that of two checkpoints."""
FOCUS: Final = "dashed: the checkpoint in focus"


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
        return steps_position("at", STEP_AXIS, axis)
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
    left = of_kind("left").mark_text(**name, align="right", dx=-4)
    right = of_kind("right").mark_text(**name, align="left", dx=4)
    return [
        of_kind("marked").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=x),
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
