"""The white page of a figure in a file: a wrapped title, the picture, and its provenance.

A sheet is as wide as a column or a printed page: long lines are wrapped, and wider pictures are scaled down. All sizes
are in pixels, 96 per inch.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

PER_INCH: Final = 96
"""Pixels per inch in SVG."""
COLUMN: Final = 316
"""Width in pixels: 3.3 inches, one of two columns."""
PAGE: Final = 662
"""Width in pixels: 6.9 inches, the text width of a page."""
MARGIN: Final = 14
FONT: Final = "Helvetica, Arial, 'Liberation Sans', sans-serif"
DARK: Final = "#1A1A1A"
PALE: Final = "#444444"
TITLE_SIZE, READING_SIZE, CAPTION_SIZE = 15, 11, 9.5
LETTER: Final = 0.58
"""Width of a letter relative to its size: larger than in Helvetica, so that text also fits in wider fonts."""
_GAP: Final = 12
_SWATCH: Final = 24
"""Width for the sign of a legend entry."""
_ENTRY_SIZE: Final = 12


@dataclass(frozen=True, eq=False)
class Block:
    """A part of a sheet, with coordinates relative to its upper left corner."""

    drawn: ET.Element
    width: float
    height: float


def sheet(title: str, blocks: Sequence[Block], *, reading: Sequence[str] = (), caption: Sequence[str] = ()) -> str:
    """A white page with a picture.

    Args:
        title: of the figure.
        blocks: parts of the picture, from top to bottom; parts that are too wide for a page are scaled down.
        reading: lines below the title that explain the marks.
        caption: lines below the picture: provenance.

    Returns: an SVG document, `COLUMN` or `PAGE` wide.
    """
    width = sheet_width(max(block.width for block in blocks))
    room = width - 2 * MARGIN
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img"})
    ET.SubElement(svg, "title").text = printable(title)
    ET.SubElement(svg, "rect", width="100%", height="100%", fill="#FFFFFF")
    y = _paragraph(svg, [title], MARGIN - 2, room, TITLE_SIZE, weight="600")
    y = _paragraph(svg, reading, y, room, READING_SIZE) + _GAP
    for block in blocks:
        scale = min(1.0, room / block.width)
        transform = f"translate({MARGIN} {y:g})" + (f" scale({scale:.4g})" if scale < 1 else "")
        ET.SubElement(svg, "g", transform=transform).append(block.drawn)
        y += scale * block.height + _GAP
    y = _paragraph(svg, caption, y, room, CAPTION_SIZE, color=PALE)
    height = y + MARGIN
    svg.attrib |= {"width": f"{width:g}", "height": f"{height:.4g}", "viewBox": f"0 0 {width:g} {height:.4g}"}
    return ET.tostring(svg, encoding="unicode")


def sheet_width(drawn: float) -> float:
    """Width of a sheet for a picture of this width."""
    return COLUMN if drawn <= COLUMN - 2 * MARGIN else PAGE


def room_for(drawn: float) -> float:
    """Maximum width of the legend of a picture of this width."""
    return sheet_width(drawn) - 2 * MARGIN


def legend(entries: Sequence[tuple[ET.Element | None, str]], room: float) -> Block:
    """Signs with their explanations, from left to right in as many rows as needed.

    Args:
        entries: a sign of 18 by 18 pixels, or none, and its text.
        room: available width in pixels.
    """
    drawn, x, y, row_height = ET.Element("g"), 0.0, 0.0, 0.0
    for sign, text in entries:
        sign_width = 0 if sign is None else _SWATCH
        lines = wrapped(text, room - sign_width, _ENTRY_SIZE)
        entry_width = sign_width + max(text_width(line, _ENTRY_SIZE) for line in lines) + 14
        if x and x + entry_width - 14 > room:
            x, y, row_height = 0.0, y + row_height, 0.0
        if sign is not None:
            ET.SubElement(drawn, "g", transform=f"translate({x:g} {y:g})").append(sign)
        for order, line in enumerate(lines):
            write(drawn, x + sign_width, y + 13 + 15 * order, line, _ENTRY_SIZE)
        x, row_height = x + entry_width, max(row_height, 24, 15 * len(lines) + 6)
    return Block(drawn, room, y + row_height)


def nested(svg: str) -> Block:
    """A whole SVG document as part of a sheet."""
    drawn = ET.fromstring(svg)
    for element in drawn.iter():
        # Remove the namespace, which the sheet already declares.
        element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
    width, height = (float(drawn.get(name, "0")) for name in ("width", "height"))
    return Block(drawn, width, height)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Wrap a text to a width.

    Args:
        text: any text; words that are longer than a line are split.
        width: in pixels.
        size: of the letters, in pixels.

    Returns: at least one line.
    """
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


def write(
    parent: ET.Element,
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    anchor: str = "start",
    weight: str = "400",
    color: str = DARK,
) -> None:
    """One line of text whose baseline is at y."""
    position = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{size:g}"}
    style = {"text-anchor": anchor, "font-weight": weight, "fill": color}
    ET.SubElement(parent, "text", position | style).text = printable(text)


def square(
    parent: ET.Element,
    x: float,
    y: float,
    width: float,
    height: float,
    color: str,
    letter: str = "",
    ink: str = DARK,
    size: float = 12,
    *,
    opacity: float = 1.0,
    round_: float = 4,
) -> None:
    """A filled box with a letter in the middle."""
    box = {"x": x, "y": y, "width": width, "height": height, "rx": round_, "fill-opacity": opacity}
    ET.SubElement(parent, "rect", {name: f"{value:.4g}" for name, value in box.items()} | {"fill": color})
    if letter:
        write(parent, x + width / 2, y + height / 2 + size * 0.36, letter, size, anchor="middle", weight="700")
        parent[-1].set("fill", ink)


def printable(text: str) -> str:
    """Replace characters that XML does not allow."""
    return "".join(
        letter if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff" else "\ufffd"
        for letter in text
    )


def _paragraph(
    svg: ET.Element,
    lines: Sequence[str],
    top: float,
    room: float,
    size: float,
    *,
    weight: str = "400",
    color: str = DARK,
) -> float:
    """Write lines below each other, wrapped; returns the y coordinate of the last one."""
    for line in (part for text in lines for part in wrapped(text, room, size)):
        top += round(1.35 * size, 1)
        write(svg, MARGIN, top, line, size, weight=weight, color=color)
    return top
