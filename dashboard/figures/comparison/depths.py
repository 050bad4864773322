"""Checkpoints of different shapes side by side: shares of heads, by relative depth and overall."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, drawable, rows_of, template

LANE: Final = 84
"""Height of one role's row of lines, in pixels."""
FULL: Final = 0.82
"""Part of that height that represents all heads."""
BAR: Final = 18
"""Height of one checkpoint's bar, in pixels."""
NAME: Final = 24
"""Characters of a checkpoint's name that fit beside a bar and in a legend."""


def roles_by_depth(
    names: Sequence[str],
    shares: Sequence[Float[np.ndarray, "role layer"]],
    depths: Sequence[Float[np.ndarray, " layer"]],
    roles: Sequence[str],
) -> Figure:
    """Share of a layer's heads that hold each role against relative depth, one row of lines for each role.

    Args:
        names: of the checkpoints, the reference first.
        shares: of each checkpoint, 0 to 1; NaN if not applicable. The number of layers may differ.
        depths: of each checkpoint's layers, 0 next to the input to 1 at the output.
        roles: names along the role axis, top first.
    """
    points = pd.concat(
        pd.DataFrame(
            {
                "kind": "share",
                "series": number,
                "checkpoint": drawable(name),
                "role": role,
                "share": row,
                "depth": depth,
                "layer": range(len(row)),
                "place": len(roles) - 1 - lane + FULL * row,
            }
        )
        for number, (name, depth, role_shares) in enumerate(zip(names, depths, shares, strict=True))
        for lane, (role, row) in enumerate(zip(roles, role_shares, strict=True))
    )
    spec = _depth_spec(tuple(drawable(name, NAME) for name in names), tuple(roles))
    return Figure(spec, points, _depth_description(names, shares, roles))


def overall_shares(
    names: Sequence[str], shares: Float[np.ndarray, "checkpoint role"], n_heads: Sequence[int], roles: Sequence[str]
) -> Figure:
    """Bars: the share of all heads of each checkpoint that hold each role.

    Args:
        names: of the checkpoints, the reference first.
        shares: 0 to 1; NaN where a role is not applicable.
        n_heads: heads of each checkpoint in all its layers.
        roles: names along the role axis, top first.
    """
    number, role_index = np.indices(shares.shape).reshape(2, -1)
    bars = pd.DataFrame(
        {
            "kind": "bar",
            "checkpoint": np.array([drawable(name) for name in names])[number],
            "role": np.array(roles)[role_index],
            "share": shares.ravel(),
            "of": np.array(n_heads)[number],
            "top": role_index * (len(names) + 1.5) + number + 1,
            "zero": 0.0,
        }
    )
    missing = bars[bars["share"].isna()].assign(kind="none", label="not applicable")
    bars = bars[bars["share"].notna()].assign(
        heads=lambda known: (known["share"] * known["of"]).round().astype(int), bottom=lambda known: known["top"] + 0.8
    )
    spec = _shares_spec(tuple(drawable(name, NAME) for name in names), tuple(roles))
    return Figure(spec, pd.concat([bars, missing]), _shares_description(names, shares, roles))


