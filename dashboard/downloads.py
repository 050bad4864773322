"""What stands below a figure or a table: what a chart shows in words, and its files, made only when clicked."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import wording
from dashboard.figures.export import figure_png, figure_svg, svg_png, table_csv, table_parquet
from dashboard.figures.figure import Figure
from dashboard.plain import plain
from dashboard.provenance import caption

if TYPE_CHECKING:
    import pandas as pd


def drawing_downloads(name: str, svg: Callable[[], str]) -> None:
    """Offer a hand-made view as SVG and PNG."""
    _row(
        name,
        ("SVG", "svg", "image/svg+xml", lambda: svg().encode()),
        ("PNG", "png", "image/png", lambda: svg_png(svg())),
    )


def figure_downloads(name: str, figure: Figure, title: str, facts: Mapping[str, str]) -> None:
    """Offer a chart in words, and as SVG and PNG with where it comes from written below."""
    _row(
        name,
        ("SVG", "svg", "image/svg+xml", lambda: figure_svg(figure, title=title, caption=caption(facts)).encode()),
        ("PNG", "png", "image/png", lambda: figure_png(figure, title=title, caption=caption(facts))),
        words=figure.description,
    )


def table_downloads(name: str, table: "pd.DataFrame", facts: Mapping[str, str]) -> None:
    """Offer a table as CSV and Parquet, with where it comes from."""
    _row(
        name,
        ("CSV", "csv", "text/csv", lambda: table_csv(table, facts)),
        ("Parquet", "parquet", "application/vnd.apache.parquet", lambda: table_parquet(table, facts)),
    )


def _row(name: str, *kinds: tuple[str, str, str, Callable[[], bytes]], words: str = "") -> None:
    with st.container(horizontal=True, gap="small"):
        if words:
            with st.popover(wording.IN_WORDS, type="tertiary", icon=":material/notes:", key=f"in words {name}"):
                st.markdown(plain(words))
        for label, suffix, mime, data in kinds:
            st.download_button(
                f"{label} of {name}",
                data,
                file_name=f"attention-sieve {name}.{suffix}",
                mime=mime,
                key=f"download {name} {suffix}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
            )
