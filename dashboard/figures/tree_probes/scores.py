"""UAS of probes, against fixed offsets and random weights, as bars with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

import pandas as pd

from attention_sieve.core.tree_probes.probe import LEVEL, AttachmentScore
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import shares_axis, tooltips
from attention_sieve.dashboard.figures.figure import GREY, INK, Figure, Spec, alt, counted, of_kind, template

ROW: Final = 34
"""Height of one bar in pixels."""
Group = Literal["probe", "random weights", "fixed offset"]
LOOKS: Final[dict[Group, str]] = {"probe": HEAD_COLORS[0], "random weights": HEAD_COLORS[1], "fixed offset": GREY}


_share = partial(shares_axis, title="UAS (share of words)")


@dataclass(frozen=True)
class NamedScore:
    name: str
    group: Group
    score: AttachmentScore


def probe_scores(scores: Sequence[NamedScore]) -> Figure:
    """A bar for each score with its interval.

    Source: Clark et al. 2019, Table 3, drawn.
    """
    bars = pd.DataFrame(
        {
            "name": [bar.name for bar in scores],
            "group": [bar.group for bar in scores],
            "uas": [bar.score.share for bar in scores],
            "low": [bar.score.low for bar in scores],
            "high": [bar.score.high for bar in scores],
            "label": [f"{bar.score.share:.1%}" for bar in scores],
        }
    )
    data = pd.concat([bars.assign(kind=kind) for kind in ("bar", "interval", "label")])
    return Figure(_spec(len(scores)), data, _description(scores))


@cache
def _spec(n_rows: int) -> Spec:
    axis = alt.Axis(labelLimit=220, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("name:N", title=None, sort=None, axis=axis)
    tooltip = tooltips(("name", "probe"), ("uas", "UAS", ".1%"), ("low", "interval from", ".1%"), ("high", "to", ".1%"))
    colors = alt.Scale(domain=list(LOOKS), range=list(LOOKS.values()))
    bar = of_kind("bar").mark_bar(height=alt.RelativeBandSize(0.6))
    bar = bar.encode(
        y=y,
        x=_share("uas"),
        color=alt.Color("group:N", scale=colors, legend=None),
        tooltip=tooltip,
    )
    interval = of_kind("interval").mark_rule(color=INK, strokeWidth=2)
    interval = interval.encode(y=y, x=_share("low"), x2=alt.X2("high"), tooltip=tooltip)
    label = of_kind("label").mark_text(color=INK, align="left", dx=6, fontSize=11)
    return template(
        alt.layer(bar, interval, label.encode(y=y, x=_share("high"), text=alt.Text("label:N"))),
        title="Share of correct syntactic heads",
        reading=("blue: probe; orange: on random weights; grey: fixed offset", "line: interval"),
        height=ROW * n_rows,
    )


def _description(scores: Sequence[NamedScore]) -> str:
    score = scores[0].score
    parts = [f"{bar.name} {bar.score.share:.1%} ({bar.score.low:.1%} to {bar.score.high:.1%})" for bar in scores]
    return (
        f"Share of {score.n_words:,} words of {counted(score.n_texts, 'text')} whose head is predicted correctly, "
        f"with {LEVEL:.0%} intervals: {'; '.join(parts)}."
    )
