"""Functions of the remaining heads while heads are removed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.importance.pruning.curves import KeptFunction
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import series_channel
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, of_kind, template
from attention_sieve.dashboard.figures.surface.head_dots import DASHES, MARKS

HEIGHT: Final = 260


def functions_kept(functions: Sequence[KeptFunction], n_heads: int) -> Figure:
    """Share of each function's heads that is kept, against the share of all heads that is removed.

    Source: Voita et al. 2019, figure 8.
    """
    rows = [
        {
            "kind": "point",
            "function": function.name,
            "series": number,
            "removed": int(removed),
            "share": removed / n_heads,
            "kept": kept / function.kept[0],
            "count": f"{kept} of {function.kept[0]}",
            "random": f"{expected:.1f} ({low} to {high})",
        }
        for number, function in enumerate(functions)
        for removed, kept, expected, low, high in zip(
            function.n_removed, function.kept, function.expected, function.low, function.high
        )
    ]
    ends = [{"kind": "even", "share": 0.0, "kept": 1.0}, {"kind": "even", "share": 1.0, "kept": 0.0}]
    names = tuple(function.name for function in functions)
    return Figure(_spec(names), pd.concat([pd.DataFrame(rows), pd.DataFrame(ends)]), _description(functions, n_heads))


def _description(functions: Sequence[KeptFunction], n_heads: int) -> str:
    middle = len(functions[0].n_removed) // 2
    kept = ", ".join(
        f"{function.name} {function.kept[middle]} of {function.kept[0]} (at random {function.expected[middle]:.1f}, "
        f"95% of draws {function.low[middle]} to {function.high[middle]})"
        for function in functions
    )
    removed = counted(int(functions[0].n_removed[middle]), "head")
    return f"Heads of each function that are kept. With {removed} of {n_heads} removed: {kept}."


@lru_cache(maxsize=16)
def _spec(names: tuple[str, ...]) -> Spec:
    def axis(field: str, title: str) -> dict[str, object]:
        ticks = alt.Axis(format="%", grid=field == "kept", tickCount=5, labelOverlap="greedy")
        return {"shorthand": f"{field}:Q", "title": title, "scale": alt.Scale(domain=[0, 1], nice=False), "axis": ticks}

    x, y = alt.X(**axis("share", "share of heads removed")), alt.Y(**axis("kept", "share of its heads kept"))
    even = of_kind("even").mark_line(aria=False, color=INK, strokeDash=[2, 3], strokeOpacity=0.6)
    color = series_channel(alt.Color, names, HEAD_COLORS)
    line = of_kind("point").mark_line(aria=False, strokeWidth=2)
    point = of_kind("point").mark_point(filled=True, size=50, opacity=1)
    return template(
        alt.layer(
            even.encode(x=x, y=y),
            line.encode(x=x, y=y, color=color, strokeDash=series_channel(alt.StrokeDash, names, DASHES)),
            point.encode(
                x=x,
                y=y,
                color=color,
                shape=series_channel(alt.Shape, names, MARKS),
                tooltip=[
                    alt.Tooltip("function:N", title="function"),
                    alt.Tooltip("removed:Q", title="heads removed", format=",d"),
                    alt.Tooltip("count:N", title="kept"),
                    alt.Tooltip("random:N", title="kept at random (95% of draws)"),
                ],
            ),
        ),
        title="Functions of the remaining heads",
        reading=("dotted: average under random removal", "above it, a function lasts longer"),
        height=HEIGHT,
    )
