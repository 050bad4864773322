"""A figure as every page and every file takes it: a Vega-Lite picture, its numbers, and both in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

Spec = dict[str, Any]
"""Vega-Lite, as the dict that its JSON describes."""

INK: Final = "currentColor"
"""Text and lines take the colour of the text around the chart, so they can be read in light and in dark."""
GREY: Final = "#7A7A7A"
"""Fills that belong to no role; at least 3:1 on white and on near-black."""
MOST_MARKS: Final = 2000
"""Of single texts in one chart; more are not drawn, since each is an element that the browser keeps."""
SCORE_AXIS: Final = "score (× uniform)"
SCORE_TICKS: Final = (0, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True, eq=False)
class Figure:
    """A result, drawn."""

    spec: Spec
    """The picture without its data. Shared between calls and never to be edited: it stays the same while tau moves."""
    data: pd.DataFrame
    """What the picture shows; `kind` says which of its layers draws a row."""
    description: str
    """The text alternative: what is drawn and the main numbers."""


def picture(layers: Sequence[Spec], *, title: str, reading: Sequence[str] = (), height: int, **more: Any) -> Spec:
    """One view of several layers that is as wide as what holds it.

    Args:
        layers: bottom first, each from `layer`.
        title: what is drawn.
        reading: short lines under the title that say how to read the marks.
        height: of the marks, in pixels, without title, axis and legend.
        more: further properties of the view.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "usermeta": {"embedOptions": {"renderer": "svg"}},
        "title": {"text": title, "subtitle": list(reading), "subtitleColor": INK, "anchor": "start"},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": list(layers),
        # The page's own theme draws these in a grey that is too faint to read.
        "config": {
            "axis": {"labelColor": INK, "titleColor": INK},
            "legend": {"labelColor": INK, "titleColor": INK},
        },
        **more,
    }


def layer(kind: str, mark: Mapping[str, Any], **encoding: Any) -> Spec:
    """The marks for the rows of one kind."""
    return {"transform": [{"filter": f"datum.kind == '{kind}'"}], "mark": dict(mark), "encoding": encoding}


def score_position(field: str, title: str | None = SCORE_AXIS) -> Spec:
    """Position of a score on a scale of log(1 + score), on which 0 has a place and large scores leave room."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "symlog", "constant": 1, "nice": False, "zero": True},
        "axis": {"values": list(SCORE_TICKS), "format": "~g", "labelOverlap": "greedy", "grid": False},
    }


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
