"""A tested claim: a line for each head, with its score and all that it has to beat."""

from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.claims.judge import HOLDING, ClaimFinding
from attention_sieve.core.claims.tables import claim_table, control_name
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, WORDS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

MOST: Final = 24
"""Heads that are drawn; of more, those with the highest scores."""
LANE: Final = 44
"""Height of the line of a head."""
SCORE: Final = HEAD_COLORS[0]
PERMUTED: Final = "permuted keys"
CHANCE: Final[dict[Scale, float]] = {"score": 1, "share": 0}
"""Score of uniform attention."""


def claim_strips(finding: ClaimFinding) -> Figure:
    """A line for each head: its score with the interval, filled where the claim holds, beside tau, uniform attention,
    permuted keys and what distance alone gives: as a mark, or in numbers where it is not on the same scale."""
    scores, tau = finding.settings.role_settings.scores, finding.settings.role_settings.criterion.tau
    table = claim_table(finding)
    heads = table.nlargest(MOST, "mean").sort_index() if len(table) > MOST else table
    heads = heads.assign(name=list(map(head_name, heads["layer"], heads["head"])), holds=heads["verdict"].isin(HOLDING))
    distance = control_name(finding)
    beside = {PERMUTED: "permuted"}
    if finding.probed.fixed is not None or scores.scale == "score":
        beside[distance] = "positional"
    marks = [heads.assign(kind="beside", what=what, value=heads[column]) for what, column in beside.items()]
    lines = {"tau": tau, "uniform attention": CHANCE[scores.scale]}
    apart = heads[heads["positional"].notna() & (distance not in beside)]
    told = map("{:.1f} × joined, {:.1f} × at the same distance".format, apart["compared"], apart["positional"])
    data = pd.concat(
        [
            apart.assign(kind="distance", label=list(told)),
            heads.assign(kind="head", what="score", value=heads["mean"]),
            *(rows[rows["value"].notna()] for rows in marks),
            pd.DataFrame({"kind": "line", "value": lines.values(), "label": lines.keys()}),
        ]
    )
    names, ends = tuple(heads["name"]), axes.score_ends(data, ("value", "low", "high"), scores.scale)
    left_out = len(table) - len(heads)
    described = "; ".join(
        f"{row.name} {row.mean:.2f}, {PERMUTED} {row.permuted:.2f}"
        + (f", {distance} {row.positional:.2f}" if distance in beside and not np.isnan(row.positional) else "")
        + f": {row.verdict}"
        for row in heads.itertuples(index=False)
    )
    return Figure(
        _spec(names, tuple(beside), scores.scale, ends),
        data,
        f"Mean score of each head of the claim, with tau {tau:g}. {described}."
        + (f" {counted(left_out, 'head')} with lower scores left out." if left_out else ""),
    )


@cache
def _spec(names: tuple[str, ...], beside: tuple[str, ...], scale: Scale, ends: axes.Ends) -> Spec:
    def across(field: str) -> "alt.X":
        return axes.score_position(alt.X, field, scale, WORDS[scale].title("mean "), ends)

    y = alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(grid=True, ticks=False, domain=False, labelLimit=0))
    kinds = dict(zip(("score", *beside), ("circle", "square", "triangle-up")))
    shape = alt.Shape(
        "what:N",
        scale=alt.Scale(domain=list(kinds), range=list(kinds.values())),
        legend=alt.Legend(orient="bottom", title=None, symbolSize=90, labelLimit=0),
    )
    numbers = [("value", "here", ".2~f"), ("low", "interval from", ".2~f"), ("high", "to", ".2~f")]
    tooltip = axes.tooltips(("name", "head"), ("what", "mark"), *numbers, "verdict")
    line = rows_of("line").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=across("value"))
    label = rows_of("line").mark_text(color=INK, align="left", baseline="top", dx=4, dy=2, fontSize=11)
    interval = rows_of("head").mark_rule(strokeWidth=3, opacity=0.6)
    score = rows_of("head").mark_point(color=SCORE, fill=SCORE, size=130, strokeWidth=2, opacity=1, cursor="pointer")
    others = rows_of("beside").mark_point(color=INK, size=80, strokeWidth=1.6, opacity=1)
    distance = rows_of("distance").mark_text(color=INK, align="right", baseline="bottom", dy=-5, fontSize=11)
    is_held = alt.when("datum.holds").then(alt.value(1)).otherwise(alt.value(0))
    return template(
        alt.layer(
            line,
            label.encode(x=across("value"), y=alt.YValue(0), text=alt.Text("label:N")),
            distance.encode(x=alt.XValue("width"), y=y, text=alt.Text("label:N")),
            interval.encode(x=across("low"), x2="high", y=y, color=alt.value(SCORE)),
            others.encode(x=across("value"), y=y, shape=shape, tooltip=tooltip),
            score.encode(x=across("value"), y=y, shape=shape, fillOpacity=is_held, tooltip=tooltip),
        ),
        title="What the heads have to beat",
        reading=("filled: the claim holds for the head; hollow: it does not", "line: confidence interval"),
        height=LANE * len(names) + LANE,
    )
