"""A figure that Plotly draws on a page, with what it shows in words and its downloads.

Plotly's own code, 4.7 MB, is fetched by the browser when the first such figure is drawn: draw it only on request,
in a tab or after a switch.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from attention_sieve.dashboard.components.chart_clicks import chart_clicks
from attention_sieve.dashboard.figures.plotly_figure import PlotlyFigure
from attention_sieve.dashboard.files.downloads import figure_downloads

NOT_A_NAME: Final = re.compile("[^a-zA-Z0-9]")


def plotly_chart(
    name: str,
    figure: PlotlyFigure,
    facts: Mapping[str, str],
    paper: str = "",
    *,
    on_click: Callable[[Any], None] | None = None,
) -> None:
    """Draw a figure.

    Args:
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.
        on_click: takes the `customdata` of a clicked mark, as the browser sends it.
    """
    safe = NOT_A_NAME.sub("-", name)
    box = f"plotly-{safe}"
    camera_button = {"format": "png", "filename": f"attention-sieve_{safe}", "scale": 2}
    with st.container(key=box):
        st.plotly_chart(
            figure.chart,
            width="stretch",
            alt=figure.description,
            key=f"chart {name}",
            config={"toImageButtonOptions": camera_button},
        )
        if on_click is not None:
            chart_clicks(key=f"clicks {name}", box=box, on_click=on_click)
    figure_downloads(name, figure.still, facts, paper=paper)
