"""The best head of each relation against the best fixed offset, as bars with intervals."""

from functools import cache
from typing import Final

import pandas as pd

from core.parsing_heads import Direction
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
NOTHING: Final = "No relation has enough cases."


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
        label=[f"{head} {ARROWS[way]}" for head, way in table[["name", "way"]].head(MOST).values],
        labels_at=LABELS_AT,
    )
    kinds = [rows.assign(kind="head"), rows.assign(kind="baseline")]
    kinds += [rows[rows["low"].notna()].assign(kind="interval")]
    if control:
        kinds.append(rows[rows["control"].notna()].assign(kind="control"))
    note = pd.DataFrame({"kind": [] if len(rows) else ["note"], "label": [] if len(rows) else [NOTHING]})
    spec = _spec(max(1, len(rows)), bool(control))
    return Figure(spec, pd.concat([*kinds, note]), _description(table, alpha, control))


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
        {"field": "label", "type": "nominal", "title": "best head"},
        {**share, "field": "held_out", "title": "right on the held-out half"},
        {**share, "field": "low", "title": "interval from"},
        {**share, "field": "high", "title": "to"},
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
    wide = {"type": "bar", "color": GREY, "opacity": 0.35, "height": {"band": 0.86}}
    slim = {"type": "bar", "height": {"band": 0.42}, "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5}
    rule = {"type": "rule", "color": INK, "strokeWidth": 2}
    cross = {"type": "point", "shape": "cross", "color": INK, "filled": True, "size": 60, "opacity": 1}
    name = {"type": "text", "color": INK, "align": "left", "fontSize": 11}
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
        return f"{NOTHING} Lower the least number of cases, or give more texts."
    drawn = table.head(MOST)
    above = drawn[drawn["held_out"] > drawn["baseline"]]
    parts = [
        f"{drawn_name(row.relation)} {row.held_out:.1%} with {row.name} against {row.baseline:.1%} at {row.offset:+d}"
        for row in drawn.itertuples(index=False)
    ]
    left_out = (
        f" Not drawn: {counted(len(table) - len(drawn), 'relation')} with fewer cases." if len(table) > MOST else ""
    )
    of_control = f" Crosses: the best heads of {control}." if control else ""
    return (
        f"Share of cases that each relation's best head gets right on held-out texts, with {100 * (1 - alpha):g} % "
        f"Wilson intervals, against the best fixed offset: above it for {len(above)} of "
        f"{counted(len(drawn), 'relation')}. "
        f"{'; '.join(parts)}.{of_control}{left_out}"
    )
