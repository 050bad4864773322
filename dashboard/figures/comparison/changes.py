"""How many heads of each layer gain and lose each role from one checkpoint to another."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import LAYER_AXIS, lane_scale, note, note_rows, role_colors
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, of_kind, template
from attention_sieve.dashboard.figures.roles.layers import NARROWEST

LANE: Final = 84
"""Height of one role's row of bars, in pixels."""
REACH: Final = 0.35
"""Part of that height for the longest bar, up or down; the rest is for its number."""
FEWEST: Final = 3
"""Minimum end of the scale in heads, so that one head is not a full bar."""
NOTHING: Final = "No head gains or loses a role."


def roles_gained_and_lost(
    gained: Int[np.ndarray, "role layer"], lost: Int[np.ndarray, "role layer"], roles: Sequence[str], n_heads: int
) -> Figure:
    """Bars by layer, up for heads that gain a role and down for heads that lose it, one row of bars for each role.

    Args:
        gained: heads of each layer that hold a role in the compared checkpoint and not in the reference.
        lost: heads that hold it in the reference only.
        roles: names along the role axis, top first.
        n_heads: heads of a layer.

    Returns: the figure; all roles share one scale, which ends at the longest bar.
    Source: Pande et al. 2021, roles before and after fine-tuning, which they describe without a figure.
    """
    most = max(FEWEST, int(gained.max()), int(lost.max()))
    zeros = {role: len(roles) - lane - 0.5 for lane, role in enumerate(roles)}
    bars = pd.DataFrame(
        {
            "kind": kind,
            "role": role,
            "layer": layer,
            "heads": heads,
            "of": n_heads,
            "zero": zeros[role],
            "end": zeros[role] + sign * REACH * heads / most,
            "label": f"{'+' if sign > 0 else '−'}{heads}",
        }
        for kind, sign, counts in (("gained", 1, gained), ("lost", -1, lost))
        for role, row in zip(roles, counts, strict=True)
        for layer, heads in enumerate(row.tolist())
        if heads
    )
    scale = pd.DataFrame(
        {"kind": "scale", "end": zero + sign * REACH, "label": str(most if sign else 0)}
        for zero in zeros.values()
        for sign in (1, 0, -1)
    )
    spec = _spec(tuple(roles), gained.shape[1])
    data = pd.concat([bars, scale, note_rows(bars.empty, NOTHING)])
    return Figure(spec, data, _description(gained, lost, roles, n_heads))


@cache
def _spec(roles: tuple[str, ...], n_layers: int) -> Spec:
    bars, numbers = _bars(roles, n_layers), _numbers(len(roles), n_layers)
    return template(
        alt.layer(alt.layer(*bars), alt.layer(*numbers), note()).resolve_axis(y="independent"),
        title="Roles gained and lost, by layer",
        reading=("up, solid: gained; down, dashed: lost",),
        height=LANE * len(roles),
    )


def _bars(roles: tuple[str, ...], n_layers: int) -> "list[alt.Chart]":
    """Bars up and down, and the names of the roles on the left."""
    names = alt.Axis(
        values=[lane + 0.5 for lane in range(len(roles))],
        labelExpr=f"{json.dumps([LOOKS[role].lines for role in reversed(roles)])}[floor(datum.value)]",
        title=None,
        grid=True,
        gridColor=INK,
        gridOpacity=0.7,
        ticks=False,
        domain=False,
        labelPadding=8,
    )
    x, y = _layer_position(n_layers), alt.Y("zero:Q", scale=lane_scale(len(roles)), axis=names)
    color = role_colors(alt.Color, roles)
    tooltip = [
        alt.Tooltip("role:N", title="role"),
        alt.Tooltip("layer:N", title="layer"),
        alt.Tooltip("kind:N", title="change"),
        alt.Tooltip("heads:N", title="heads"),
        alt.Tooltip("of:N", title="of heads"),
    ]
    gained = of_kind("gained").mark_bar(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    lost = of_kind("lost").mark_bar(stroke=INK, strokeWidth=1.5, strokeDash=[3, 2], fillOpacity=0.25)
    return [bars.encode(x=x, y=y, y2=alt.Y2("end"), color=color, tooltip=tooltip) for bars in (gained, lost)]


def _numbers(n_roles: int, n_layers: int) -> "list[alt.Chart]":
    """Numbers at the ends of the bars, and the scale on the right."""
    ends = alt.Axis(
        values=[lane + 0.5 + sign * REACH for lane in range(n_roles) for sign in (1, -1)],
        orient="right",
        title="heads in the layer",
        titlePadding=26,
        grid=True,
        gridColor=INK,
        gridOpacity=0.15,
        ticks=False,
        domain=False,
        labels=False,
    )
    x, y = _layer_position(n_layers), alt.Y("end:Q", scale=lane_scale(n_roles), axis=ends)
    fits = alt.expr(f"width / {n_layers} < {2 * NARROWEST} ? 0 : 1")
    gained = of_kind("gained").mark_text(color=INK, fontSize=10, opacity=fits, baseline="bottom", dy=-2)
    lost = of_kind("lost").mark_text(color=INK, fontSize=10, opacity=fits, baseline="top", dy=3)
    scale = of_kind("scale").mark_text(color=INK, fontSize=10, align="left", baseline="middle", dx=6)
    return [
        *(numbers.encode(x=x, y=y, text=alt.Text("label:N")) for numbers in (gained, lost)),
        scale.encode(x=alt.XValue("width"), y=y, text=alt.Text("label:N")),
    ]


def _layer_position(n_layers: int) -> "alt.X":
    scale, axis = alt.Scale(domain=list(range(n_layers))), alt.Axis(labelAngle=0, labelOverlap=True)
    return alt.X("layer:O", title=LAYER_AXIS, scale=scale, axis=axis)


def _description(
    gained: Int[np.ndarray, "role layer"], lost: Int[np.ndarray, "role layer"], roles: Sequence[str], n_heads: int
) -> str:
    n_layers = gained.shape[1]
    start = (
        f"Bars by layer: how many of the {counted(n_layers * n_heads, 'head')} in {counted(n_layers, 'layer')} "
        "gain or lose each role"
    )
    changes = gained + lost
    if not changes.any():
        return f"{start}. {NOTHING}"
    parts = [
        f"{LOOKS[role].label} gained by {n_gained.sum()}, lost by {n_lost.sum()}"
        + (f" (most changes in layer {n_changed.argmax()}, {n_changed.max()})" if n_changed.any() else "")
        for role, n_gained, n_lost, n_changed in zip(roles, gained, lost, changes, strict=True)
    ]
    return f"{start}. {'; '.join(parts)}."
