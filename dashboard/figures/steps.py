"""Checkpoints in order, such as those of a training run: how many heads hold each role, and how far a score moves."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dashboard.figures.appearance import LOOKS
from dashboard.figures.checkpoints import shown
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.p_values import SHAPES
from dashboard.figures.shifts import CHANGE_AXIS, note_layer
from dashboard.figures.step_axis import FOCUS, Axis, across, axis_of, focus_layers, lines

HEIGHT: Final = 260
LINE: Final = 14
"""Pixels between the names of two lines."""


def roles_over_steps(
    names: Sequence[str],
    steps: Sequence[int] | None,
    counts: Int[np.ndarray, "checkpoint role"],
    roles: Sequence[str],
    marked: int | None = None,
) -> Figure:
    """A line for each role: how many heads hold it in each checkpoint.

    Args:
        names: of the checkpoints, in order, the reference first.
        steps: training step of each, 0 for the reference; None puts them at even distances.
        counts: heads that hold each role.
        roles: names along the role axis.
        marked: place of the checkpoint in focus.
    """
    at = range(len(names)) if steps is None else steps
    number, place = np.indices(counts.shape).reshape(2, -1)
    points = pd.DataFrame(
        {
            **{"kind": "point", "checkpoint": np.array([shown(name) for name in names])[number]},
            **{"at": np.array(at)[number], "role": np.array(roles)[place], "heads": counts.ravel()},
        }
    )
    last = points[number == np.argmax(at)]
    top = max(1, int(counts.max()))
    labels = [f"{LOOKS[role].label} ({LOOKS[role].letter})" for role in last["role"]]
    ends = last.assign(kind="end", label=labels, heads=_apart(last["heads"].to_numpy(), top))
    data = pd.concat([points, ends, lines(names, at, marked)])
    return Figure(
        _roles_spec(tuple(roles), axis_of(names, steps)), data, _roles_description(names, steps, counts, roles)
    )


def shift_over_steps(
    names: Sequence[str],
    steps: Sequence[int] | None,
    shift: Float[np.ndarray, " checkpoint"],
    role: str,
    marked: int | None = None,
) -> Figure:
    """The mean change of a role's score against the reference in each checkpoint.

    Args:
        names: of the checkpoints, in order, the reference first.
        steps: training step of each, 0 for the reference; None puts them at even distances.
        shift: mean change b − a over all heads and texts; NaN where there is none.
        role: whose score.
        marked: place of the checkpoint in focus.
    """
    at = range(len(names)) if steps is None else steps
    points = pd.DataFrame({"kind": "point", "checkpoint": [shown(name) for name in names], "at": at, "change": shift})
    nothing = [{"kind": "note", "label": "No text gives a change of score."}] if np.isnan(shift).all() else []
    data = pd.concat([points, lines(names, at, marked), pd.DataFrame(nothing)])
    return Figure(_shift_spec(role, axis_of(names, steps)), data, _shift_description(names, steps, shift, role))


def _apart(values: Int[np.ndarray, " line"], top: int) -> Float[np.ndarray, " line"]:
    """Heights for the names of lines, from 0 to the top, near their values and a line of text apart."""
    found, least = values.astype(float), LINE * top / HEIGHT
    order = np.argsort(values, kind="stable")
    for below, place in pairwise(order):
        found[place] = max(found[place], found[below] + least)
    found[order[-1]] = min(found[order[-1]], top)
    for above, place in pairwise(order[::-1]):
        found[place] = min(found[place], found[above] - least)
    return found


@lru_cache(maxsize=64)
def _roles_spec(roles: tuple[str, ...], axis: Axis) -> Spec:
    x = across(axis)
    y = {"field": "heads", "type": "quantitative", "title": "heads", "scale": {"nice": False, "zero": True}}
    y["axis"] = {"tickMinStep": 1, "format": "d"}
    scale = {"domain": list(roles), "range": [LOOKS[role].color for role in roles]}
    shapes = {"domain": list(roles), "range": [SHAPES[role] for role in roles]}
    by_role = {"field": "role", "type": "nominal", "legend": None}
    tooltip = [
        {"field": "role", "title": "role"},
        {"field": "checkpoint", "title": "checkpoint"},
        *([] if axis else [{"field": "at", "title": "step", "format": ",d"}]),
        {"field": "heads", "title": "heads"},
    ]
    point = {"type": "point", "size": 60, "stroke": INK, "strokeWidth": 1, "opacity": 1}
    return picture(
        [
            layer("floor", {"type": "rule", "opacity": 0}, y={**y, "field": "value"}),
            *focus_layers(x),
            layer("point", {"type": "line", "strokeWidth": 2}, x=x, y=y, stroke={**by_role, "scale": scale}),
            layer(
                "point",
                point,
                x=x,
                y=y,
                fill={**by_role, "scale": scale},
                shape={**by_role, "scale": shapes},
                tooltip=tooltip,
            ),
            layer(
                "end",
                {"type": "text", "color": INK, "align": "left", "dx": 9, "fontSize": 11},
                x=x,
                y=y,
                text={"field": "label"},
            ),
        ],
        title="Heads per role over checkpoints",
        reading=(FOCUS,),
        height=HEIGHT,
    )


@lru_cache(maxsize=64)
def _shift_spec(role: str, axis: Axis) -> Spec:
    x = across(axis)
    y = {"field": "change", "type": "quantitative", "title": CHANGE_AXIS}
    tooltip = [
        {"field": "checkpoint", "title": "checkpoint"},
        *([] if axis else [{"field": "at", "title": "step", "format": ",d"}]),
        {"field": "change", "title": "mean change, b − a", "format": "+.3~f"},
    ]
    line = {"type": "line", "strokeWidth": 2, "color": LOOKS[role].color}
    point = {"type": "point", "size": 60, "stroke": INK, "strokeWidth": 1, "opacity": 1}
    return picture(
        [
            layer("floor", {"type": "rule", "color": INK}, y={**y, "field": "value"}),
            *focus_layers(x),
            layer("point", line, x=x, y=y),
            layer("point", {**point, "fill": LOOKS[role].color, "shape": SHAPES[role]}, x=x, y=y, tooltip=tooltip),
            note_layer(),
        ],
        title=f"Mean change, b − a: {LOOKS[role].label}",
        reading=("each checkpoint minus the first", FOCUS),
        height=HEIGHT,
    )


def _order(names: Sequence[str], steps: Sequence[int] | None) -> str:
    if steps is None:
        return f"{counted(len(names), 'checkpoint')} in order"
    return f"{counted(len(names), 'checkpoint')} from step {min(steps):,} to {max(steps):,}"


def _roles_description(
    names: Sequence[str],
    steps: Sequence[int] | None,
    counts: Int[np.ndarray, "checkpoint role"],
    roles: Sequence[str],
) -> str:
    parts = [
        f"{LOOKS[role].label} {row[0]} at first, {row[-1]} at last, between {row.min()} and {row.max()}"
        for role, row in zip(roles, counts.T, strict=True)
    ]
    return f"A line for each role over {_order(names, steps)}: how many heads hold it. {'; '.join(parts)}."


def _shift_description(
    names: Sequence[str], steps: Sequence[int] | None, shift: Float[np.ndarray, " checkpoint"], role: str
) -> str:
    start = (
        f"Mean change of the score {LOOKS[role].label} against the first checkpoint, b − a, over {_order(names, steps)}"
    )
    known = np.flatnonzero(~np.isnan(shift))
    if not len(known):
        return f"{start}: no change to draw."
    low, high = known[shift[known].argmin()], known[shift[known].argmax()]
    missing = len(shift) - len(known)
    left_out = f" {counted(missing, 'checkpoint')} without a change left out." if missing else ""
    return (
        f"{start}: {shift[known[-1]]:+.3g} for {shown(names[known[-1]])}, the last; lowest {shift[low]:+.3g} for "
        f"{shown(names[low])}, highest {shift[high]:+.3g} for {shown(names[high])}.{left_out}"
    )
