"""How many heads of each layer hold each role."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from core.hypotheses import HeadTests
from core.roles import heads_with_several, roles_per_layer, shown_roles
from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import GREY, INK, Figure, Spec, counted, layer, picture

SEVERAL: Final = "two or more coarse roles"
LANE: Final = 62
"""Height of one role's row of bars, in pixels."""
FULL: Final = 0.76
"""Part of that height that a layer takes whose heads all hold the role."""
NARROWEST: Final = 11
"""Pixels a layer needs for the number above its bar."""


def heads_per_layer(tests: HeadTests, roles: Sequence[str]) -> Figure:
    """Bars by layer, one row of bars for each role and one for the heads with two or more coarse roles.

    Args:
        tests: who holds what.
        roles: the roles to show, top first.

    Source: Pande et al. 2021, roles across layers and multi-functional heads.
    """
    held = roles_per_layer(tests.holds)[[tests.roles.index(role) for role in roles]]
    coarse, _ = shown_roles(tests.mean, tests.roles)
    counts = np.concatenate([held, heads_with_several(tests.holds, tests.roles, coarse)[None]])
    n_heads = tests.holds.shape[2]
    lanes = pd.DataFrame(
        {"role": role, "layer": place, "heads": number, "of": n_heads, "base": len(roles) - lane}
        for lane, (role, row) in enumerate(zip((*roles, SEVERAL), counts, strict=True))
        for place, number in enumerate(row.tolist())
    ).assign(kind="bar")
    lanes["top"] = lanes["base"] + FULL * lanes["heads"] / n_heads
    return Figure(_spec(tuple(roles), n_heads, counts.shape[1]), lanes, _description(counts, roles, n_heads))


@cache
def _spec(roles: tuple[str, ...], n_heads: int, n_layers: int) -> Spec:
    names = (SEVERAL, *reversed(roles))
    labels = [["two or more", "coarse roles"], *([LOOKS[role].label, f"({LOOKS[role].letter})"] for role in names[1:])]
    lanes = range(len(names))
    by_role = {"domain": list(names), "range": [GREY, *(LOOKS[role].color for role in names[1:])]}
    x = {"field": "layer", "type": "ordinal", "title": "layer (0 is next to the input)"}
    y = {"type": "quantitative", "scale": {"domain": [0, len(names)], "nice": False, "zero": True}}
    left = {
        "values": [lane + FULL / 2 for lane in lanes],
        "labelExpr": f"{json.dumps(labels)}[floor(datum.value)]",
        **{"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 8},
    }
    right = {
        "values": [value for lane in lanes for value in (lane, lane + FULL)],
        "labelExpr": f"datum.value == floor(datum.value) ? '0' : '{n_heads}'",
        **{"orient": "right", "title": "heads in the layer", "grid": True, "ticks": False, "domain": False},
        "labelOverlap": False,
    }
    tooltip = [
        {"field": "role", "title": "role"},
        {"field": "layer", "title": "layer"},
        {"field": "heads", "title": "heads"},
        {"field": "of", "title": "of heads"},
    ]
    numbers = {"type": "text", "color": INK, "baseline": "bottom", "dy": -1, "fontSize": 10}
    numbers["opacity"] = {"expr": f"width / {n_layers} < {NARROWEST} ? 0 : 1"}
    return picture(
        [
            layer(
                "bar",
                {"type": "bar", "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5},
                x={**x, "axis": {"labelAngle": 0, "labelOverlap": True}},
                y={**y, "field": "base", "axis": right},
                y2={"field": "top"},
                color={"field": "role", "type": "nominal", "scale": by_role, "legend": None},
                tooltip=tooltip,
            ),
            layer(
                "bar",
                numbers,
                x=x,
                y={**y, "field": "top", "axis": left},
                text={"condition": {"test": "datum.heads > 0", "field": "heads"}, "value": ""},
            ),
        ],
        title="Heads that hold each role, by layer",
        height=LANE * len(names),
        resolve={"axis": {"y": "independent"}},
    )


def _description(counts: Int[np.ndarray, "lane layer"], roles: Sequence[str], n_heads: int) -> str:
    parts = [
        f"{name} {row.sum()}"
        + (f" (most in layer {row.argmax()}, {counted(int(row.max()), 'head')})" if any(row) else "")
        for name, row in zip([*(LOOKS[role].label for role in roles), SEVERAL], counts, strict=True)
    ]
    n_layers = counts.shape[1]
    return (
        f"Bars by layer: how many of the {counted(n_layers * n_heads, 'head')} in {counted(n_layers, 'layer')} "
        f"hold each role. {'; '.join(parts)}."
    )
