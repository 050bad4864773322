"""Figures and tables as files, each with its provenance: what it was computed from; and the white sheet of a picture.

A sheet is as wide as a column or a printed page: long lines are wrapped, and wider pictures are scaled down. All sizes
are in pixels, 96 per inch.
"""

import io
import json
import re
import struct
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.etree import ElementTree as ET

from attention_sieve.dashboard.figures.appearance import RoleLook
from attention_sieve.dashboard.figures.figure import INK, Figure

if TYPE_CHECKING:
    import pandas as pd

PER_INCH: Final = 96
"""Pixels per inch in SVG."""
COLUMN: Final = 316
"""Width in pixels: 3.3 inches, one of two columns."""
PAGE: Final = 662
"""Width in pixels: 6.9 inches, the text width of a page."""
MARGIN: Final = 14
SMALLEST: Final = 8
"""Size in pixels, 6 points, to which letters are scaled down at most, where the picture has room for them."""
FONT: Final = "Helvetica, Arial, 'Liberation Sans', sans-serif"
DARK: Final = "#1A1A1A"
PALE: Final = "#444444"
LETTER: Final = 0.58
"""Width of a letter relative to its size: larger than in Helvetica, so that text also fits in wider fonts."""
_GAP: Final = 12
_SWATCH: Final = 24
"""Width for the sign of a legend entry."""


@dataclass(frozen=True, eq=False)
class Block:
    drawn: ET.Element
    width: float
    height: float


@dataclass(frozen=True)
class Size:
    """How wide a file may be, and what stands on it beside the picture."""

    width: float = PAGE
    margin: float = MARGIN
    has_words: bool = True
    """Whether the title and the provenance are written on it; a paper has a caption of its own."""

    @property
    def room(self) -> float:
        return self.width - 2 * self.margin

    def legible(self, letters: float, drawn: float) -> float:
        """Size of letters in a picture of this width that are legible once it is scaled down to fit."""
        return max(letters, SMALLEST * drawn / self.room)


SHEET: Final = Size()
ONE_COLUMN, TWO_COLUMNS = (Size(width, margin=2, has_words=False) for width in (COLUMN, PAGE))


@dataclass(frozen=True)
class TextStyle:
    size: float
    """In pixels."""
    anchor: Literal["start", "middle", "end"] = "start"
    """Which part of the line stands at its place."""
    weight: Literal["400", "600", "700"] = "400"
    color: str | None = DARK
    """None for that of the picture."""


