"""Distributions of the gates of some heads: exactly 0, exactly 1, or between."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import series_channel, series_line, series_points, tooltips
from attention_sieve.dashboard.figures.figure import Figure, Spec, alt, of_kind, template

HEIGHT: Final = 240
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
        _spec(tuple(names)), pd.concat([*lines, pd.DataFrame(stems)]), f"Distribution of gates. {description}"
    )


@lru_cache(maxsize=32)
def _spec(names: tuple[str, ...]) -> Spec:
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
    stems = of_kind("stem").encode(x=x, y=y)
    tooltip = tooltips("head", ("what", "gate"), ("height", "probability", ".2f"))
    return template(
        alt.layer(
            series_line(of_kind("line").encode(x=x, y=y), names),
            stems.mark_rule(strokeWidth=3, aria=False).encode(
                y2=alt.Y2(datum=0), color=series_channel(alt.Color, names, HEAD_COLORS)
            ),
            series_points(stems, names, tooltip, 70),
        ),
        title=f"Gate of {names[0]}" if len(names) == 1 else "Gates of the chosen heads",
        reading=("stems: how likely the gate is exactly 0 or exactly 1",),
        height=HEIGHT,
    )
