"""How far a word's head stands from it, by relation."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import pandas as pd

from core.parses import ROOT, Dependencies
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import GREY, INK, Figure, Spec, counted, layer, picture
from dashboard.figures.relation_bars import drawn_name
from dashboard.figures.shifts import note_layer

REACH: Final = 8
"""Words to either side that have a bar of their own; what is further away is counted at the ends."""
MOST: Final = 16
"""Relations that are drawn: the first ones."""
LANE: Final = 62
"""Height of one relation's row of bars, in pixels."""
FULL: Final = 0.6
"""Part of that height that a bar of all cases takes."""
WIDTH: Final = 0.4
"""Half the width of a bar, in words."""
NOTHING: Final = "No relation to draw."


def distances(texts: Iterable[Dependencies]) -> dict[str, Counter[int]]:
    """How often each relation's head stands how many words after the dependent; below 0 before it. Without roots."""
    found: dict[str, Counter[int]] = {}
    for text in texts:
        for word, (head, relation) in enumerate(zip(text.heads.tolist(), text.relations, strict=True)):
            if head != ROOT:
                found.setdefault(relation, Counter())[head - word] += 1
    return found


def distance_histogram(counts: dict[str, Counter[int]], relations: Sequence[str]) -> Figure:
    """Bars by signed distance from dependent to head, one row of bars for each relation.

    Args:
        counts: from `distances`.
        relations: those to draw, top first; what `counts` lacks is left out.

    Source: Voita et al. 2019, figure 3 (distributions of the relative position of heads of dependency relations), and
        Pande et al. 2021.
    """
    there = [relation for relation in relations if counts.get(relation)]
    lanes = [_lane(name, counts[name], len(there[:MOST]) - lane - 1) for lane, name in enumerate(there[:MOST])]
    bars = pd.concat(lanes) if lanes else pd.DataFrame({"kind": ["note"], "label": [NOTHING]})
    return Figure(_spec(max(1, len(lanes))), bars, _description(counts, there))


def _lane(relation: str, counts: Counter[int], base: int) -> pd.DataFrame:
    """The bars of one relation, and above them its name."""
    n_cases, shown = counts.total(), _within_reach(counts)
    bars = pd.DataFrame(
        {"kind": "bar", "distance": distance, "cases": cases, "share": cases / n_cases}
        for distance, cases in sorted(shown.items())
    )
    most = shown.most_common(1)[0][0]
    bars = bars.assign(
        words=[_words(distance) for distance in bars["distance"]],
        base=base,
        top=base + FULL * bars["share"],
        left=bars["distance"] - WIDTH,
        right=bars["distance"] + WIDTH,
        often=["most frequent" if distance == most else "others" for distance in bars["distance"]],
    )
    peak = bars[bars["often"] == "most frequent"].assign(kind="peak", label=lambda of: of["share"].map("{:.0%}".format))
    name = pd.DataFrame({"kind": ["name"], "label": [f"{drawn_name(relation)}, {counted(n_cases, 'case')}"]})
    return pd.concat([bars, peak, name.assign(top=base + 0.93)]).assign(relation=drawn_name(relation))


def _within_reach(counts: Counter[int]) -> Counter[int]:
    shown = Counter[int]()
    for distance, cases in counts.items():
        shown[max(-REACH, min(distance, REACH))] += cases
    return shown


def _words(distance: int) -> str:
    """A distance in words; at the ends all that is further away, too."""
    more = " or more" if abs(distance) == REACH else ""
    return f"{counted(abs(distance), 'word')}{more} {'after' if distance > 0 else 'before'}"


@cache
def _spec(n_relations: int) -> Spec:
    x = {
        "field": "left",
        "type": "quantitative",
        "title": "head's place minus the dependent's (words)",
        "scale": {"domain": [-REACH - 0.6, REACH + 0.6], "nice": False, "zero": False},
        "axis": {
            "values": list(range(-REACH, REACH + 1, 2)),
            "labelExpr": f"(datum.value == {REACH} ? '≥ ' : datum.value == {-REACH} ? '≤ ' : '') + "
            "format(datum.value, '+d')",
            "grid": False,
        },
    }
    y = {
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0, n_relations], "nice": False},
        "axis": {
            **{"values": list(range(n_relations)), "labels": False, "ticks": False, "domain": False},
            **{"grid": True, "gridColor": INK, "gridOpacity": 0.4},
        },
    }
    color = {
        "field": "often",
        "type": "nominal",
        "scale": {"domain": ["most frequent", "others"], "range": [HEAD_COLORS[0], GREY]},
        "legend": None,
    }
    tooltip = [
        {"field": "relation", "type": "nominal", "title": "relation"},
        {"field": "words", "type": "nominal", "title": "head stands"},
        {"field": "cases", "type": "quantitative", "title": "cases"},
        {"field": "share", "type": "quantitative", "title": "share", "format": ".1%"},
    ]
    bar = {"type": "rect", "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5}
    text = {"type": "text", "color": INK, "fontSize": 10}
    top = {**y, "field": "top"}
    return picture(
        [
            layer(
                "bar",
                bar,
                x=x,
                x2={"field": "right"},
                y={**y, "field": "base"},
                y2={"field": "top"},
                color=color,
                tooltip=tooltip,
            ),
            layer(
                "peak",
                {**text, "baseline": "bottom", "dy": -2},
                x={**x, "field": "distance"},
                y=top,
                text={"field": "label"},
            ),
            layer(
                "name",
                {**text, "fontSize": 12, "fontWeight": "bold", "align": "left", "baseline": "top"},
                x={"value": 4},
                y=top,
                text={"field": "label"},
            ),
            note_layer(),
        ],
        title="Where the head of a word stands",
        reading=("share of a relation's cases by distance", "blue: the most frequent distance"),
        height=LANE * n_relations,
    )


def _description(counts: dict[str, Counter[int]], relations: Sequence[str]) -> str:
    if not relations:
        return f"{NOTHING} The texts have none of these relations."
    parts = []
    for relation in relations[:MOST]:
        (most, cases), *_ = _within_reach(counts[relation]).most_common(1)
        parts.append(f"{drawn_name(relation)} {cases / counts[relation].total():.0%} {_words(most)}")
    left_out = f" Not drawn: {counted(len(relations) - MOST, 'relation')}." if len(relations) > MOST else ""
    return (
        "Share of each relation's cases by signed distance in words from dependent to head (above 0: the head stands "
        f"after it). Most frequent: {'; '.join(parts)}.{left_out}"
    )
