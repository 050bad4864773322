"""A figure, a table or a map of heads on a page, with the figure of a paper it corresponds to, what it shows, and its
downloads."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.head_map import head_map
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.figure import CHOICE, Figure
from attention_sieve.dashboard.figures.head_map import HeadMap, head_map_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads, figure_downloads, table_downloads

if TYPE_CHECKING:
    import pandas as pd


FILLS: Final = {
    "height": "container",
    "autosize": {"type": "fit", "contains": "padding"},
    # Vega cuts the title off where it fits a chart whose legend is in one row, and the last row of a legend that has
    # more rows since the chart became narrow.
    "padding": {"top": 14, "bottom": 12},
}
"""Lets a chart fill its element in both directions."""
SMALL_NUMBER: Final = st.column_config.NumberColumn(format="%.3g", width=92)
"""A column of p-values: wide enough for one such as 5.67e-26, of which Streamlit, where it chooses a width by the first
rows, cuts the first digit off."""


def chart(
    name: str,
    figure: Figure,
    facts: Mapping[str, str],
    paper: str = "",
    *,
    large: bool = False,
    selects: bool = False,
    on_click: Callable[[list[dict[str, Any]]], None] | None = None,
) -> None:
    """Draw a figure.

    Args:
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.
        large: whether it is the picture of its page, as high as the screen leaves room for; its files have the height
            of the figure.
        selects: whether a click on a mark chooses its head.
        on_click: takes the fields of the clicked marks that the figure selects by, as the browser sends them.
    """
    key, figure = f"chart {name}", figure.with_titles()
    on_click = _choose if selects else on_click
    title = figure.spec["title"]
    st.vega_lite_chart(
        figure.marks(),
        figure.spec | {"title": title | {"subtitle": []}, **FILLS} if large else figure.spec,
        width="stretch",
        height="stretch" if large else "content",
        alt=figure.description,
        key=key,
        on_select=(lambda: on_click(st.session_state[key]["selection"].get(CHOICE, []))) if on_click else "ignore",
        selection_mode=CHOICE if on_click else None,
    )
    if large and (reading := title.get("subtitle")):
        st.caption(". ".join(line[:1].upper() + line[1:] for line in reading) + ".")
    figure_downloads(name, figure, facts, paper=paper)


def table(
    name: str,
    rows: "pd.DataFrame",
    facts: Mapping[str, str],
    columns: Mapping[str, str] = MappingProxyType({}),
    number: str = "%.4g",
    written: "pd.DataFrame | None" = None,
) -> None:
    """Draw a table.

    Args:
        columns: what columns hold, shown on request; those of an analysis.
        number: format of numbers that are not whole.
        written: the table in the files; None for the same one.
    """
    fractions = rows.select_dtypes("float").columns
    config = {column: st.column_config.Column(help=columns.get(column)) for column in rows.columns}
    config |= {column: st.column_config.NumberColumn(help=columns.get(column), format=number) for column in fractions}
    st.dataframe(rows, hide_index=True, column_config=config)
    table_downloads(name, rows if written is None else written, facts)


def _choose(clicked: list[dict[str, Any]]) -> None:
    """Choose the heads whose marks were clicked; a click beside them leaves the choice as it is."""
    heads = [(int(point["layer"]), int(point["head"])) for point in clicked if point.get("layer") is not None]
    if heads:
        state.push_heads(heads)


def head_selection(
    key: str, heads: list[Head], reset: Hashable, on_change: Callable[[list[Head]], None] = state.choose_heads
) -> Selection[list[Head]]:
    """The chosen heads in one of the views of heads; a click chooses heads for every page."""
    return Selection(key, heads, reset, on_change)


def show_head_map(
    picture: HeadMap, selection: Selection[list[Head]], *, file: str, facts: Mapping[str, str], paper: str = ""
) -> list[Head]:
    """Draw one number per head, with its files.

    Args:
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.

    Returns: the heads that are chosen now.
    """
    picture = replace(picture, layers_across=state.layers_across())
    heads = head_map(picture, selection)
    title = picture.title[:1].upper() + picture.title[1:]
    drawing_downloads(file, title, facts, partial(head_map_svg, picture), paper=paper)
    return heads
