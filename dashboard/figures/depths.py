"""Checkpoints of different shapes side by side: shares of heads, by relative depth and overall."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from dashboard.figures.appearance import HEAD_COLORS, LOOKS
from dashboard.figures.checkpoints import shown
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.p_values import SHAPES

LANE: Final = 84
"""Height of one role's row of lines, in pixels."""
FULL: Final = 0.82
"""Part of that height that stands for all heads."""
BAR: Final = 18
"""Height of one checkpoint's bar, in pixels."""
NAME: Final = 20
"""Signs of a checkpoint's name that fit beside a bar and in a legend."""
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
MARKS: Final = tuple(SHAPES.values())


def roles_by_depth(
    names: Sequence[str],
    shares: Sequence[Float[np.ndarray, "role layer"]],
    depths: Sequence[Float[np.ndarray, " layer"]],
    roles: Sequence[str],
) -> Figure:
    """Share of a layer's heads that hold each role against relative depth, one row of lines for each role.

    Args:
        names: of the checkpoints, the reference first.
        shares: of each checkpoint, 0 to 1; NaN where there is none. The number of layers may differ.
        depths: of each checkpoint's layers, 0 next to the input to 1 at the output.
        roles: names along the role axis, top first.
    """
    points = pd.concat(
        pd.DataFrame(
            {
                **{"kind": "share", "number": number, "checkpoint": shown(name), "role": role, "share": row},
                **{"depth": depth, "layer": range(len(row)), "place": len(roles) - 1 - lane + FULL * row},
            }
        )
        for number, (name, depth, of_roles) in enumerate(zip(names, depths, shares, strict=True))
        for lane, (role, row) in enumerate(zip(roles, of_roles, strict=True))
    )
    spec = _depth_spec(tuple(shown(name, NAME) for name in names), tuple(roles))
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
    number, place = np.indices(shares.shape).reshape(2, -1)
    bars = pd.DataFrame(
        {
            **{"kind": "bar", "checkpoint": np.array([shown(name) for name in names])[number]},
            **{"role": np.array(roles)[place], "share": shares.ravel(), "of": np.array(n_heads)[number]},
            "top": place * (len(names) + 1.5) + number + 1,
            "zero": 0.0,
        }
    )
    none = bars[bars["share"].isna()].assign(kind="none", label="not applicable")
    bars = bars[bars["share"].notna()].assign(
        heads=lambda known: (known["share"] * known["of"]).round().astype(int), bottom=lambda known: known["top"] + 0.8
    )
    spec = _shares_spec(tuple(shown(name, NAME) for name in names), tuple(roles))
    return Figure(spec, pd.concat([bars, none]), _shares_description(names, shares, roles))


