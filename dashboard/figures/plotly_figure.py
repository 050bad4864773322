"""Figures that Plotly draws on the page, for charts that Vega-Lite lacks, with a Vega-Lite version for files."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from attention_sieve.dashboard.figures.figure import Figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

THEME_INK: Final = "#000037"
"""Placeholder that Streamlit replaces by the text colour of the user's theme, light or dark."""

TOP: Final = 84
"""Pixels above a chart for its title and two lines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlotlyFigure:
    """A result drawn by Plotly."""

    chart: "go.Figure"
    """The chart on the page. Clickable marks have `customdata`."""
    data: pd.DataFrame
    """The same as a table, for accessibility."""
    still: Figure
    """The same in Vega-Lite, for files: drawn without a browser, in the style of the other files."""

    @property
    def description(self) -> str:
        """The text alternative: what is drawn and the main numbers."""
        return self.still.description


def heading(title: str, reading: Sequence[str]) -> dict[str, Any]:
    """Title of a chart, and below it short lines that explain the marks; both fit into `TOP` pixels."""
    subtitle = {"text": "<br>".join(reading), "font": {"color": THEME_INK}}
    top = {"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12}}
    return {"text": title, "subtitle": subtitle, **top}


def escaped(text: str) -> str:
    """Plotly interprets tags."""
    return html.escape(text, quote=False)


def translucent(color: str, opacity: float) -> str:
    """Convert a colour, #RRGGBB, to Plotly's format with an opacity from 0 to 1."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
