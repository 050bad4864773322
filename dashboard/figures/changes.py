"""How many heads of each layer gain and lose each role from one checkpoint to another."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.layers import NARROWEST
from dashboard.figures.shifts import note_layer

LANE: Final = 84
"""Height of one role's row of bars, in pixels."""
REACH: Final = 0.35
"""Part of that height that the longest bar takes, up or down; its number needs the rest."""
FEWEST: Final = 3
"""Heads that the scale reaches to at least, so that one head is not a full bar."""
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

    Returns: the figure; all roles share one scale, which reaches as far as the longest bar.
    Source: Pande et al. 2021, roles before and after fine-tuning, which they describe in words.
    """
    most = max(FEWEST, int(gained.max()), int(lost.max()))
    zeros = {role: len(roles) - lane - 0.5 for lane, role in enumerate(roles)}
    bars = pd.DataFrame(
        {
            **{"kind": kind, "role": role, "layer": place, "heads": heads, "of": n_heads, "zero": zeros[role]},
            "end": zeros[role] + sign * REACH * heads / most,
            "label": f"{'+' if sign > 0 else '−'}{heads}",
        }
        for kind, sign, counts in (("gained", 1, gained), ("lost", -1, lost))
        for role, row in zip(roles, counts, strict=True)
        for place, heads in enumerate(row.tolist())
        if heads
    )
    scale = pd.DataFrame(
        {"kind": "scale", "end": zero + sign * REACH, "label": str(most if sign else 0)}
        for zero in zeros.values()
        for sign in (1, 0, -1)
    )
    note = pd.DataFrame({"kind": [] if len(bars) else ["note"], "label": [] if len(bars) else [NOTHING]})
    spec = _spec(tuple(roles), gained.shape[1])
    return Figure(spec, pd.concat([bars, scale, note]), _description(gained, lost, roles, n_heads))


@cache
def _spec(roles: tuple[str, ...], n_layers: int) -> Spec:
    names = tuple(reversed(roles))
    labels = [[LOOKS[role].label, f"({LOOKS[role].letter})"] for role in names]
    zeros = [lane + 0.5 for lane in range(len(names))]
    x = {
        "field": "layer",
        "type": "ordinal",
        "title": "layer (0 is next to the input)",
        "scale": {"domain": list(range(n_layers))},
        "axis": {"labelAngle": 0, "labelOverlap": True},
    }
    y = {"type": "quantitative", "scale": {"domain": [0, len(names)], "nice": False, "zero": True}}
    left = {
        "values": zeros,
        "labelExpr": f"{json.dumps(labels)}[floor(datum.value)]",
        **{"title": None, "grid": True, "gridColor": INK, "gridOpacity": 0.7, "ticks": False, "domain": False},
        "labelPadding": 8,
    }
    right = {
        "values": [zero + sign * REACH for zero in zeros for sign in (1, -1)],
        **{"orient": "right", "title": "heads in the layer", "titlePadding": 26},
        **{"grid": True, "gridColor": INK, "gridOpacity": 0.15, "ticks": False, "domain": False, "labels": False},
    }
    color = {
        "field": "role",
        "type": "nominal",
        "scale": {"domain": list(roles), "range": [LOOKS[role].color for role in roles]},
        "legend": None,
    }
    tooltip = [
        {"field": "role", "title": "role"},
        {"field": "layer", "title": "layer"},
        {"field": "kind", "title": "change"},
        {"field": "heads", "title": "heads"},
        {"field": "of", "title": "of heads"},
    ]
    looks = {
        "gained": {"stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5},
        "lost": {"stroke": INK, "strokeWidth": 1.5, "strokeDash": [3, 2], "fillOpacity": 0.25},
    }
    number = {"type": "text", "color": INK, "fontSize": 10}
    number["opacity"] = {"expr": f"width / {n_layers} < {2 * NARROWEST} ? 0 : 1"}
    sides = {"gained": {"baseline": "bottom", "dy": -2}, "lost": {"baseline": "top", "dy": 3}}
    bars = [
        layer(
            kind,
            {"type": "bar", **look},
            x=x,
            y={**y, "field": "zero", "axis": left},
            y2={"field": "end"},
            color=color,
            tooltip=tooltip,
        )
        for kind, look in looks.items()
    ]
    numbers = [
        layer(kind, {**number, **place}, x=x, y={**y, "field": "end", "axis": right}, text={"field": "label"})
        for kind, place in sides.items()
    ]
    text = {"type": "text", "color": INK, "align": "left"}
    return picture(
        [
            {"layer": bars},
            {
                "layer": [
                    *numbers,
                    layer(
                        "scale",
                        {**text, "fontSize": 10, "dx": 6, "baseline": "middle"},
                        x={"value": "width"},
                        y={**y, "field": "end", "axis": right},
                        text={"field": "label"},
                    ),
                ]
            },
            note_layer(),
        ],
        title="Roles gained and lost, by layer",
        reading=("up, solid: gained; down, dashed: lost",),
        height=LANE * len(names),
        resolve={"axis": {"y": "independent"}},
    )


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
        f"{LOOKS[role].label} gained by {up.sum()}, lost by {down.sum()}"
        + (f" (most changes in layer {both.argmax()}, {both.max()})" if both.any() else "")
        for role, up, down, both in zip(roles, gained, lost, changes, strict=True)
    ]
    return f"{start}. {'; '.join(parts)}."
