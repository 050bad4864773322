"""A figure that Plotly draws on the page, where Vega-Lite has no such chart, and its twin for files."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from dashboard.figures.figure import Figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

THEME_INK: Final = "#000037"
"""Stands for the text colour of the reader's theme, light or dark; Streamlit replaces it as it draws."""

TOP: Final = 84
"""Pixels above a chart for its title and two lines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlotlyFigure:
    """A result drawn by Plotly."""

    chart: "go.Figure"
    """What the page shows. A mark that can be clicked has `customdata`."""
    data: pd.DataFrame
    """The same as a table, for readers who do not see the picture."""
    still: Figure
    """The same in Vega-Lite, for files: written without a browser, and in the style of all other files."""

    @property
    def description(self) -> str:
        """The text alternative: what is drawn and the main numbers."""
        return self.still.description


def heading(title: str, reading: Sequence[str]) -> dict[str, Any]:
    """What is drawn, and below it short lines that say how to read the marks; `TOP` pixels hold both."""
    subtitle = {"text": "<br>".join(reading), "font": {"color": THEME_INK}}
    top = {"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12}}
    return {"text": title, "subtitle": subtitle, **top}


def escaped(text: str) -> str:
    """Text that Plotly shows as it is: it would take what looks like a tag for one."""
    return html.escape(text, quote=False)


def translucent(color: str, opacity: float) -> str:
    """A colour, #RRGGBB, as Plotly takes it with an opacity from 0 to 1."""
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
