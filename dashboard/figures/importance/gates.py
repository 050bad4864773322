"""Gates: the distributions of some, exactly 0, exactly 1 or between, and the score with the heads that stay open."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.importance.pruning.curves import Curve
from attention_sieve.core.importance.pruning.orders import RANDOM
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import series_channel, series_line, series_points, tooltips
from attention_sieve.dashboard.figures.figure import (
    GREY,
    INK,
    Figure,
    Spec,
    alt,
    interval,
    percent,
    rows_of,
    template,
)
from attention_sieve.dashboard.figures.importance.curves import random_band

DENSITIES_HEIGHT: Final = 240
MOST: Final = len(HEAD_COLORS)
"""Maximum number of heads in one figure."""
APART: Final = 0.018
"""Distance between the stems of two heads at the same value, on the axis of gates."""


def gate_densities(
    names: Sequence[str],
    p_zero: Float[np.ndarray, " gate"],
    p_one: Float[np.ndarray, " gate"],
    points: Float[np.ndarray, " point"],
    densities: Float[np.ndarray, "gate point"],
) -> Figure:
    """The distribution of each gate: stems at 0 and at 1, and a line between.

    Args:
        names: of the heads, at most MOST.
        p_zero, p_one: probabilities that a gate is exactly 0, and exactly 1.
        points: between 0 and 1, in order.

    Source: Voita et al. 2019, figure 6.
    """
    lines = [
        pd.DataFrame({"kind": "line", "series": series, "head": name, "gate": points, "height": density})
        for series, (name, density) in enumerate(zip(names, densities, strict=True))
    ]
    stems = [
        {
            "kind": "stem",
            "series": series,
            "head": name,
            "gate": value + (1 if value else -1) * APART * (series + 1),
            "height": float(probabilities[series]),
            "what": f"exactly {value}",
        }
        for series, name in enumerate(names)
        for value, probabilities in ((0, p_zero), (1, p_one))
    ]
    description = " ".join(
        f"{name}: 0 with probability {p_closed:.2f}, 1 with {p_open:.2f}, between with {1 - p_closed - p_open:.2f}."
        for name, p_closed, p_open in zip(names, p_zero.tolist(), p_one.tolist(), strict=True)
    )
    return Figure(
        _densities_spec(tuple(names)), pd.concat([*lines, pd.DataFrame(stems)]), f"Distribution of gates. {description}"
    )


@lru_cache(maxsize=32)
def _densities_spec(names: tuple[str, ...]) -> Spec:
    end = APART * (MOST + 1)
    x = alt.X(
        "gate:Q",
        title="gate",
        scale=alt.Scale(domain=[-end, 1 + end], nice=False, zero=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", grid=False),
    )
    y = alt.Y(
        "height:Q",
        title="probability (0, 1), density (between)",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f"),
    )
    stems = rows_of("stem").encode(x=x, y=y)
    tooltip = tooltips("head", ("what", "gate"), ("height", "probability", ".2f"))
    return template(
        alt.layer(
            series_line(rows_of("line").encode(x=x, y=y), names),
            stems.mark_rule(strokeWidth=3).encode(
                y2=alt.Y2(datum=0), color=series_channel(alt.Color, names, HEAD_COLORS)
            ),
            series_points(stems, names, tooltip, 70),
        ),
        title=f"Gate of {names[0]}" if len(names) == 1 else "Gates of the chosen heads",
        reading=("stems: how likely the gate is exactly 0 or exactly 1",),
        height=DENSITIES_HEIGHT,
    )


SCORES_HEIGHT: Final = 240
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
    spec = _scores_spec(name, _ends(data), order, has_random="mean" in data, has_interval=has_interval)
    return Figure(spec, data, _scores_description(data, name, order))


def _ends(data: pd.DataFrame) -> tuple[float, float]:
    values = data[[field for field in ("score", "low", "high", "least", "most") if field in data]].to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = ROOM * (high - low) or 0.01
    return round(low - room, 4), round(high + 2 * room, 4)


def _scores_description(data: pd.DataFrame, name: str, order: str) -> str:
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
def _scores_spec(name: str, ends: tuple[float, float], order: str, *, has_random: bool, has_interval: bool) -> Spec:
    share = alt.X(
        "share:Q",
        title="share of heads removed",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="%", tickCount=6, grid=False),
    )

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=list(ends), nice=False, zero=False)
        return alt.Y(field, type="quantitative", title=name, scale=scale, axis=alt.Axis(tickCount=5, format=".3~g"))

    runs = rows_of("run")
    tooltip = tooltips("penalty", ("left", "heads open"), ("score", name, ".4~g"), ("interval", "95% interval"))
    full, pruned, random = rows_of("full"), rows_of("order"), rows_of("random")
    order_tooltip = tooltips("order", ("removed", "heads removed"), ("score", name, ".4~g"))
    random_layers = [
        random.mark_area(color=GREY, opacity=0.25).encode(x=share, y=y("least"), y2=alt.Y2("most")),
        random.mark_line(color=GREY, strokeWidth=2, strokeDash=[2, 3]).encode(x=share, y=y("mean")),
    ]
    order_layers = [
        pruned.mark_line(color=HEAD_COLORS[1], strokeWidth=1.5, strokeDash=[6, 3]).encode(x=share, y=y("score")),
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
            runs.mark_line(color=HEAD_COLORS[0], strokeWidth=1.5).encode(x=share, y=y("score")),
            runs.mark_rule(color=INK, strokeOpacity=0.6).encode(x=share, y=y("low"), y2=alt.Y2("high")),
            runs.mark_point(color=HEAD_COLORS[0], filled=True, size=70, opacity=1).encode(
                x=share, y=y("score"), tooltip=tooltip
            ),
            runs.mark_text(color=INK, align="left", dx=7, dy=-7).encode(
                x=share, y=y("score"), text=alt.Text("label:N")
            ),
        ),
        title=f"{name[:1].upper()}{name[1:]} with the heads that stay open",
        reading=tuple(reading),
        height=SCORES_HEIGHT,
    )
