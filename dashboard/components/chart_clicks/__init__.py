"""Clicks on the marks of a Plotly chart. The component itself is invisible."""

from collections.abc import Callable
from typing import Any, Final

import streamlit as st

from attention_sieve.dashboard.components.source import Source, joined

_mount: Final = Source(
    name="chart_clicks", html="<span hidden></span>\n", js=joined("chart_clicks/chart_clicks.js")
).registered()


def chart_clicks(*, key: str, box: str, on_click: Callable[[Any], None]) -> None:
    """Listen to the Plotly chart in the same container.

    Args:
        box: the container's key, of letters, digits and hyphens.
        on_click: called before the next run with the `customdata` of the clicked mark. It comes from the browser, so it
            may be anything.
    """

    def handle_click() -> None:
        click = st.session_state[key].get("click")
        if isinstance(click, dict):
            on_click(click.get("mark"))

    _mount(key=key, data={"box": box}, on_click_change=handle_click)
