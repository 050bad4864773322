"""How many heads of each layer hold each role."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import LAYER_AXIS, lane_ends, lane_names, lane_scale, tooltips
from attention_sieve.dashboard.figures.figure import GREY, INK, Figure, Spec, alt, counted, rows_of, template

SEVERAL: Final = "two or more coarse roles"
LANE: Final = 62
FULL: Final = 0.76
"""Part of that height for a layer whose heads all hold the role."""
NARROWEST: Final = 11
"""Minimum width of a layer in pixels for the number above its bar."""


def heads_per_layer(tests: HeadTests, roles: Sequence[str]) -> Figure:
    """Bars by layer, one row of bars for each role and one for the heads with two or more coarse roles.

    Source: Pande et al. 2021, roles across layers and multi-functional heads.
    """
    held = tests.holds.sum(axis=2)[[tests.roles.index(role) for role in roles]]
    coarse, _ = shown_roles(tests.mean, tests.roles)
    n_coarse = tests.holds[[role in coarse for role in tests.roles]].sum(axis=0)
    counts = np.concatenate([held, (n_coarse >= 2).sum(axis=1)[None]])
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
    return template(
        alt.layer(_bars(roles, n_heads), _numbers(roles, n_layers)).resolve_axis(y="independent"),
        title="Heads that hold each role, by layer",
        height=LANE * (len(roles) + 1),
    )


def _bars(roles: tuple[str, ...], n_heads: int) -> "alt.Chart":
    n_lanes = len(roles) + 1
    names = (SEVERAL, *reversed(roles))
    colors = [GREY, *(LOOKS[role].color for role in names[1:])]
    tooltip = tooltips("role", "layer", "heads", ("of", "of heads"))
    ends = lane_ends(n_lanes, FULL, str(n_heads), "heads in the layer")
    bars = rows_of("bar").mark_bar(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    return bars.encode(
        x=alt.X("layer:O", title=LAYER_AXIS, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("base:Q", scale=lane_scale(n_lanes), axis=ends),
        y2=alt.Y2("top"),
        color=alt.Color("role:N", scale=alt.Scale(domain=list(names), range=colors), legend=None),
        tooltip=tooltip,
    )


def _numbers(roles: tuple[str, ...], n_layers: int) -> "alt.Chart":
    lines = [["two or more", "coarse roles"], *(LOOKS[role].lines for role in reversed(roles))]
    fits = alt.expr(f"width / {n_layers} < {NARROWEST} ? 0 : 1")
    numbers = rows_of("bar").mark_text(color=INK, baseline="bottom", dy=-1, fontSize=10, opacity=fits)
    return numbers.encode(
        x=alt.X("layer:O", title=LAYER_AXIS),
        y=alt.Y("top:Q", scale=lane_scale(len(lines)), axis=lane_names(lines, FULL / 2)),
        text=alt.when("datum.heads > 0").then("heads:N").otherwise(alt.value("")),
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