@dataclass(frozen=True)
class Box:
    """A rectangle, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    radius: float = 0
    """Of its corners."""

    def inner(self, by: float, radius: float) -> "Box":
        """The box inside this one, or around it if `by` is negative, with corners of its own."""
        return Box(self.x + by, self.y + by, self.width - 2 * by, self.height - 2 * by, radius)

    def draw(self, parent: ET.Element, look: dict[str, str], digits: int = 6) -> None:
        """Draw it with these attributes, its numbers with so many significant digits."""
        numbers = {"x": self.x, "y": self.y, "width": self.width, "height": self.height, "rx": self.radius}
        ET.SubElement(parent, "rect", {name: f"{number:.{digits}g}" for name, number in numbers.items()} | look)

    def fill(self, parent: ET.Element, color: str, opacity: float = 1.0) -> None:
        self.draw(parent, {"fill-opacity": f"{opacity:.4g}", "fill": color}, digits=4)

    def frame(self, parent: ET.Element, color: str, stroke: float) -> None:
        self.draw(parent, {"stroke-width": f"{stroke:g}", "fill": "none", "stroke": color})

    def write(self, parent: ET.Element, text: str, size: float, color: str) -> None:
        """A bold letter or number in the middle; nothing if it is empty."""
        if text:
            y = self.y + self.height / 2 + size * 0.36
            write(parent, self.x + self.width / 2, y, text, TextStyle(size, "middle", "700", color))

    def show(self, parent: ET.Element, look: RoleLook) -> None:
        """The colour of a role with its letter."""
        self.fill(parent, look.color)
        self.write(parent, look.letter, 12, look.ink)


_TITLE: Final = TextStyle(15, weight="600")
_READING: Final = TextStyle(11)
_CAPTION: Final = TextStyle(9.5, color=PALE)
_ENTRY: Final = TextStyle(12)


def sheet(
    title: str,
    blocks: Sequence[Block],
    *,
    reading: Sequence[str] = (),
    caption: Sequence[str] = (),
    size: Size = SHEET,
) -> str:
    """A white page with a picture, whose parts are scaled down where they are too wide; `reading` explains marks."""
    width = sheet_width(max(block.width for block in blocks), size)
    room = width - 2 * size.margin
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img"})
    ET.SubElement(svg, "title").text = printable(title)
    ET.SubElement(svg, "rect", width="100%", height="100%", fill="#FFFFFF")
    y = size.margin - 2
    if size.has_words:
        y = _paragraph(svg, [title], (size.margin, y), room, _TITLE)
    else:
        ET.SubElement(svg, "desc").text = "\n".join(map(printable, caption))
    y = _paragraph(svg, reading, (size.margin, y), room, _READING)
    y += _GAP if y > size.margin else 2
    for block in blocks:
        scale = min(1.0, room / block.width)
        transform = f"translate({size.margin} {y:g})" + (f" scale({scale:.4g})" if scale < 1 else "")
        ET.SubElement(svg, "g", transform=transform).append(block.drawn)
        y += scale * block.height + _GAP
    y = _paragraph(svg, caption, (size.margin, y), room, _CAPTION) if size.has_words else y - _GAP
    height = y + size.margin
    svg.attrib |= {"width": f"{width:g}", "height": f"{height:.4g}", "viewBox": f"0 0 {width:g} {height:.4g}"}
    return ET.tostring(svg, encoding="unicode")


def sheet_width(drawn: float, size: Size = SHEET) -> float:
    return COLUMN if drawn <= COLUMN - 2 * size.margin else size.width


def room_for(drawn: float, size: Size = SHEET) -> float:
    return sheet_width(drawn, size) - 2 * size.margin


def legend(entries: Sequence[tuple[ET.Element | None, str]], room: float) -> Block:
    """Signs of 18 by 18 pixels with their explanations, from left to right in as many rows as needed."""
    drawn, x, y, row_height = ET.Element("g"), 0.0, 0.0, 0.0
    for sign, text in entries:
        sign_width = 0 if sign is None else _SWATCH
        lines = wrapped(text, room - sign_width, _ENTRY.size)
        entry_width = sign_width + max(text_width(line, _ENTRY.size) for line in lines) + 14
        if x and x + entry_width - 14 > room:
            x, y, row_height = 0.0, y + row_height, 0.0
        if sign is not None:
            ET.SubElement(drawn, "g", transform=f"translate({x:g} {y:g})").append(sign)
        for order, line in enumerate(lines):
            write(drawn, x + sign_width, y + 13 + 15 * order, line, _ENTRY)
        x, row_height = x + entry_width, max(row_height, 24, 15 * len(lines) + 6)
    return Block(drawn, room, y + row_height)


def nested(svg: str) -> Block:
    drawn = ET.fromstring(svg)
    for element in drawn.iter():
        # Remove the namespace, which the sheet already declares.
        element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
    width, height = (float(drawn.get(name, "0")) for name in ("width", "height"))
    return Block(drawn, width, height)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The lines of a text in letters of a size, at least one; words that are longer than a line are split."""
    lines = [""]
    for word in re.findall(r"\S+", printable(text)):
        joined = f"{lines[-1]} {word}".lstrip()
        if text_width(joined, size) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, size) > width:
                lines.append("")
            lines[-1] += letter
    return lines


def text_width(text: str, size: float) -> float:
    """Upper estimate of the width of a line in pixels; East Asian letters count twice."""
    places = sum(1 / LETTER if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return places * size * LETTER


def write(parent: ET.Element, x: float, y: float, text: str, style: TextStyle) -> None:
    """One line of text whose baseline is at y."""
    position = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{style.size:g}"}
    attributes = {"text-anchor": style.anchor, "font-weight": style.weight}
    color = {} if style.color is None else {"fill": style.color}
    ET.SubElement(parent, "text", position | attributes | color).text = printable(text)


def printable(text: str) -> str:
    """Replace characters that XML does not allow."""
    return "".join(
        letter if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff" else "\ufffd"
        for letter in text
    )


def _paragraph(
    svg: ET.Element, lines: Sequence[str], corner: tuple[float, float], room: float, style: TextStyle
) -> float:
    """From an upper left corner on, write lines below each other, wrapped; returns y of the last one."""
    left, top = corner
    for line in (part for text in lines for part in wrapped(text, room, style.size)):
        top += round(1.35 * style.size, 1)
        write(svg, left, top, line, style)
    return top


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


def chart_block(figure: Figure, width: float) -> Block:
    """A chart of this width as a part of another picture."""
    import vl_convert

    return nested(vl_convert.vegalite_to_svg({**_chart(figure), "width": width}, allowed_base_urls=[]))


def svg_png(svg: str, title: str, provenance: Mapping[str, str], dots_per_inch: int = DOTS_PER_INCH) -> bytes:
    """Convert an SVG file to a PNG file of the same printed size, with a title and the provenance as its metadata."""
    import vl_convert

    png = vl_convert.svg_to_png(svg, scale=_POINTS_PER_INCH / PER_INCH, ppi=dots_per_inch)
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
