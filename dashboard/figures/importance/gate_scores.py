"""Performance of a checkpoint with the heads whose gates are open: a score against the share of heads removed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.importance.pruning.curves import Curve
from attention_sieve.core.importance.pruning.orders import RANDOM
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import GREY, INK, Figure, Spec, alt, interval, of_kind, percent, template
from attention_sieve.dashboard.figures.importance.curves import random_band

HEIGHT: Final = 240
ROOM: Final = 0.06
"""Margin above the highest and below the lowest mark, as a share of their distance."""


def gate_scores(
    curve: Curve, penalties: Sequence[float], n_heads: int, name: str, pruning: Sequence[Curve] = ()
) -> Figure:
    """A score against the share of heads removed, a mark for each penalty, beside curves of pruning.

    Args:
        curve: its first step has all heads on; then one step for each penalty.
        pruning: curves of pruning over the same texts: one order and random ones; or none.

    Source: Voita et al. 2019, figure 7.
    """
    full_score, run_steps = float(curve.score[0]), np.arange(1, len(curve.score))
    rows: list[dict[str, Any]] = [
        {
            "kind": "run",
            "share": curve.n_removed[step] / n_heads,
            "score": float(curve.score[step]),
            "low": full_score + float(curve.low[step]),
            "high": full_score + float(curve.high[step]),
            "interval": interval(full_score + curve.low[step], full_score + curve.high[step], ".4g"),
            "penalty": penalty,
            "label": f"{penalty:g}",
            "left": f"{n_heads - curve.n_removed[step]} of {n_heads}",
        }
        for step, penalty in zip(run_steps, penalties, strict=True)
    ]
    line = {"kind": "full", "score": full_score, "label": f"all heads on: {full_score:.4g}"}
    by_order = [each for each in pruning if each.order != RANDOM]
    order = by_order[0].order if by_order else ""
    rows += [
        {"kind": "order", "order": order, "share": removed / n_heads, "score": score, "removed": removed}
        for each in by_order
        for removed, score in zip(each.n_removed.tolist(), each.score.tolist(), strict=True)
    ]
    rows += random_band([each for each in pruning if each.order == RANDOM], n_heads)
    data = pd.DataFrame([line, *rows])
    has_interval = bool((data["interval"].fillna("") != "").any())
    spec = _spec(name, _ends(data), order, has_random="mean" in data, has_interval=has_interval)
    return Figure(spec, data, _description(data, name, order))


def _ends(data: pd.DataFrame) -> tuple[float, float]:
    values = data[[field for field in ("score", "low", "high", "least", "most") if field in data]].to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = ROOM * (high - low) or 0.01
    return round(low - room, 4), round(high + 2 * room, 4)


def _description(data: pd.DataFrame, name: str, order: str) -> str:
    runs = data[data["kind"] == "run"].sort_values("share")
    run_parts = [
        f"penalty {run.label}: {percent(run.share, 0)} removed, {run.score:.3g}{run.interval and f' ({run.interval})'}"
        for run in runs.itertuples()
    ]
    full_score = float(data.loc[data["kind"] == "full", "score"].iloc[0])
    pruned = [f"{percent(row.share, 0)} {row.score:.3g}" for row in data[data["kind"] == "order"].itertuples()]
    by_order = f" Removed in the order of {order}: {', '.join(pruned)}." if pruned else ""
    return (
        f"{name[:1].upper()}{name[1:]} against the share of heads that gates close. All heads on: {full_score:.3g}; "
        f"{'; '.join(run_parts)}.{by_order}"
    )


@lru_cache(maxsize=16)
def _spec(name: str, ends: tuple[float, float], order: str, *, has_random: bool, has_interval: bool) -> Spec:
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
    tooltip = tooltips("penalty", ("left", "heads open"), ("score", name, ".4~g"), ("interval", "95% interval"))
    full, pruned, random = of_kind("full"), of_kind("order"), of_kind("random")
    order_tooltip = tooltips("order", ("removed", "heads removed"), ("score", name, ".4~g"))
    random_layers = [
        random.mark_area(color=GREY, opacity=0.25, aria=False).encode(x=share, y=y("least"), y2=alt.Y2("most")),
        random.mark_line(color=GREY, strokeWidth=2, strokeDash=[2, 3], aria=False).encode(x=share, y=y("mean")),
    ]
    order_layers = [
        pruned.mark_line(color=HEAD_COLORS[1], strokeWidth=1.5, strokeDash=[6, 3], aria=False).encode(
            x=share, y=y("score")
        ),
        pruned.mark_point(color=HEAD_COLORS[1], filled=True, size=30, opacity=1, shape="diamond").encode(
            x=share, y=y("score"), tooltip=order_tooltip
        ),
    ]
    reading = ["point: a penalty, written beside it" + ("; bar: 95% interval" if has_interval else "")]
    if order:
        reading.append(f"diamonds: heads removed in the order of {order}")
    if has_random:
        reading.append("grey: mean and range of random orders")
    return template(
        alt.layer(
            full.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.6).encode(y=y("score")),
            full.mark_text(color=INK, align="right", baseline="bottom", dy=-3).encode(
                x=alt.XValue("width"), y=y("score"), text=alt.Text("label:N")
            ),
            *(random_layers if has_random else ()),
            *(order_layers if order else ()),
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
        reading=tuple(reading),
        height=HEIGHT,
    )
