"""Functions of the remaining heads while heads are removed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.importance.pruning.curves import KeptFunction
from attention_sieve.dashboard.figures.axes import series_line, series_points, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

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
    even = rows_of("even").mark_line(color=INK, strokeDash=[2, 3], strokeOpacity=0.6)
    points = rows_of("point").encode(x=x, y=y)
    tooltip = tooltips(
        "function", ("removed", "heads removed", ",d"), ("count", "kept"), ("random", "kept at random (95% of draws)")
    )
    return template(
        alt.layer(even.encode(x=x, y=y), series_line(points, names), series_points(points, names, tooltip, 50)),
        title="Functions of the remaining heads",
        reading=("dotted: average under random removal", "above it, a function lasts longer"),
        height=HEIGHT,
    )