@lru_cache(maxsize=64)
def _depth_spec(names: tuple[str, ...], roles: tuple[str, ...]) -> Spec:
    numbers, lanes = range(len(names)), range(len(roles))
    labels = [[LOOKS[role].label, f"({LOOKS[role].letter})"] for role in reversed(roles)]

    def by_checkpoint(looks: Sequence[object]) -> Spec:
        legend = {
            "orient": "bottom",
            "columns": 2,
            "title": None,
            "labelExpr": f"{json.dumps(names)}[datum.value]",
            **{"symbolSize": 90, "symbolOpacity": 1, "symbolStrokeWidth": 0, "labelLimit": 0},
        }
        scale = {"domain": list(numbers), "range": [looks[number % len(looks)] for number in numbers]}
        return {"field": "number", "type": "nominal", "scale": scale, "legend": legend}

    x = {
        "field": "depth",
        "type": "quantitative",
        "title": "relative depth (0: next to the input, 1: output)",
        "scale": {"domain": [-0.02, 1.02], "nice": False, "zero": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f", "grid": False},
    }
    y = {"type": "quantitative", "scale": {"domain": [0, len(roles)], "nice": False, "zero": True}}
    left = {
        "values": [lane + FULL / 2 for lane in lanes],
        "labelExpr": f"{json.dumps(labels)}[floor(datum.value)]",
        **{"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 8},
    }
    right = {
        "values": [value for lane in lanes for value in (lane, lane + FULL)],
        "labelExpr": "datum.value == floor(datum.value) ? '0' : '1'",
        **{"orient": "right", "title": "share of the layer's heads", "grid": True, "ticks": False, "domain": False},
        "labelOverlap": False,
    }
    tooltip = [
        {"field": "checkpoint", "title": "checkpoint"},
        {"field": "role", "title": "role"},
        {"field": "layer", "title": "layer"},
        {"field": "depth", "title": "relative depth", "format": ".2f"},
        {"field": "share", "title": "share of heads", "format": ".3~f"},
    ]
    color, shape = by_checkpoint(HEAD_COLORS), by_checkpoint(MARKS)
    line = {"type": "line", "strokeWidth": 2}
    return picture(
        [
            layer(
                "share",
                line,
                x=x,
                y={**y, "field": "place", "axis": left},
                color=color,
                strokeDash=by_checkpoint(DASHES),
                detail={"field": "role"},
            ),
            layer(
                "share",
                {"type": "point", "filled": True, "size": 45, "opacity": 1},
                x=x,
                y={**y, "field": "place", "axis": right},
                color=color,
                shape=shape,
                tooltip=tooltip,
            ),
        ],
        title="Roles by relative depth",
        reading=("share of each layer's heads; first: the reference",),
        height=LANE * len(roles),
        resolve={"axis": {"y": "independent"}},
    )


@lru_cache(maxsize=64)
def _shares_spec(names: tuple[str, ...], roles: tuple[str, ...]) -> Spec:
    group = len(names) + 1.5
    headings = {role: f"{LOOKS[role].label} ({LOOKS[role].letter})" for role in roles}
    labels = [heading for role in roles for heading in (headings[role], *names)]
    places = [lane * group + row + 0.4 for lane in range(len(roles)) for row in range(len(names) + 1)]
    row = f"floor(datum.value % {group:g})"
    x = {
        "field": "share",
        "type": "quantitative",
        "title": "share of all heads",
        "scale": {"domain": [0, 1], "nice": False},
        "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]},
    }
    y = {
        "field": "top",
        "type": "quantitative",
        "scale": {"domain": [0, group * len(roles) - 0.5], "nice": False, "zero": True, "reverse": True},
        "axis": {
            "values": places,
            "labelExpr": f"{json.dumps(labels)}[floor(datum.value / {group:g}) * {len(names) + 1} + {row}]",
            "labelFontWeight": {"condition": {"test": f"{row} == 0", "value": "bold"}, "value": "normal"},
            **{"title": None, "grid": False, "ticks": False, "domain": False, "labelOverlap": False, "labelLimit": 0},
            "labelPadding": 6,
        },
    }
    color = {
        "field": "role",
        "type": "nominal",
        "scale": {"domain": list(roles), "range": [LOOKS[role].color for role in roles]},
        "legend": None,
    }
    tooltip = [
        {"field": "checkpoint", "title": "checkpoint"},
        {"field": "role", "title": "role"},
        {"field": "heads", "title": "heads"},
        {"field": "of", "title": "of heads"},
        {"field": "share", "title": "share", "format": ".1%"},
    ]
    text = {"type": "text", "color": INK, "align": "left", "baseline": "top", "dx": 4, "dy": 2, "fontSize": 11}
    return picture(
        [
            layer(
                "bar",
                {"type": "rect", "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5},
                x={**x, "field": "zero"},
                x2={"field": "share"},
                y=y,
                y2={"field": "bottom"},
                color=color,
                tooltip=tooltip,
            ),
            layer("bar", text, x=x, y=y, text={"field": "share", "format": ".0%"}),
            layer("none", text, x={"value": 0}, y=y, text={"field": "label"}),
        ],
        title="Share of all heads that hold each role",
        reading=("the first checkpoint is the reference",),
        height=round(BAR * (group * len(roles) - 0.5)),
    )


def _depth_description(
    names: Sequence[str], shares: Sequence[Float[np.ndarray, "role layer"]], roles: Sequence[str]
) -> str:
    parts = [f"{shown(name)}, {counted(of.shape[1], 'layer')}: {_means(of, roles)}" for name, of in zip(names, shares)]
    missing = sum(int(np.isnan(of).sum()) for of in shares)
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
    parts = [f"{shown(name)}: {_means(row[:, None], roles)}" for name, row in zip(names, shares, strict=True)]
    missing = int(np.isnan(shares).sum())
    left_out = f" {counted(missing, 'share')} not applicable and left out." if missing else ""
    return f"Bars: share of all heads of each checkpoint that hold each role. {'; '.join(parts)}.{left_out}"
