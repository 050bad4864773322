"""Figures and tables as files, each with its provenance: what it was computed from."""

import io
import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from attention_sieve.dashboard.figures.figure import INK, Figure
from attention_sieve.dashboard.figures.sheet import DARK, FONT, ONE_COLUMN, PER_INCH, SHEET, Size, nested, sheet

if TYPE_CHECKING:
    import pandas as pd

DOTS_PER_INCH: Final = 300
"""Resolution of PNG files, suitable for print."""
_POINTS_PER_INCH: Final = 72
PNG_HEADER: Final = 33
"""Bytes of a PNG file up to its first chunk that may stand in another place."""
NARROW: Final = 0.8
"""Scale of a chart in one column, which makes its smallest letters, of 10 pixels, 6 points large."""
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets treat a cell that starts with one of these as a formula."""
PROVENANCE: Final = "provenance"
"""The key in a Parquet file's schema metadata; its value is a JSON object."""


def figure_svg(figure: Figure, *, title: str, caption: Sequence[str], size: Size = SHEET) -> str:
    import vl_convert

    spec = _chart(figure)
    if size.width == ONE_COLUMN.width:
        # Vega reserves the height of a legend before the chart has its final width, on which its columns depend.
        spec = json.loads(re.sub(r'"columns": \{"expr": "[^"]*"\}', '"columns": 1', json.dumps(spec)))
    width = size.room / (NARROW if size.width == ONE_COLUMN.width else 1)
    chart = nested(vl_convert.vegalite_to_svg({**spec, "width": width}, allowed_base_urls=[]))
    reading = figure.spec["title"].get("subtitle", ())
    return sheet(title, [chart], reading=reading, caption=caption, size=size)


def svg_png(svg: str, title: str, provenance: Mapping[str, str]) -> bytes:
    """Convert an SVG file to a PNG file of the same printed size, at 300 dots per inch, with a title and the provenance
    as its metadata."""
    import vl_convert

    png = vl_convert.svg_to_png(svg, scale=_POINTS_PER_INCH / PER_INCH, ppi=DOTS_PER_INCH)
    texts = (("Title", title), ("Description", _lines(provenance)))
    bodies = [b"iTXt" + name.encode() + bytes(5) + text.encode(errors="replace") for name, text in texts]
    chunks = [struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) for body in bodies]
    return png[:PNG_HEADER] + b"".join(chunks) + png[PNG_HEADER:]


def svg_pdf(svg: str, title: str, provenance: Mapping[str, str]) -> bytes:
    """Convert an SVG file to a PDF file of the same printed size, with its fonts, and a title and the provenance as
    its metadata."""
    import vl_convert

    page = nested(svg)  # whose size becomes that of the PDF page, in points
    page.drawn.set("xmlns", "http://www.w3.org/2000/svg")
    for name, length in (("width", page.width), ("height", page.height)):
        page.drawn.set(name, f"{length * _POINTS_PER_INCH / PER_INCH:.6g}")
    pdf = vl_convert.svg_to_pdf(ET.tostring(page.drawn, encoding="unicode"))
    return _described(pdf, title, _lines(provenance))


def _lines(provenance: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in provenance.items())


def _described(pdf: bytes, title: str, subject: str) -> bytes:
    """A PDF file with a title and a subject, which are appended to it as an incremental update.

    Source: ISO 32000-1, sections 7.5.6 and 14.3.3.
    """
    trailer, _, rest = pdf[pdf.rindex(b"trailer") :].partition(b">>")
    words = trailer.split()
    at = words.index(b"/Info")
    info, generation = int(words[at + 1]), int(words[at + 2])
    texts = {b"Title": title, b"Subject": subject, b"Producer": "Attention Sieve"}
    entries = b" ".join(
        b"/%s <feff%s>" % (name, text.encode("utf-16-be", "replace").hex().encode()) for name, text in texts.items()
    )
    body = b"\n%d %d obj\n<< %s >>\nendobj\n" % (info, generation, entries)
    table = b"xref\n%d 1\n%010d %05d n\r\n" % (info, len(pdf) + 1, generation)
    before, start = int(rest.split()[1]), len(pdf) + len(body)
    return pdf + body + table + trailer + b"  /Prev %d\n>>\nstartxref\n%d\n%%%%EOF\n" % (before, start)


def table_csv(table: "pd.DataFrame", provenance: Mapping[str, str]) -> bytes:
    """The table as CSV in UTF-8, with the provenance as columns that are the same in every row.

    A comment above the header would break most readers. Text that a spreadsheet would treat as a formula is prefixed
    with an apostrophe; numbers never are.

    Raises: ValueError if the provenance has the name of a column of the table.
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
    # A file has no surrounding text whose colour it could use.
    spec = json.loads(json.dumps({**figure.spec, "title": ""}).replace(f'"{INK}"', f'"{DARK}"'))
    return {
        **spec,
        "data": {"values": json.loads(figure.data.to_json(orient="records", double_precision=15))},
        "background": "white",
        "padding": 1,
        "config": {**spec.get("config", {}), "view": {"stroke": None}, "font": FONT},
    }


def _no_formula(cell: Any) -> Any:
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell
