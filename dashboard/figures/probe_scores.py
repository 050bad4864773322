"""How often probes find a word's head, against fixed offsets and random weights, as bars with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import pandas as pd

from core.attachment import LEVEL, AttachmentScore
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import GREY, INK, Figure, Spec, counted, layer, picture

ROW: Final = 34
"""Pixels of one bar."""
Group = Literal["probe", "random weights", "fixed offset"]
LOOKS: Final[dict[Group, str]] = {"probe": HEAD_COLORS[0], "random weights": HEAD_COLORS[1], "fixed offset": GREY}


@dataclass(frozen=True)
class NamedScore:
    """One bar."""

    name: str
    group: Group
    score: AttachmentScore


def probe_scores(scores: Sequence[NamedScore]) -> Figure:
    """A bar for each score with its interval.

    Source: Clark et al. 2019, Table 3, drawn.
    """
    rows = pd.DataFrame(
        {
            "name": [one.name for one in scores],
            "group": [one.group for one in scores],
            "uas": [one.score.share for one in scores],
            "low": [one.score.low for one in scores],
            "high": [one.score.high for one in scores],
            "label": [f"{one.score.share:.1%}" for one in scores],
        }
    )
    data = pd.concat([rows.assign(kind=kind) for kind in ("bar", "interval", "label")])
    return Figure(_spec(len(scores)), data, _description(scores))


@cache
def _spec(n_rows: int) -> Spec:
    y = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"labelLimit": 220, "ticks": False, "domain": False, "labelPadding": 6},
    }
    x = {
        "type": "quantitative",
        "title": "UAS (share of words)",
        "scale": {"domain": [0, 1], "nice": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": "%", "grid": True, "gridColor": INK, "gridOpacity": 0.15},
    }
    share = {"type": "quantitative", "format": ".1%"}
    tooltip = [
        {"field": "name", "type": "nominal", "title": "probe"},
        {**share, "field": "uas", "title": "UAS"},
        {**share, "field": "low", "title": "interval from"},
        {**share, "field": "high", "title": "to"},
    ]
    color = {
        "field": "group",
        "type": "nominal",
        "scale": {"domain": list(LOOKS), "range": list(LOOKS.values())},
        "legend": None,
    }
    bar = {"type": "bar", "height": {"band": 0.6}}
    rule = {"type": "rule", "color": INK, "strokeWidth": 2}
    text = {"type": "text", "color": INK, "align": "left", "dx": 6, "fontSize": 11}
    return picture(
        [
            layer("bar", bar, y=y, x={**x, "field": "uas"}, color=color, tooltip=tooltip),
            layer("interval", rule, y=y, x={**x, "field": "low"}, x2={"field": "high"}, tooltip=tooltip),
            layer("label", text, y=y, x={**x, "field": "high"}, text={"field": "label"}),
        ],
        title="Heads of words that are found",
        reading=("blue: probe; orange: on random weights; grey: fixed offset", "line: interval"),
        height=ROW * n_rows,
    )


def _description(scores: Sequence[NamedScore]) -> str:
    one = scores[0].score
    parts = [f"{each.name} {each.score.share:.1%} ({each.score.low:.1%} to {each.score.high:.1%})" for each in scores]
    return (
        f"Share of {one.n_words:,} words of {counted(one.n_texts, 'text')} whose head is found, with {LEVEL:.0%} "
        f"intervals: {'; '.join(parts)}."
    )
