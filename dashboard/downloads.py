"""Download buttons: figures as SVG and PNG, tables as CSV and Parquet; made only when clicked."""

from collections.abc import Callable, Mapping

import pandas as pd
import streamlit as st

from dashboard.figures.export import figure_png, figure_svg, svg_png, table_csv, table_parquet
from dashboard.figures.figure import Figure
from dashboard.provenance import caption


def drawing_downloads(name: str, svg: Callable[[], str]) -> None:
    """Offer a hand-made view as SVG and PNG."""
    _row(
        name,
        ("SVG", "svg", "image/svg+xml", lambda: svg().encode()),
        ("PNG", "png", "image/png", lambda: svg_png(svg())),
    )


def figure_downloads(name: str, figure: Figure, title: str, facts: Mapping[str, str]) -> None:
    """Offer a chart as SVG and PNG, with where it comes from written below."""
    _row(
        name,
        ("SVG", "svg", "image/svg+xml", lambda: figure_svg(figure, title=title, caption=caption(facts)).encode()),
        ("PNG", "png", "image/png", lambda: figure_png(figure, title=title, caption=caption(facts))),
    )


def table_downloads(name: str, table: pd.DataFrame, facts: Mapping[str, str]) -> None:
    """Offer a table as CSV and Parquet, with where it comes from."""
    _row(
        name,
        ("CSV", "csv", "text/csv", lambda: table_csv(table, facts)),
        ("Parquet", "parquet", "application/vnd.apache.parquet", lambda: table_parquet(table, facts)),
    )


def _row(name: str, *kinds: tuple[str, str, str, Callable[[], bytes]]) -> None:
    with st.container(horizontal=True, gap="small"):
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
