"""How many heads hold each role, beside what controls give."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import heads_axis, role_colors, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, rows_of, template

OWN: Final = "this checkpoint"
SHAPES: Final = {OWN: "circle", "permuted keys": "square", "shuffled words": "triangle-up", "random weights": "diamond"}
"""Mark of the checkpoint and of each control, from top to bottom in the lane of a role."""
LANE: Final = 50
"""Height of the lane of a role."""
BEYOND: Final = 0.3
"""Share of the heads from which on a mark is named at its left."""


def chance_strip(counts: Mapping[str, Mapping[str, Sequence[int]]], n_heads: int) -> Figure:
    """A lane for each role, in it a mark for the checkpoint and for each control that was counted, named in the first.

    Args:
        counts: numbers of heads by role and by name of SHAPES; several where a control has several seeds, whose mean is
            drawn, with a line over their range.
    """
    rows = [
        {
            "kind": "own" if control == OWN else "control",
            "role": role,
            "control": control,
            "heads": fmean(heads),
            "low": min(heads),
            "high": max(heads),
            "label": written(heads),
            "name": f"{written(heads)} {control}" if role == next(iter(counts)) else written(heads),
        }
        for role, of_role in counts.items()
        for control, heads in of_role.items()
    ]
    described = (
        f"{LOOKS[role].label} {', '.join(f'{written(heads)} ({control})' for control, heads in of_role.items())}"
        for role, of_role in counts.items()
    )
    data = pd.DataFrame(rows)
    names = data.assign(kind=np.where(data["heads"] > BEYOND * n_heads, "name before", "name after"))
    return Figure(
        _spec(tuple(counts), n_heads, any(len(of_role) > 1 for of_role in counts.values())),
        pd.concat([data, names]),
        f"Number of heads of {n_heads} that hold each role: {'; '.join(described)}.",
    )


def written(heads: Sequence[int]) -> str:
    """A number of heads; the mean over seeds with its range where they differ."""
    low, high = min(heads), max(heads)
    return str(low) if low == high else f"{fmean(heads):.1f} ({low} to {high})"


@cache
def _spec(roles: tuple[str, ...], n_heads: int, is_compared: bool) -> Spec:
    x, y = heads_axis(alt.X, "heads", n_heads), _lane(roles)
    offset = alt.YOffset("control:N", scale=alt.Scale(domain=list(SHAPES), paddingOuter=0.2))
    shape = alt.Shape("control:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None)
    place = {"x": x, "y": y, "yOffset": offset, "shape": shape}
    tooltip = tooltips("role", "control", ("label", "heads"))
    own = rows_of("own").mark_point(filled=True, size=110, opacity=1)
    control = rows_of("control").mark_point(size=50, color=INK, strokeWidth=1.4)
    seeds = rows_of("control").mark_rule(color=INK).encode(x=heads_axis(alt.X, "low", n_heads), x2="high", y=y)
    return template(
        alt.layer(
            *([seeds.encode(yOffset=offset), control.encode(**place, tooltip=tooltip)] if is_compared else []),
            own.encode(**place, color=role_colors(alt.Color, roles), tooltip=tooltip),
            *(
                rows_of(kind)
                .mark_text(color=INK, fontSize=11, align=align, dx=dx)
                .encode(x=x, y=y, yOffset=offset, text=alt.Text("name:N"))
                for kind, align, dx in (("name after", "left", 9), ("name before", "right", -9))
            ),
        ),
        title="Heads with each role, beside chance",
        height=LANE * len(roles),
    )


def _lane(roles: Sequence[str]) -> "alt.Y":
    """The lanes of roles, with a faint line between them."""
    names = {role: LOOKS[role].label for role in roles}
    axis = alt.Axis(
        labelExpr=f"{json.dumps(names)}[datum.value]", labelLimit=0, grid=True, tickBand="extent", ticks=False
    )
    return alt.Y("role:N", scale=alt.Scale(domain=list(roles), padding=0), title=None, axis=axis)
