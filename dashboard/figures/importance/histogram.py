"""Histogram of heads by the score without each of them."""

from functools import lru_cache
from typing import Final, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_names
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

BINS: Final = 24
HEIGHT: Final = 240
NAMED: Final = 12
"""Heads of a bar that its tooltip names."""
ROOM: Final = 1.12
"""Height of the axis relative to the highest bar, since the name of the line is above the bars."""
Side = Literal["left", "right"]
"""Side of the line with its name."""


def score_histogram(scores: Float[np.ndarray, "layer head"], full: float, name: str) -> Figure:
    """Heads by the score without them, with a line at the score with all heads on.

    Args:
        scores: score without each head; NaN for heads that were removed from the checkpoint.
        full: score with all heads on.

    Source: Michel et al. 2019, figure 1.
    """
    present = ~np.isnan(scores)
    values, heads = scores[present], np.argwhere(present)
    edges = np.histogram_bin_edges(np.append(values, full), bins=BINS)
    bin_of_head = np.clip(np.digitize(values, edges) - 1, 0, BINS - 1)
    rows = [
        {
            "kind": "bar",
            "left": edges[bin_index],
            "right": edges[bin_index + 1],
            "heads": int((bin_of_head == bin_index).sum()),
            "names": _names(heads[bin_of_head == bin_index]),
        }
        for bin_index in np.unique(bin_of_head)
    ]
    line = pd.DataFrame({"kind": ["full"], "score": [full], "label": [f"all heads on: {full:.4g}"]})
    data = pd.concat([pd.DataFrame(rows), line])
    most = max(row["heads"] for row in rows)
    ends = (float(edges[0]), float(edges[-1]))
    side: Side = "left" if full > sum(ends) / 2 else "right"
    return Figure(
        _spec(name, ends, most, side),
        data,
        f"Histogram of {counted(len(values), 'head')} by {name} without them: {values.min():.4g} to "
        f"{values.max():.4g}, median {np.median(values):.4g}. With all heads on: {full:.4g}.",
    )


def _names(heads: np.ndarray) -> str:
    first = head_names([(int(layer), int(head)) for layer, head in heads[:NAMED]])
    return first if len(heads) <= NAMED else f"{first} and {len(heads) - NAMED} more"


@lru_cache(maxsize=16)
def _spec(name: str, ends: tuple[float, float], most: int, side: Side) -> Spec:
    def x(field: str) -> alt.X:
        return alt.X(
            field,
            type="quantitative",
            title=f"{name} without the head",
            scale=alt.Scale(domain=list(ends), nice=False, zero=False),
            axis=alt.Axis(format=".3~g", labelOverlap="parity", tickCount=8, grid=False),
        )

    bar = rows_of("bar").mark_rect(fill=HEAD_COLORS[0], stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    bar = bar.encode(
        x=x("left"),
        x2=alt.X2("right"),
        y=alt.Y(
            "heads:Q", title="heads", scale=alt.Scale(domain=[0, ROOM * most], nice=False), axis=alt.Axis(tickMinStep=1)
        ),
        y2=alt.Y2(datum=0),
        tooltip=tooltips(
            ("heads", "number of heads"), ("names", "which"), ("left", "from", ".4~g"), ("right", "to", ".4~g")
        ),
    )
    line = rows_of("full").mark_rule(color=INK, strokeDash=[6, 4], strokeWidth=2).encode(x=x("score"))
    align, dx = ("right", -5) if side == "left" else ("left", 5)
    label = rows_of("full").mark_text(color=INK, align=align, dx=dx, baseline="top")
    label = label.encode(x=x("score"), y=alt.YValue(2), text=alt.Text("label:N"))
    return template(
        alt.layer(bar, line, label),
        title="What single heads cost; not how many can go together",
        reading=("bar: heads by the score without them; dashed: all heads on",),
        height=HEIGHT,
    )
