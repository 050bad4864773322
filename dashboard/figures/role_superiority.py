"""How often a head with a role has a higher value than one without: a row for each role, with intervals."""

from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.statistics.by_role import ByRole
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LOOKS
from attention_sieve.dashboard.figures.axes import note, note_rows, shares_axis, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, percent, rows_of, template

ROW: Final = 48
"""Height of one role in pixels."""
LEAST_HEIGHT: Final = 2 * ROW
NOTHING: Final = "Every role is held by all heads or by none."
AHEAD: Final = "pairs in which the head with the role leads"


def role_superiority(compared: ByRole) -> Figure:
    """Pairs in which the head with the role leads, of all heads and within layers; none for roles without pairs."""
    rows = pd.DataFrame(
        {
            "role": [LOOKS[role].label for role in compared.roles],
            "with": compared.n_holding,
            "without": compared.n_others,
            "superiority": compared.superiority,
            "low": compared.low,
            "high": compared.high,
            "p": compared.p_adjusted,
            "in_layers": compared.in_layers,
            "p_in_layers": compared.p_in_layers_adjusted,
        }
    ).dropna(subset="superiority")
    middle = pd.DataFrame({"kind": ["middle"], "superiority": [0.5]})
    kinds = [rows.assign(kind=kind) for kind in ("interval", "all")]
    kinds.append(rows.dropna(subset="in_layers").assign(kind="layers"))
    data = pd.concat([middle, *kinds, note_rows(rows.empty, NOTHING)], ignore_index=True)
    return Figure(_spec(tuple(rows["role"])), data, _description(rows))


def _description(rows: pd.DataFrame) -> str:
    if rows.empty:
        return NOTHING
    parts = [
        f"{row.role} {percent(row.superiority, 0)} ({percent(row.low, 0)} to {percent(row.high, 0)})"
        + ("" if np.isnan(row.in_layers) else f", within layers {percent(row.in_layers, 0)}")
        for row in rows.itertuples()
    ]
    return f"Share of {AHEAD}, with 95% intervals: {'; '.join(parts)}."


@lru_cache(maxsize=16)
def _spec(roles: tuple[str, ...]) -> Spec:
    names = alt.Axis(labelLimit=140, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("role:N", title=None, sort=None, scale=alt.Scale(domain=list(roles)), axis=names)
    tooltip = tooltips(
        "role",
        ("with", "heads with it"),
        ("without", "heads without it"),
        ("superiority", "pairs of all heads", ".0%"),
        ("low", "95% interval from", ".0%"),
        ("high", "to", ".0%"),
        ("p", "p, corrected", ".2~g"),
        ("in_layers", "pairs within layers", ".0%"),
        ("p_in_layers", "p within layers, corrected", ".2~g"),
    )
    middle = rows_of("middle").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=shares_axis("superiority", AHEAD))
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    dot = rows_of("all").mark_point(shape="circle", filled=True, color=HEAD_COLORS[0], size=120, opacity=1)
    within = rows_of("layers").mark_point(
        shape="diamond", filled=False, color=HEAD_COLORS[1], size=110, strokeWidth=2.2, opacity=1, yOffset=13
    )
    return template(
        alt.layer(
            middle,
            interval.encode(x=shares_axis("low", AHEAD), x2=alt.X2("high"), y=y),
            dot.encode(x=shares_axis("superiority", AHEAD), y=y, tooltip=tooltip),
            within.encode(x=shares_axis("in_layers", AHEAD), y=y, tooltip=tooltip),
            note(),
        ),
        title="Heads with a role against heads without it",
        reading=("dot: pairs of all heads, line: 95% interval", "diamond: pairs within a layer; dashed: no difference"),
        height=max(ROW * len(roles), LEAST_HEIGHT),
    )
