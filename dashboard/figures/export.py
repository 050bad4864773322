"""Figures and tables as files, each with the provenance that says what it was computed from."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dashboard.figures.figure import INK, Figure
from dashboard.figures.sheet import DARK, FONT, MARGIN, PAGE, PER_INCH, nested, sheet

if TYPE_CHECKING:
    import pandas as pd

DOTS_PER_INCH: Final = 300
"""Of a PNG file, as printers ask for."""
_POINTS_PER_INCH: Final = 72
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that starts with one of these for a formula."""
PROVENANCE: Final = "provenance"
"""The key in a Parquet file's schema metadata; its value is a JSON object."""


def figure_svg(figure: Figure, *, title: str, caption: Sequence[str]) -> str:
    """The figure as an SVG file of its own, as wide as a page of print, title above and caption below.

    Args:
        figure: what to draw.
        title: replaces the title that the figure has on its page.
        caption: provenance; a line that is too long is wrapped.
    """
    import vl_convert

    chart = vl_convert.vegalite_to_svg(_chart(figure), allowed_base_urls=[])
    return sheet(title, [nested(chart)], reading=figure.spec["title"].get("subtitle", ()), caption=caption)


def figure_png(figure: Figure, *, title: str, caption: Sequence[str]) -> bytes:
    """The figure of `figure_svg` as a PNG file."""
    return svg_png(figure_svg(figure, title=title, caption=caption))


def svg_png(svg: str) -> bytes:
    """An SVG file as a PNG file that is as large in print, with 300 dots to the inch."""
    import vl_convert

    return vl_convert.svg_to_png(svg, scale=_POINTS_PER_INCH / PER_INCH, ppi=DOTS_PER_INCH)


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


def _chart(figure: Figure) -> dict[str, Any]:
    """The chart with its data and without its title, for a sheet."""
    # A file has no text around it to take a colour from.
    spec = json.loads(json.dumps({**figure.spec, "title": ""}).replace(f'"{INK}"', f'"{DARK}"'))
    return {
        **spec,
        "data": {"values": json.loads(figure.data.to_json(orient="records", double_precision=15))},
        "width": PAGE - 2 * MARGIN,
        "background": "white",
        "padding": 1,
        "config": {**spec.get("config", {}), "view": {"stroke": None}, "font": FONT},
    }


def _no_formula(cell: Any) -> Any:
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell
