"""Checkpoints along an axis, by training step or in their order, and the one in focus."""

import json
from collections.abc import Sequence
from typing import Final

import pandas as pd

from dashboard.figures.checkpoints import shown
from dashboard.figures.figure import INK, Spec, layer

Axis = tuple[str, ...] | None
"""Names of checkpoints at even distances; None for training steps."""
NAME: Final = 16
"""Signs of a checkpoint's name that fit below an axis."""
STEPS_AXIS: Final[Spec] = {
    "tickCount": {"expr": "ceil(width / 80)"},
    "labelExpr": "datum.value == floor(datum.value) ? format(datum.value, ',d') : ''",
    "labelOverlap": "greedy",
    "grid": False,
}
"""Of training steps, which are whole numbers."""
FOCUS: Final = "dashed: the checkpoint in focus"


def axis_of(names: Sequence[str], steps: Sequence[int] | None) -> Axis:
    """What lies along the axis."""
    return tuple(shown(name, NAME) for name in names) if steps is None else None


def across(axis: Axis) -> Spec:
    """Position of the field `at`."""
    if axis is None:
        return {
            "field": "at",
            "type": "quantitative",
            "title": "training step (0: before fine-tuning)",
            "scale": {"nice": False, "zero": True},
            "axis": STEPS_AXIS,
        }
    return {
        "field": "at",
        "type": "quantitative",
        "title": "checkpoint, in order",
        "scale": {"domain": [-0.2, len(axis) - 0.8], "nice": False, "zero": False},
        "axis": {
            "values": list(range(len(axis))),
            "labelExpr": f"{json.dumps(axis)}[datum.value]",
            **{"grid": False, "labelAngle": -30, "labelAlign": "right", "labelBaseline": "top", "labelLimit": 0},
            "labelOverlap": False,
        },
    }


def focus_layers(x: Spec) -> list[Spec]:
    """The line through the checkpoint in focus, and its name."""
    text = {
        "type": "text",
        "color": INK,
        "fontSize": 11,
        "baseline": "bottom",
        "limit": {"expr": "width / 2"},
        "dir": "rtl",
    }
    sides = {"left": {"align": "right", "dx": -4}, "right": {"align": "left", "dx": 4}}
    return [
        layer("marked", {"type": "rule", "color": INK, "strokeDash": [5, 3]}, x=x),
        *(
            layer(side, {**text, **place}, x=x, y={"value": -6}, text={"field": "label"})
            for side, place in sides.items()
        ),
    ]


def lines(names: Sequence[str], at: Sequence[int], marked: int | None) -> pd.DataFrame:
    """The line at 0 and the one through the checkpoint in focus."""
    rows: list[dict[str, object]] = [{"kind": "floor", "value": 0.0}]
    if marked is not None:
        # The name stands on the side of its line that has more room.
        side = "left" if 2 * at[marked] > min(at) + max(at) else "right"
        name = shown(names[marked], 2 * NAME)
        rows += [{"kind": kind, "at": at[marked], "label": name} for kind in ("marked", side)]
    return pd.DataFrame(rows)