@lru_cache(maxsize=64)
def _depth_spec(names: tuple[str, ...], roles: tuple[str, ...]) -> Spec:
    def y(axis: alt.Axis) -> alt.Y:
        return alt.Y("place:Q", scale=axes.lane_scale(len(roles)), axis=axis)

    x = alt.X(
        "depth:Q",
        title="relative depth (0: next to the input, 1: output)",
        scale=alt.Scale(domain=[-0.02, 1.02], nice=False, zero=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", grid=False),
    )
    tooltip = axes.tooltips(
        "checkpoint", "role", "layer", ("depth", "relative depth", ".2f"), ("share", "share of heads", ".3~f")
    )
    rows = rows_of("share").encode(x=x, detail=alt.Detail("role:N"))
    left = axes.lane_names([LOOKS[role].lines for role in reversed(roles)], FULL / 2)
    right = axes.lane_ends(len(roles), FULL, "1", "share of the layer's heads")
    return template(
        alt.layer(
            axes.series_line(rows.encode(y=y(left)), names),
            axes.series_points(rows.encode(y=y(right)), names, tooltip, 45),
        ).resolve_axis(y="independent"),
        title="Roles by relative depth",
        reading=("share of each layer's heads; first: the reference",),
        height=LANE * len(roles),
    )


@lru_cache(maxsize=64)
def _shares_spec(names: tuple[str, ...], roles: tuple[str, ...]) -> Spec:
    def share(field: str) -> alt.X:
        axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
        scale = alt.Scale(domain=[0, 1], nice=False)
        return alt.X(field, type="quantitative", title="share of all heads", scale=scale, axis=axis)

    y = _bar_position(names, roles)
    tooltip = axes.tooltips("checkpoint", "role", "heads", ("of", "of heads"), ("share", "share", ".1%"))
    bar = rows_of("bar").mark_rect(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    bar = bar.encode(
        x=share("zero"),
        x2=alt.X2("share"),
        y=y,
        y2=alt.Y2("bottom"),
        color=axes.role_colors(alt.Color, roles),
        tooltip=tooltip,
    )
    style = {"color": INK, "align": "left", "baseline": "top", "dx": 4, "dy": 2, "fontSize": 11}
    percent = rows_of("bar").mark_text(**style).encode(x=share("share"), y=y, text=alt.Text("share:N", format=".0%"))
    missing = rows_of("none").mark_text(**style).encode(x=alt.XValue(0), y=y, text=alt.Text("label:N"))
    return template(
        alt.layer(bar, percent, missing),
        title="Share of all heads that hold each role",
        reading=("the first checkpoint is the reference",),
        height=round(BAR * _height(names, roles)),
    )


def _height(names: Sequence[str], roles: Sequence[str]) -> float:
    """Total height in bars: each role has a heading, and there is half a bar of space between roles."""
    return (len(names) + 1.5) * len(roles) - 0.5


def _bar_position(names: tuple[str, ...], roles: tuple[str, ...]) -> "alt.Y":
    group = len(names) + 1.5
    labels = [label for role in roles for label in (LOOKS[role].lettered, *names)]
    row = f"floor(datum.value % {group:g})"
    return alt.Y(
        "top:Q",
        scale=alt.Scale(domain=[0, _height(names, roles)], nice=False, zero=True, reverse=True),
        axis=alt.Axis(
            values=[lane * group + row + 0.4 for lane in range(len(roles)) for row in range(len(names) + 1)],
            labelExpr=f"{json.dumps(labels)}[floor(datum.value / {group:g}) * {len(names) + 1} + {row}]",
            labelFontWeight=alt.when(f"{row} == 0").then(alt.value("bold")).otherwise(alt.value("normal")),
            title=None,
            grid=False,
            ticks=False,
            domain=False,
            labelOverlap=False,
            labelLimit=0,
            labelPadding=6,
        ),
    )


def _depth_description(
    names: Sequence[str], shares: Sequence[Float[np.ndarray, "role layer"]], roles: Sequence[str]
) -> str:
    parts = [
        f"{drawable(name)}, {counted(checkpoint_shares.shape[1], 'layer')}: {_means(checkpoint_shares, roles)}"
        for name, checkpoint_shares in zip(names, shares)
    ]
    missing = sum(int(np.isnan(checkpoint_shares).sum()) for checkpoint_shares in shares)
    left_out = f" {counted(missing, 'share')} without a value left out." if missing else ""
    return (
        f"Lines by relative depth for {counted(len(names), 'checkpoint')}: share of a layer's heads that hold each "
        f"role. Means over the layers: {'; '.join(parts)}.{left_out}"
    )


def _means(shares: Float[np.ndarray, "role layer"], roles: Sequence[str]) -> str:
    known = [(role, row[~np.isnan(row)]) for role, row in zip(roles, shares, strict=True)]
    return ", ".join(f"{LOOKS[role].label} {row.mean():.0%}" for role, row in known if len(row)) or "none"


def _shares_description(
    names: Sequence[str], shares: Float[np.ndarray, "checkpoint role"], roles: Sequence[str]
) -> str:
    parts = [f"{drawable(name)}: {_means(row[:, None], roles)}" for name, row in zip(names, shares, strict=True)]
    missing = int(np.isnan(shares).sum())
    left_out = f" {counted(missing, 'share')} not applicable and left out." if missing else ""
    return f"Bars: share of all heads of each checkpoint that hold each role. {'; '.join(parts)}.{left_out}"
