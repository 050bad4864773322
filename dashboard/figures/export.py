"""Figures and tables as files, each with the provenance that says what it was computed from."""

import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dashboard.figures.figure import INK, Figure
from dashboard.figures.names import drawable

if TYPE_CHECKING:
    import pandas as pd

WIDTH: Final = 720
LINE: Final = 130
"""Characters of a caption line that fit the width."""
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that starts with one of these for a formula."""
PROVENANCE: Final = "provenance"
"""The key in a Parquet file's schema metadata; its value is a JSON object."""


def figure_svg(figure: Figure, *, title: str, caption: Sequence[str]) -> str:
    """The figure as an SVG file of its own: white background, title and caption above the chart.

    Args:
        figure: what to draw.
        title: replaces the title that the figure has on its page.
        caption: provenance, one line each; a line that is too long is wrapped.
    """
    import vl_convert

    return vl_convert.vegalite_to_svg(_whole_spec(figure, title, caption), allowed_base_urls=[])


def figure_png(figure: Figure, *, title: str, caption: Sequence[str], scale: float = 2) -> bytes:
    """The figure of `figure_svg` as a PNG file.

    Args:
        figure: what to draw.
        title: replaces the title that the figure has on its page.
        caption: provenance, one line each.
        scale: pixels of the file for each pixel of the SVG.
    """
    return svg_png(figure_svg(figure, title=title, caption=caption), scale)


def svg_png(svg: str, scale: float = 2) -> bytes:
    """An SVG file as a PNG file; what the SVG leaves free stays transparent."""
    import vl_convert

    return vl_convert.svg_to_png(svg, scale=scale)


def table_csv(table: "pd.DataFrame", provenance: Mapping[str, str]) -> bytes:
    """The table as CSV in UTF-8, with the provenance as columns that say the same in every row.

    A comment above the header would break most readers. Text that a spreadsheet would run as a formula gets an
    apostrophe in front; numbers never do.

    Raises:
        ValueError: the provenance names a column of the table.
    """
    if twice := [name for name in provenance if name in table.columns]:
        raise ValueError(f"Provenance and table both have a column {twice[0]!r}.")
    plain = table.assign(**provenance).map(_no_formula).rename(columns=_no_formula)
    return plain.to_csv(index=False, lineterminator="\n").encode()


def table_parquet(table: "pd.DataFrame", provenance: Mapping[str, str]) -> bytes:
    """The table as Parquet, its columns as they are and the provenance in the schema's metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    arrow = pa.Table.from_pandas(table, preserve_index=False)
    file = io.BytesIO()
    metadata = {**(arrow.schema.metadata or {}), PROVENANCE.encode(): json.dumps(dict(provenance)).encode()}
    parquet.write_table(arrow.replace_schema_metadata(metadata), file)
    return file.getvalue()


def _whole_spec(figure: Figure, title: str, caption: Sequence[str]) -> dict[str, Any]:
    # A file has no text around it to take a colour from.
    spec = json.loads(json.dumps(figure.spec).replace(f'"{INK}"', '"#1A1A1A"'))
    lines = [*spec["title"]["subtitle"], *(part for line in caption for part in _lines(line))]
    return {
        **spec,
        "data": {"values": json.loads(figure.data.to_json(orient="records", double_precision=15))},
        "title": {"text": _lines(title, LINE * 2 // 3), "subtitle": lines, "anchor": "start", "offset": 12},
        "width": WIDTH,
        "background": "white",
        "padding": 12,
        "config": {"view": {"stroke": None}, "title": {"fontSize": 15, "subtitleFontSize": 11}},
    }


def _lines(text: str, width: int = LINE) -> list[str]:
    return textwrap.wrap(drawable(text), width) or [""]


def _no_formula(cell: Any) -> Any:
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell
