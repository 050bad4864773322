"""How well a checkpoint does with the heads that gates leave open: a score against the share of heads removed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from core.importance.pruning.curves import Curve
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import INK, Figure, Spec, of_kind, percent, template

HEIGHT: Final = 240
ROOM: Final = 0.06
"""Above the highest and below the lowest mark, as a share of their distance."""


def gate_scores(curve: Curve, penalties: Sequence[float], n_heads: int, name: str) -> Figure:
    """A score against the share of heads removed, a mark for each penalty.

    Args:
        curve: its first step has all heads on; then one step for each penalty.
        penalties: of the runs.
        n_heads: of the checkpoint.
        name: what the score is.

    Source: Voita et al. 2019, figure 7.
    """
    full, places = float(curve.score[0]), np.arange(1, len(curve.score))
    rows = [
        {
            "kind": "run",
            "share": curve.n_removed[place] / n_heads,
            "score": float(curve.score[place]),
            "low": full + float(curve.low[place]),
            "high": full + float(curve.high[place]),
            "penalty": penalty,
            "label": f"{penalty:g}",
            "left": f"{n_heads - curve.n_removed[place]} of {n_heads}",
        }
        for place, penalty in zip(places, penalties, strict=True)
    ]
    line = {"kind": "full", "score": full, "label": f"all heads on: {full:.4g}"}
    data = pd.DataFrame([line, *rows])
    return Figure(_spec(name, _ends(data)), data, _described(data, name))


def _ends(data: pd.DataFrame) -> tuple[float, float]:
    values = data[["score", "low", "high"]].to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = ROOM * (high - low) or 0.01
    return round(low - room, 4), round(high + 2 * room, 4)


def _described(data: pd.DataFrame, name: str) -> str:
    runs = data[data["kind"] == "run"].sort_values("share")
    said = [
        f"penalty {run.label}: {percent(run.share, 0)} removed, {run.score:.3g} ({run.low:.3g} to {run.high:.3g})"
        for run in runs.itertuples()
    ]
    full = float(data.loc[data["kind"] == "full", "score"].iloc[0])
    return f"{name[:1].upper()}{name[1:]} against the share of heads that gates close. All heads on: {full:.3g}; " + (
        "; ".join(said) + "."
    )


@lru_cache(maxsize=16)
def _spec(name: str, ends: tuple[float, float]) -> Spec:
    import altair as alt

    share = alt.X(
        "share:Q",
        title="share of heads removed",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="%", tickCount=6, grid=False),
    )

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=list(ends), nice=False, zero=False)
        return alt.Y(field, type="quantitative", title=name, scale=scale, axis=alt.Axis(tickCount=5, format=".3~g"))

    runs = of_kind("run")
    tooltip = [
        alt.Tooltip("penalty:N", title="penalty"),
        alt.Tooltip("left:N", title="heads open"),
        alt.Tooltip("score:N", title=name, format=".4~g"),
        alt.Tooltip("low:N", title="from", format=".4~g"),
        alt.Tooltip("high:N", title="to", format=".4~g"),
    ]
    full = of_kind("full")
    return template(
        alt.layer(
            full.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.6).encode(y=y("score")),
            full.mark_text(color=INK, align="right", baseline="bottom", dy=-3).encode(
                x=alt.XValue("width"), y=y("score"), text=alt.Text("label:N")
            ),
            runs.mark_line(color=HEAD_COLORS[0], strokeWidth=1.5, aria=False).encode(x=share, y=y("score")),
            runs.mark_rule(color=INK, strokeOpacity=0.6, aria=False).encode(x=share, y=y("low"), y2=alt.Y2("high")),
            runs.mark_point(color=HEAD_COLORS[0], filled=True, size=70, opacity=1).encode(
                x=share, y=y("score"), tooltip=tooltip
            ),
            runs.mark_text(color=INK, align="left", dx=7, dy=-7).encode(
                x=share, y=y("score"), text=alt.Text("label:N")
            ),
        ),
        title=f"{name[:1].upper()}{name[1:]} with the heads that stay open",
        reading=("point: one penalty, which stands beside it; bar: 95% interval",),
        height=HEIGHT,
    )
