"""The mean score of one head in each part of a corpus, with its interval: parts side by side."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.axes import Ends, note, note_rows, score_ends, score_position, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

ROW: Final = 24
NOTHING: Final = "This role does not apply to any text."


def scores_by_part(tests: Mapping[str, HeadTests], role: str, head: Head, scale: Scale) -> Figure:
    """A row for each part: mean and interval of one head's score for a role, filled where it holds the role."""
    rows = pd.DataFrame([{"part": part, **_numbers(part_tests, role, head)} for part, part_tests in tests.items()])
    known = rows.dropna(subset="mean")
    tau = next(iter(tests.values())).settings.tau
    kinds = [known.dropna(subset="low").assign(kind="interval"), known.assign(kind="mean")]
    line = pd.DataFrame({"kind": ["tau"], "mean": [tau]})
    data = pd.concat([line, *kinds, note_rows(known.empty, NOTHING)], ignore_index=True)
    ends = score_ends(data, ("mean", "low", "high"), scale)
    title = f"{LOOKS[role].label}: {head_name(*head)} in each part"
    return Figure(_spec(title, role, tuple(rows["part"]), scale, ends), data, _description(known, title, scale))


def _numbers(tests: HeadTests, role: str, head: Head) -> dict[str, object]:
    index = (tests.roles.index(role), *head)
    return {name: getattr(tests, name)[index].item() for name in ("mean", "low", "high", "texts", "holds")}


def _description(rows: pd.DataFrame, title: str, scale: Scale) -> str:
    if rows.empty:
        return NOTHING
    parts = [f"{row.part} {row.mean:.3g} ({counted(int(row.texts), 'text')})" for row in rows.itertuples()]
    return f"{title}, mean {WORDS[scale].nouns} with their intervals: {'; '.join(parts)}."


@lru_cache(maxsize=32)
def _spec(title: str, role: str, parts: tuple[str, ...], scale: Scale, ends: Ends) -> Spec:
    axis = WORDS[scale].title()
    mean, low = (score_position(alt.X, field, scale, axis, ends) for field in ("mean", "low"))
    names = alt.Axis(labelLimit=160, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("part:N", title=None, sort=None, scale=alt.Scale(domain=list(parts)), axis=names)
    tooltip = tooltips(
        "part",
        ("texts", "texts", ",d"),
        ("mean", "mean", ".3~f"),
        ("low", "interval from", ".3~f"),
        ("high", "to", ".3~f"),
    )
    tau = rows_of("tau").mark_rule(color=INK, strokeDash=[6, 3]).encode(x=mean)
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2).encode(x=low, x2=alt.X2("high"), y=y)
    color = LOOKS[role].color
    # One layer for both, because a layer without marks has no name for screen readers.
    fill = alt.condition("datum.holds", alt.value(color), alt.value("transparent"))
    dots = rows_of("mean").mark_point(stroke=color, strokeWidth=2, size=90, opacity=1)
    dots = dots.encode(x=mean, y=y, fill=fill, tooltip=tooltip)
    return template(
        alt.layer(tau, interval, dots, note()),
        title=title,
        reading=("bar: interval of the mean; filled: holds the role; dashed: tau",),
        height=max(2, len(parts)) * ROW,
    )
