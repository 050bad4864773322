"""Scores of a checkpoint and names of scores, shared by the figures of probing tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.dashboard.figures.axes import Ends
from attention_sieve.dashboard.figures.figure import alt

ACCURACY: Final = "accuracy"
CORRELATION: Final = "Pearson correlation"
NAME: Final = 28
"""Characters of a checkpoint's name that fit in the legend on a narrow page."""
ROOM: Final = 0.04
"""Free part of an axis at each end."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """Scores of the heads of a checkpoint on a task."""

    label: str
    heads: Float[np.ndarray, "layer head"]
    """On the test part; NaN for a head that was removed."""


def score_name(is_regression: bool) -> str:
    return CORRELATION if is_regression else ACCURACY


def number_format(name: str) -> str:
    return ".2f" if name == CORRELATION else ".1%"


def written(value: float, name: str) -> str:
    return f"{value:{number_format(name)}}"


def score_tooltips(name: str, number: str = ".3f") -> "list[alt.Tooltip]":
    return [
        alt.Tooltip("value:Q", title=name, format=number),
        alt.Tooltip("low:Q", title="95% interval from", format=number),
        alt.Tooltip("high:Q", title="to", format=number),
    ]


def rank_axis(field: str, title: str, most: int) -> "alt.X":
    """Position of heads, or of numbers of heads, the best first."""
    scale = alt.Scale(domain=[1, max(2, most)], nice=False, zero=False)
    axis = alt.Axis(format="d", grid=False, tickMinStep=1, tickCount=8)
    return alt.X(field, title=title, scale=scale, axis=axis)


def score_ends(values: Iterable[float]) -> Ends:
    """Both ends of an axis around all finite values, at multiples of 0.05."""
    finite = [float(value) for value in values if np.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    room = ROOM * (max(finite) - min(finite)) or ROOM
    low, high = (np.floor(20 * (min(finite) - room)) / 20, np.ceil(20 * (max(finite) + room)) / 20)
    return max(float(low), -1.0), min(float(high), 1.0)


def score_axis(field: str, name: str, ends: Ends) -> "alt.Y":
    number = "%" if name == ACCURACY else ".2~f"
    scale = alt.Scale(domain=list(ends), nice=False, zero=False)
    axis = alt.Axis(format=number, tickCount=5)
    return alt.Y(field, type="quantitative", title=f"{name} on the test part", scale=scale, axis=axis)
