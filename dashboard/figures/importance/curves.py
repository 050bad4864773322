"""A score against the share of heads removed, in several orders."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.importance.pruning.curves import Curve
from attention_sieve.core.importance.pruning.orders import RANDOM
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_channel, series_line, series_points, tooltips
from attention_sieve.dashboard.figures.figure import GREY, Figure, Spec, alt, counted, interval, rows_of, template

HEIGHT: Final = 320


def pruning_curves(curves: Sequence[Curve], n_heads: int, name: str, chosen: str) -> Figure:
    """Score against the share of heads removed: a line for each order, the range of random ones as a band.

    Args:
        chosen: order whose interval is drawn.

    Source: Michel et al. 2019, figures 3 and 6.
    """
    orders = list(dict.fromkeys(curve.order for curve in curves if curve.order != RANDOM))
    random = [curve for curve in curves if curve.order == RANDOM]
    rows = [row for curve in curves if curve.order != RANDOM for row in _points(curve, n_heads, orders, chosen)]
    rows += random_band(random, n_heads)
    data = pd.DataFrame(rows)
    fields = [field for field in ("score", "low", "high", "least", "most") if field in data]
    values = data[fields].to_numpy(float)
    ends = float(np.nanmin(values)), float(np.nanmax(values))
    has_interval = bool((data["kind"] == "interval").any())
    return Figure(_spec(tuple(orders), name, ends, has_interval), data, _description(curves, orders, n_heads, name))


def _points(curve: Curve, n_heads: int, orders: Sequence[str], chosen: str) -> list[dict[str, Any]]:
    full_score = float(curve.score[0])
    series = {"order": curve.order, "series": orders.index(curve.order)}
    points = [
        {
            "kind": "point",
            **series,
            "removed": int(removed),
            "share": removed / n_heads,
            "score": float(score),
            "interval": interval(full_score + low, full_score + high, ".3g"),
        }
        for removed, score, low, high in zip(curve.n_removed, curve.score, curve.low, curve.high)
    ]
    if curve.order != chosen or np.isnan(curve.low).any():
        return points
    band = [
        {"kind": "interval", **series, "share": removed / n_heads, "low": full_score + low, "high": full_score + high}
        for removed, low, high in zip(curve.n_removed, curve.low, curve.high)
    ]
    return points + band


def random_band(curves: Sequence[Curve], n_heads: int) -> list[dict[str, Any]]:
    """Range and mean of the scores of random orders at each step, as rows of the kind "random"; no rows without a
    curve."""
    if not curves:
        return []
    scores = np.stack([curve.score for curve in curves])
    return [
        {
            "kind": "random",
            "removed": int(removed),
            "share": removed / n_heads,
            "least": float(step_scores.min()),
            "most": float(step_scores.max()),
            "mean": float(step_scores.mean()),
            "draws": len(curves),
        }
        for removed, step_scores in zip(curves[0].n_removed, scores.T)
    ]


def _description(curves: Sequence[Curve], orders: Sequence[str], n_heads: int, name: str) -> str:
    first = curves[0]
    middle = len(first.n_removed) // 2
    start = (
        f"{name.capitalize()} against the share of {counted(n_heads, 'head')} removed; with all heads on "
        f"{first.score[0]:.3g}. With {counted(int(first.n_removed[middle]), 'head')} removed:"
    )
    at_middle = [f"{curve.order} {curve.score[middle]:.3g}" for curve in curves if curve.order in orders]
    random = [curve.score[middle] for curve in curves if curve.order == RANDOM]
    if random:
        at_middle.append(f"random {min(random):.3g} to {max(random):.3g}")
    return f"{start} {', '.join(at_middle)}."


@lru_cache(maxsize=32)
def _spec(orders: tuple[str, ...], name: str, ends: Ends, has_interval: bool) -> Spec:
    x = alt.X(
        "share:Q",
        title="share of heads removed",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="%", grid=False, tickCount=10, labelOverlap="greedy"),
    )

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=list(ends), zero=False, nice=True)
        return alt.Y(field, type="quantitative", title=name, scale=scale, axis=alt.Axis(format=".3~g", tickCount=6))

    color, points = series_channel(alt.Color, orders, HEAD_COLORS), rows_of("point").encode(x=x, y=y("score"))
    random = rows_of("random").mark_area(color=GREY, opacity=0.25)
    mean = rows_of("random").mark_line(color=GREY, strokeWidth=2, strokeDash=[2, 3])
    interval = rows_of("interval").mark_area(opacity=0.2)
    share = alt.Tooltip("share:Q", title="share removed", format=".0%")
    removed = alt.Tooltip("removed:Q", title="heads removed", format=",d")
    drawn = rows_of("random").mark_point(filled=True, size=30, opacity=1, color=GREY)
    return template(
        alt.layer(
            random.encode(x=x, y=y("least"), y2=alt.Y2("most")),
            interval.encode(x=x, y=y("low"), y2=alt.Y2("high"), color=color),
            mean.encode(x=x, y=y("mean")),
            drawn.encode(
                x=x,
                y=y("mean"),
                tooltip=[
                    removed,
                    share,
                    *tooltips(
                        ("draws", "random orders"),
                        ("mean", f"{name}, mean", ".3~g"),
                        ("least", "least", ".3~g"),
                        ("most", "most", ".3~g"),
                    ),
                ],
            ),
            series_line(points, orders),
            series_points(
                points,
                orders,
                [*tooltips("order"), removed, share, *tooltips(("score", name, ".3~g"), ("interval", "95% interval"))],
                45,
            ),
        ),
        title="Score as heads are removed",
        reading=(
            "line: an order, the least important head first",
            "grey: mean and range of random orders",
            *(("coloured band: 95% interval of the chosen order",) if has_interval else ()),
        ),
        height=HEIGHT,
    )
