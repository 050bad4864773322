"""The best head of each relation against the best fixed offset, as bars with intervals; and the names of the two
directions in which a head predicts a relation."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.relations.cases import ALL
from attention_sieve.core.relations.settings import Direction
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import note, note_rows, shares_axis, tooltips
from attention_sieve.dashboard.figures.figure import (
    GREY,
    INK,
    Figure,
    Spec,
    alt,
    counted,
    drawable,
    percent,
    rows_of,
    template,
)

DIRECTION_NAMES: Final[dict[Direction, str]] = {
    "dependent-to-head": "dep → head",
    "head-to-dependent": "head → dep",
}
"""From the attending word to the attended word."""


def with_short_directions(heads: str) -> str:
    """Heads with their directions, as in the column held_out_heads, with DIRECTION_NAMES."""
    for direction, name in DIRECTION_NAMES.items():
        heads = heads.replace(direction, name)
    return heads


MOST: Final = 24
"""Maximum number of relations that are drawn: those with most cases."""
ROW: Final = 30
"""Height of one relation in pixels."""
END: Final = 1.42
"""End of the axis; the names of the heads are beyond 1."""
LABELS_AT: Final = 1.03
BOTH_WAYS: Final = "both ways"
"""Label of one head with a different direction on each half."""
NOTHING: Final = "No relation has enough cases."
HELD_OUT: Final = ("held_out", "held_out_low", "held_out_high")
NO_SHARE: Final = "needs 2 {unit}s"
"""Shown instead of a held-out share if there is none."""


BestOfHalves = Sequence[tuple[Direction, int, int]]
"""Direction, layer and head that are best on each half of the texts; empty if they cannot be halved."""


def relation_bars(
    table: pd.DataFrame, best_of_halves: Sequence[BestOfHalves], alpha: float = 0.05, control: str = ""
) -> Figure:
    """A bar for each relation's best head, on held-out texts, over a bar for the best fixed offset.

    Args:
        table: the rows of the best heads in the table of `attention_sieve.core.relations.analysis`, with the held-out
            share of random weights as `random` where there is a control.
        best_of_halves: the heads of each row.
        alpha: the intervals cover 1 - alpha.
        control: name of the checkpoint with random weights; empty without one.

    Source: Voita et al. 2019, figure 4, where each direction has bars of its own and no head was held out.
    """
    no_share = NO_SHARE.format(unit="document" if _by_document(table) else "text")
    drawn = table.head(MOST).drop(columns="documents")  # no mark shows them
    relations = drawn.assign(
        relation=[drawable(name) for name in drawn["relation"]],
        label=[_label(best, no_share) for best in best_of_halves[:MOST]],
        labels_at=LABELS_AT,
        judged=[_judged(no_share, *values) for values in drawn[list(HELD_OUT)].itertuples(index=False)],
        chosen=[with_short_directions(heads) for heads in drawn["held_out_heads"]],
    )
    kinds = [relations.assign(kind="head"), relations.assign(kind="baseline")]
    kinds += [relations[relations["held_out_low"].notna()].assign(kind="interval")]
    if control:
        kinds.append(relations[relations["random"].notna()].assign(kind="control"))
    data = pd.concat([*kinds, note_rows(relations.empty, NOTHING)])
    return Figure(_spec(max(1, len(relations)), bool(control)), data, _description(table, alpha, control, no_share))


def _by_document(table: pd.DataFrame) -> bool:
    return bool(table["documents"].notna().any())


def _label(best_of_halves: BestOfHalves, no_share: str) -> str:
    """A head over its direction, or the heads of both halves without directions, to save space."""
    if not best_of_halves:
        return no_share.replace(" ", "\n", 1)
    names = list(dict.fromkeys(head_name(layer, head) for _, layer, head in best_of_halves))
    if len(names) > 1:
        return f"{names[0]}\nor {names[1]}"
    directions = list(dict.fromkeys(direction for direction, *_ in best_of_halves))
    return f"{names[0]}\n{DIRECTION_NAMES[directions[0]] if len(directions) == 1 else BOTH_WAYS}"


def _judged(no_share: str, held_out: float, low: float, high: float) -> str:
    if np.isnan(held_out):
        return no_share
    return f"{held_out:.1%}" if np.isnan(low) else f"{held_out:.1%} ({low:.1%} to {high:.1%})"


_share = partial(shares_axis, title="right (share of cases)", end=END)


@cache
def _spec(n_relations: int, has_control: bool) -> Spec:
    tooltip = _tooltip(has_control)
    names = rows_of("head").mark_text(color=INK, align="left", fontSize=10, lineBreak="\n", dy=-6)
    layers = [*_bars(tooltip), names.encode(x=alt.X("labels_at:Q"), y=_relation_position(), text=alt.Text("label:N"))]
    reading = ["slim bar: best head on held-out texts, line: interval", "wide grey bar: best fixed offset"]
    if has_control:
        cross = rows_of("control").mark_point(shape="cross", color=INK, filled=True, size=60, opacity=1)
        layers.append(cross.encode(x=_share("random"), y=_relation_position(), tooltip=tooltip))
        reading.append("cross: best head of random weights")
    return template(
        alt.layer(*layers, note()),
        title="Share of cases that are right",
        reading=reading,
        height=ROW * n_relations,
    )


def _relation_position() -> "alt.Y":
    axis = alt.Axis(labelLimit=120, ticks=False, domain=False, labelPadding=6)
    return alt.Y("relation:N", title=None, sort=None, axis=axis)


def _bars(tooltip: "list[alt.Tooltip]") -> "list[alt.Chart]":
    y = _relation_position()
    # Without a stroke the fill is nearly invisible in the dark theme.
    wide = rows_of("baseline").mark_bar(color=GREY, fillOpacity=0.4, stroke=GREY, height=alt.RelativeBandSize(0.86))
    slim = rows_of("head").mark_bar(height=alt.RelativeBandSize(0.42), stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    direction_color = alt.Color(
        "direction:N", scale=alt.Scale(domain=list(DIRECTION_NAMES), range=list(HEAD_COLORS[:2])), legend=None
    )
    return [
        wide.encode(x=_share("baseline"), y=y, tooltip=tooltip),
        slim.encode(x=_share("held_out"), y=y, color=direction_color, tooltip=tooltip),
        interval.encode(
            x=_share("held_out_low"),
            x2=alt.X2("held_out_high"),
            y=y,
            tooltip=tooltip,
        ),
    ]


def _tooltip(has_control: bool) -> "list[alt.Tooltip]":
    control = tooltips(("random", "random weights", ".1%")) if has_control else []
    return [
        *tooltips(
            "relation",
            "cases",
            ("chosen", "best on a half, judged on the other"),
            ("judged", "right on the held-out half"),
            ("baseline", "best fixed offset", ".1%"),
            ("offset", "its offset", "+d"),
            ("p", "p, corrected", ".2~g"),
        ),
        *control,
    ]


def _description(table: pd.DataFrame, alpha: float, control: str, no_share: str) -> str:
    if not len(table):
        return NOTHING
    drawn = table.head(MOST)
    shares = [
        no_share if np.isnan(share) else f"{share:.1%} with {with_short_directions(heads)}"
        for share, heads in zip(drawn["held_out"], drawn["held_out_heads"], strict=True)
    ]
    parts = [
        f"{drawable(row.relation)} {share} against {row.baseline:.1%} at {row.offset:+d}"
        for share, row in zip(shares, drawn.itertuples(index=False), strict=True)
    ]
    left_out = (
        f" Not drawn: {counted(len(table) - len(drawn), 'relation')} with fewer cases." if len(table) > MOST else ""
    )
    control_note = f" Crosses: the best heads of {control}." if control else ""
    unit = "document" if _by_document(table) else "text"
    return (
        f"Share of cases that each relation's best head gets right on held-out texts, with {percent(1 - alpha)} "
        f"intervals by {unit}, against the best fixed offset: {_above(table)}. {'; '.join(parts)}.{control_note}"
        f"{left_out}"
    )


def _above(table: pd.DataFrame) -> str:
    judged = table[table["held_out"].notna()]
    named = judged[judged["relation"] != ALL]
    compared = judged if named.empty else named
    left_out = "" if named.empty or len(named) == len(judged) else f" ('{ALL}' left out)"
    n_above = int((compared["held_out"] > compared["baseline"]).sum())
    return f"above it for {n_above} of {counted(len(compared), 'relation')}{left_out}"
