"""Heads as dots, one number against another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LESS, MORE, STAR
from attention_sieve.dashboard.figures.axes import has_room, note, note_rows, tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    head_choice,
    head_rows,
    rows_of,
    template,
)

HEIGHT: Final = 320
MARGIN: Final = 0.06
"""Free part of an axis at each end."""
MANY: Final = 400
"""Heads above which each dot is small."""
NAME_ROOM: Final = (0.11, 0.05)
"""Width and height of a head's name as parts of the axes, on a phone."""
NOTHING: Final = "No head has both values."

Ends = tuple[float, float]


@dataclass(frozen=True)
class ScatterTexts:
    title: str
    x: str
    y: str
    reading: tuple[str, ...]
    description: str
    """For screen readers."""


def head_scatter(
    x: Float[np.ndarray, "layer head"],
    y: Float[np.ndarray, "layer head"],
    words: ScatterTexts,
    chosen: Sequence[Head] = (),
    star: tuple[float, float, str] | None = None,
    *,
    by_layer: bool = False,
) -> Figure:
    """Every head that has both numbers as a dot; a click chooses it. `star` is one more mark, with its name."""
    dots = head_rows(*x.shape).assign(kind="head", x=x.ravel(), y=y.ravel()).dropna(ignore_index=True)
    rows = {head: row for row, head in enumerate(zip(dots["layer"], dots["head"]))}
    # The one that was chosen last comes first: of two that lie close together, it is named.
    rings = dots.iloc[[rows[head] for head in reversed(chosen) if head in rows]].assign(kind="chosen")
    stars = pd.DataFrame([] if star is None else [{"kind": "star", "x": star[0], "y": star[1], "name": star[2]}])
    places = pd.concat([dots, stars])
    last_layer = len(x) - 1 if by_layer else None
    ends = _ends(places.get("x")), _ends(places.get("y"))
    room = NAME_ROOM[0] * (ends[0][1] - ends[0][0]), NAME_ROOM[1] * (ends[1][1] - ends[1][0])
    names = rings.loc[np.array(has_room(rings[["x", "y"]].to_numpy(float), room), dtype=bool)].assign(kind="name")
    data = pd.concat([dots, rings, names, stars, note_rows(dots.empty, NOTHING)], ignore_index=True)
    # One spec serves all values of the same axes, which the description names.
    spec = _spec(replace(words, description=""), *ends, len(dots) > MANY, star is not None, last_layer)
    return Figure(spec, data, words.description)


def _ends(values: "pd.Series | None") -> Ends:
    if values is None or values.empty:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = MARGIN * (high - low) or 0.5
    return low - room, high + room


def _position(channel: type, field: str, title: str, ends: Ends) -> "alt.X | alt.Y":
    scale = alt.Scale(domain=list(ends), nice=False, zero=False)
    axis = alt.Axis(format=".3~g", labelOverlap="greedy", grid=False, tickCount=6)
    position: alt.X | alt.Y = channel(field, type="quantitative", title=title, scale=scale, axis=axis)
    return position


def _of_layer(last: int) -> "alt.Color":
    scale = alt.Scale(domain=[0, max(1, last)], range=[LESS, MORE], interpolate="rgb")
    legend = alt.Legend(orient="bottom", title="layer", format="d", tickCount=min(last + 1, 6), gradientLength=160)
    return alt.Color("layer:Q", scale=scale, legend=legend)


@lru_cache(maxsize=64)
def _spec(words: ScatterTexts, x_ends: Ends, y_ends: Ends, many: bool, has_star: bool, last_layer: int | None) -> Spec:
    x, y = _position(alt.X, "x", words.x, x_ends), _position(alt.Y, "y", words.y, y_ends)
    tooltip = tooltips(("name", "head"), ("x", words.x, ".4~g"), ("y", words.y, ".4~g"))
    dots = rows_of("head").mark_point(
        shape="circle", filled=True, color=HEAD_COLORS[0], size=24 if many else 60, opacity=0.75, cursor="pointer"
    )
    if last_layer is not None:
        dots = dots.encode(color=_of_layer(last_layer))
    ring = rows_of("chosen").mark_point(
        shape="circle", filled=False, color=INK, size=190, strokeWidth=2.2, opacity=1, tooltip=False
    )
    name = rows_of("name").mark_text(color=INK, fontSize=12, align="center", dy=-15, tooltip=False)
    star = rows_of("star").mark_point(
        shape=STAR, filled=True, color=MORE, stroke=INK, strokeWidth=0.8, size=150, opacity=1
    )
    return template(
        alt.layer(
            dots.encode(x=x, y=y, tooltip=tooltip, description=alt.Description("name:N")).add_params(head_choice()),
            # Without a star its layer would be an empty group, which has no name for a screen reader.
            *([star.encode(x=x, y=y, tooltip=tooltip)] if has_star else []),
            ring.encode(x=x, y=y),
            name.encode(x=x, y=y, text=alt.Text("name:N")),
            note(),
        ),
        title=words.title,
        reading=words.reading,
        height=HEIGHT,
    )
