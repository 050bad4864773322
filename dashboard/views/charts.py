"""A figure on a page, with the figure of a paper it corresponds to, what it shows in words, and its downloads."""

from collections.abc import Mapping

import streamlit as st

from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.heads import CHOICE
from attention_sieve.dashboard.files.downloads import figure_downloads


def chart(name: str, figure: Figure, facts: Mapping[str, str], paper: str = "", *, selects: bool = False) -> None:
    """Draw a figure.

    Args:
        name: of its files, and its key.
        figure: what to draw.
        facts: where it comes from, written below its files.
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.
        selects: whether a click on a mark chooses its head.
    """
    key = f"chart {name}"
    st.vega_lite_chart(
        figure.marks(),
        figure.spec,
        width="stretch",
        alt=figure.description,
        key=key,
        on_select=(lambda: _choose(key)) if selects else "ignore",
    )
    figure_downloads(name, figure, facts, paper=paper)


def _choose(key: str) -> None:
    """Choose the heads whose marks were clicked; a click beside them leaves the choice as it is."""
    clicked = st.session_state[key]["selection"].get(CHOICE, [])
    heads = [(int(point["layer"]), int(point["head"])) for point in clicked if point.get("layer") is not None]
    if heads:
        state.push_heads(heads)
