"""Figures and tables as files, each with its provenance: what it was computed from."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attention_sieve.dashboard.figures.figure import INK, Figure
from attention_sieve.dashboard.figures.sheet import DARK, FONT, MARGIN, PAGE, PER_INCH, nested, sheet

if TYPE_CHECKING:
    import pandas as pd

DOTS_PER_INCH: Final = 300
"""Resolution of PNG files, suitable for print."""
_POINTS_PER_INCH: Final = 72
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets treat a cell that starts with one of these as a formula."""
PROVENANCE: Final = "provenance"
"""The key in a Parquet file's schema metadata; its value is a JSON object."""


def figure_svg(figure: Figure, *, title: str, caption: Sequence[str]) -> str:
    """The figure as a standalone SVG file, as wide as a printed page, with a title above and a caption below.

    Args:
        figure: what to draw.
        title: replaces the title of the figure on its page.
        caption: provenance; long lines are wrapped.
    """
    import vl_convert

    chart = vl_convert.vegalite_to_svg(_chart(figure), allowed_base_urls=[])
    return sheet(title, [nested(chart)], reading=figure.spec["title"].get("subtitle", ()), caption=caption)


def svg_png(svg: str) -> bytes:
    """Convert an SVG file to a PNG file of the same printed size, at 300 dots per inch."""
    import vl_convert

    return vl_convert.svg_to_png(svg, scale=_POINTS_PER_INCH / PER_INCH, ppi=DOTS_PER_INCH)


def table_csv(table: "pd.DataFrame", provenance: Mapping[str, str]) -> bytes:
    """The table as CSV in UTF-8, with the provenance as columns that are the same in every row.

    A comment above the header would break most readers. Text that a spreadsheet would treat as a formula is prefixed
    with an apostrophe; numbers never are.

    Raises:
        ValueError: if the provenance has the name of a column of the table.
    """
    if duplicates := [name for name in provenance if name in table.columns]:
        raise ValueError(f"Provenance and table both have a column {duplicates[0]!r}.")
    plain = table.assign(**provenance).map(_no_formula).rename(columns=_no_formula)
    return plain.to_csv(index=False, lineterminator="\n").encode()


def table_parquet(table: "pd.DataFrame", provenance: Mapping[str, str]) -> bytes:
    """The table as Parquet, with unchanged columns and the provenance in the schema's metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    arrow = pa.Table.from_pandas(table, preserve_index=False)
    file = io.BytesIO()
    metadata = {**(arrow.schema.metadata or {}), PROVENANCE.encode(): json.dumps(dict(provenance)).encode()}
    parquet.write_table(arrow.replace_schema_metadata(metadata), file)
    return file.getvalue()


def _chart(figure: Figure) -> dict[str, Any]:
    """The chart with its data and without its title, for a sheet."""
    # A file has no surrounding text whose colour it could use.
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
