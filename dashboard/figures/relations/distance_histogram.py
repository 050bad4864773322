"""Distances between words and their heads, by relation."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import pandas as pd

from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import note, note_rows, tooltips
from attention_sieve.dashboard.figures.figure import (
    GREY,
    INK,
    Figure,
    Spec,
    alt,
    counted,
    drawable,
    rows_of,
    template,
)

REACH: Final = 8
"""Largest distance with its own bar on either side; larger distances are counted at the ends."""
MOST: Final = 16
"""Maximum number of relations that are drawn: the first ones."""
LANE: Final = 62
"""Height of one relation's row of bars, in pixels."""
FULL: Final = 0.6
"""Part of that height for a bar of all cases."""
WIDTH: Final = 0.4
"""Half the width of a bar, in words."""
NOTHING: Final = "No relation to draw."


def distances(texts: Iterable[Dependencies]) -> dict[str, Counter[int]]:
    """Counts of signed distances in words from dependent to head, by relation; below 0 if the head is before. No
    roots."""
    counts: dict[str, Counter[int]] = {}
    for text in texts:
        for word, (head, relation) in enumerate(zip(text.heads.tolist(), text.relations, strict=True)):
            if head != ROOT:
                counts.setdefault(relation, Counter())[head - word] += 1
    return counts


def distance_histogram(counts: dict[str, Counter[int]], relations: Sequence[str]) -> Figure:
    """Bars by signed distance from dependent to head, one row of bars for each relation.

    Args:
        relations: relations to draw, top first; those without counts are left out.

    Source: Voita et al. 2019, figure 3 (distributions of the relative position of heads of dependency relations), and
        Pande et al. 2021.
    """
    present = [relation for relation in relations if counts.get(relation)]
    lanes = [_lane(name, counts[name], len(present[:MOST]) - lane - 1) for lane, name in enumerate(present[:MOST])]
    bars = pd.concat([*lanes, note_rows(not lanes, NOTHING)])
    return Figure(_spec(max(1, len(lanes))), bars, _description(counts, present))


def _lane(relation: str, counts: Counter[int], base: int) -> pd.DataFrame:
    n_cases, counts_in_reach = counts.total(), _within_reach(counts)
    bars = pd.DataFrame(
        {"kind": "bar", "distance": distance, "cases": cases, "share": cases / n_cases}
        for distance, cases in sorted(counts_in_reach.items())
    )
    most = counts_in_reach.most_common(1)[0][0]
    bars = bars.assign(
        words=[_words(distance) for distance in bars["distance"]],
        base=base,
        top=base + FULL * bars["share"],
        left=bars["distance"] - WIDTH,
        right=bars["distance"] + WIDTH,
        often=["most frequent" if distance == most else "others" for distance in bars["distance"]],
    )
    peak = bars[bars["often"] == "most frequent"].assign(
        kind="peak", label=lambda rows: rows["share"].map("{:.0%}".format)
    )
    name = pd.DataFrame({"kind": ["name"], "label": [f"{drawable(relation)}, {counted(n_cases, 'case')}"]})
    return pd.concat([bars, peak, name.assign(top=base + 0.93)]).assign(relation=drawable(relation))


def _within_reach(counts: Counter[int]) -> Counter[int]:
    clipped = Counter[int]()
    for distance, cases in counts.items():
        clipped[max(-REACH, min(distance, REACH))] += cases
    return clipped


def _words(distance: int) -> str:
    """A distance as text; at the ends including larger distances."""
    more = " or more" if abs(distance) == REACH else ""
    return f"{counted(abs(distance), 'word')}{more} {'after' if distance > 0 else 'before'}"


@cache
def _spec(n_relations: int) -> Spec:
    def y(field: str) -> alt.Y:
        lanes = list(range(n_relations))
        axis = alt.Axis(
            values=lanes, labels=False, ticks=False, domain=False, grid=True, gridColor=INK, gridOpacity=0.4
        )
        scale = alt.Scale(domain=[0, n_relations], nice=False)
        return alt.Y(field, type="quantitative", title=None, scale=scale, axis=axis)

    colors = alt.Scale(domain=["most frequent", "others"], range=[HEAD_COLORS[0], GREY])
    tooltip = tooltips("relation", ("words", "head stands"), "cases", ("share", "share", ".1%"))
    bar = rows_of("bar").mark_rect(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    bar = bar.encode(
        x=_distance_position("left"),
        x2=alt.X2("right"),
        y=y("base"),
        y2=alt.Y2("top"),
        color=alt.Color("often:N", scale=colors, legend=None),
        tooltip=tooltip,
    )
    peak = rows_of("peak").mark_text(color=INK, fontSize=10, baseline="bottom", dy=-2)
    peak = peak.encode(x=_distance_position("distance"), y=y("top"), text=alt.Text("label:N"))
    name = rows_of("name").mark_text(color=INK, fontSize=12, fontWeight="bold", align="left", baseline="top")
    name = name.encode(x=alt.XValue(4), y=y("top"), text=alt.Text("label:N"))
    return template(
        alt.layer(bar, peak, name, note()),
        title="Where the head of a word stands",
        reading=("share of a relation's cases by distance", "blue: the most frequent distance"),
        height=LANE * n_relations,
    )


def _distance_position(field: str) -> "alt.X":
    end = f"(datum.value == {REACH} ? '≥ ' : datum.value == {-REACH} ? '≤ ' : '')"
    return alt.X(
        field,
        type="quantitative",
        title="head's place minus the dependent's (words)",
        scale=alt.Scale(domain=[-REACH - 0.6, REACH + 0.6], nice=False, zero=False),
        axis=alt.Axis(
            values=list(range(-REACH, REACH + 1, 2)),
            labelExpr=f"{end} + format(datum.value, '+d')",
            grid=False,
        ),
    )


def _description(counts: dict[str, Counter[int]], relations: Sequence[str]) -> str:
    if not relations:
        return f"{NOTHING} The texts have none of these relations."
    parts = []
    for relation in relations[:MOST]:
        (most, cases), *_ = _within_reach(counts[relation]).most_common(1)
        parts.append(f"{drawable(relation)} {cases / counts[relation].total():.0%} {_words(most)}")
    left_out = f" Not drawn: {counted(len(relations) - MOST, 'relation')}." if len(relations) > MOST else ""
    return (
        "Share of each relation's cases by signed distance in words from dependent to head (above 0: the head stands "
        f"after it). Most frequent: {'; '.join(parts)}.{left_out}"
    )
