"""The best head of each relation against the best fixed offset, as bars with intervals."""

from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from core.parsing_heads import ALL, Direction
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.export import NOT_IN_XML
from dashboard.figures.figure import GREY, INK, Figure, Spec, counted, layer, picture
from dashboard.figures.shifts import note_layer

MOST: Final = 24
"""Relations that are drawn: those with most cases."""
ROW: Final = 30
"""Pixels of one relation."""
END: Final = 1.42
"""Where the axis ends: beyond 1 stand the names of the heads."""
LABELS_AT: Final = 1.03
ARROWS: Final[dict[Direction, str]] = {"dependent-to-head": "dep → head", "head-to-dependent": "head → dep"}
"""Directions as figures name them: from the word that attends, to the word attended to."""
OR: Final = " or "
"""Between the heads of two halves."""
BOTH_WAYS: Final = "both ways"
"""One head in another direction on each half."""
NOTHING: Final = "No relation has enough cases."
NO_SHARE: Final = "needs 2 texts"
"""In place of a share on texts that heads were not chosen on, where there are none."""


def relation_bars(table: pd.DataFrame, alpha: float = 0.05, control: str = "") -> Figure:
    """A bar for each relation's best head, on texts that it was not chosen on, over a bar for the best fixed offset.

    Args:
        table: from `dashboard.figures.relation_table`, most cases first.
        alpha: that the intervals were asked with.
        control: name of the checkpoint whose best heads stand in the table's column `control`; empty without one.

    Source: Voita et al. 2019, figure 4, where each direction has bars of its own and no head was held out.
    """
    rows = table.head(MOST).assign(
        relation=[drawn_name(name) for name in table["relation"].head(MOST)],
        label=[_label(chosen) for chosen in table["chosen"].head(MOST)],
        labels_at=LABELS_AT,
        judged=[_judged(*of) for of in table[["held_out", "low", "high"]].head(MOST).itertuples(index=False)],
    )
    kinds = [rows.assign(kind="head"), rows.assign(kind="baseline")]
    kinds += [rows[rows["low"].notna()].assign(kind="interval")]
    if control:
        kinds.append(rows[rows["control"].notna()].assign(kind="control"))
    note = pd.DataFrame({"kind": [] if len(rows) else ["note"], "label": [] if len(rows) else [NOTHING]})
    spec = _spec(max(1, len(rows)), bool(control))
    return Figure(spec, pd.concat([*kinds, note]), _description(table, alpha, control))


def _label(chosen: str) -> str:
    """A head over its direction, or those of both halves without, which would take too much room."""
    if not chosen:
        return NO_SHARE.replace(" ", "\n", 1)
    heads = [head.split(" ", 2) for head in chosen.split(OR)]
    names = list(dict.fromkeys(f"{layer} {head}" for layer, head, _ in heads))
    if len(names) > 1:
        return f"{names[0]}\n{OR.lstrip()}{names[1]}"
    return f"{names[0]}\n{heads[0][-1] if len(heads) == 1 else BOTH_WAYS}"


def _judged(held_out: float, low: float, high: float) -> str:
    """A held-out share with its interval."""
    if np.isnan(held_out):
        return NO_SHARE
    return f"{held_out:.1%}" if np.isnan(low) else f"{held_out:.1%} ({low:.1%} to {high:.1%})"


def drawn_name(relation: str) -> str:
    """A relation's name, which a file may have brought, without signs that no picture takes."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", relation)


@cache
def _spec(n_relations: int, has_control: bool) -> Spec:
    y = {
        "field": "relation",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"labelLimit": 120, "ticks": False, "domain": False, "labelPadding": 6},
    }
    x = {
        "type": "quantitative",
        "title": "right (share of cases)",
        "scale": {"domain": [0, END], "nice": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": "%", "grid": True, "gridColor": INK, "gridOpacity": 0.15},
    }
    share = {"type": "quantitative", "format": ".1%"}
    tooltip = [
        {"field": "relation", "type": "nominal", "title": "relation"},
        {"field": "cases", "type": "quantitative", "title": "cases"},
        {"field": "chosen", "type": "nominal", "title": "best on a half, judged on the other"},
        {"field": "judged", "type": "nominal", "title": "right on the held-out half"},
        {**share, "field": "baseline", "title": "best fixed offset"},
        {"field": "offset", "type": "quantitative", "title": "its offset", "format": "+d"},
        {"field": "p", "type": "quantitative", "title": "p, corrected", "format": ".2~g"},
    ]
    if has_control:
        tooltip.append({**share, "field": "control", "title": "random weights"})
    way = {
        "field": "way",
        "type": "nominal",
        "scale": {"domain": list(ARROWS), "range": list(HEAD_COLORS[:2])},
        "legend": None,
    }
    # Without its edge the fill nearly vanishes in the dark.
    wide = {"type": "bar", "color": GREY, "fillOpacity": 0.4, "stroke": GREY, "height": {"band": 0.86}}
    slim = {"type": "bar", "height": {"band": 0.42}, "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5}
    rule = {"type": "rule", "color": INK, "strokeWidth": 2}
    cross = {"type": "point", "shape": "cross", "color": INK, "filled": True, "size": 60, "opacity": 1}
    name = {"type": "text", "color": INK, "align": "left", "fontSize": 10, "lineBreak": "\n", "dy": -6}  # of two lines
    left = {"field": "labels_at", "type": "quantitative"}
    layers = [
        layer("baseline", wide, y=y, x={**x, "field": "baseline"}, tooltip=tooltip),
        layer("head", slim, y=y, x={**x, "field": "held_out"}, color=way, tooltip=tooltip),
        layer("interval", rule, y=y, x={**x, "field": "low"}, x2={"field": "high"}, tooltip=tooltip),
        layer("head", name, y=y, x=left, text={"field": "label"}),
    ]
    if has_control:
        layers.append(layer("control", cross, y=y, x={**x, "field": "control"}, tooltip=tooltip))
    reading = ["slim bar: best head on held-out texts, line: interval", "wide grey bar: best fixed offset"]
    reading += ["cross: best head of random weights"] if has_control else []
    return picture(
        [*layers, note_layer()], title="Share of cases that are right", reading=reading, height=ROW * n_relations
    )


def _description(table: pd.DataFrame, alpha: float, control: str) -> str:
    if not len(table):
        return NOTHING
    drawn = table.head(MOST)
    parts = [
        f"{drawn_name(row.relation)} "
        + (NO_SHARE if np.isnan(row.held_out) else f"{row.held_out:.1%} with {row.chosen}")
        + f" against {row.baseline:.1%} at {row.offset:+d}"
        for row in drawn.itertuples(index=False)
    ]
    left_out = (
        f" Not drawn: {counted(len(table) - len(drawn), 'relation')} with fewer cases." if len(table) > MOST else ""
    )
    of_control = f" Crosses: the best heads of {control}." if control else ""
    return (
        f"Share of cases that each relation's best head gets right on held-out texts, with {100 * (1 - alpha):g} % "
        f"Wilson intervals, against the best fixed offset: {_above(table)}. {'; '.join(parts)}.{of_control}{left_out}"
    )


def _above(table: pd.DataFrame) -> str:
    """For how many relations the held-out share is above the baseline."""
    judged = table[table["held_out"].notna()]
    named = judged[judged["relation"] != ALL]
    of = judged if named.empty else named
    left_out = "" if named.empty or len(named) == len(judged) else f" ('{ALL}' left out)"
    n_above = int((of["held_out"] > of["baseline"]).sum())
    return f"above it for {n_above} of {counted(len(of), 'relation')}{left_out}"
