"""The white sheet of every figure's file: a wrapped title, the picture, and what it was computed from.

A sheet is as wide as a column or a page of print, whatever is written on it: long lines are wrapped, and a picture that
is wider is drawn smaller. Everything else says its size in pixels, of which an inch has 96.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

PER_INCH: Final = 96
"""Pixels, as SVG counts them."""
COLUMN: Final = 316
"""Pixels: 3.3 inches, a column of two."""
PAGE: Final = 662
"""Pixels: 6.9 inches, the text of a page."""
MARGIN: Final = 14
FONT: Final = "Helvetica, Arial, 'Liberation Sans', sans-serif"
DARK: Final = "#1A1A1A"
PALE: Final = "#444444"
TITLE_SIZE, READING_SIZE, CAPTION_SIZE = 15, 11, 9.5
LETTER: Final = 0.58
"""Width of a letter as a part of its size: more than Helvetica takes, so that text fits in a wider font too."""
_GAP: Final = 12
_SWATCH: Final = 24
"""Room for the sign of an entry in a legend."""
_ENTRY_SIZE: Final = 12


@dataclass(frozen=True, eq=False)
class Block:
    """A part of a sheet, drawn from its own upper left corner on."""

    drawn: ET.Element
    width: float
    height: float


def sheet(title: str, blocks: Sequence[Block], *, reading: Sequence[str] = (), caption: Sequence[str] = ()) -> str:
    """A white page with a picture.

    Args:
        title: of the figure.
        blocks: parts of the picture, from top to bottom; one that is too wide for a page is drawn smaller.
        reading: lines below the title that say how to read the marks.
        caption: lines below the picture: where it comes from.

    Returns: an SVG document, `COLUMN` or `PAGE` wide.
    """
    width = sheet_width(max(block.width for block in blocks))
    room = width - 2 * MARGIN
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img"})
    ET.SubElement(svg, "title").text = printable(title)
    ET.SubElement(svg, "rect", width="100%", height="100%", fill="#FFFFFF")
    below = _paragraph(svg, [title], MARGIN - 2, room, TITLE_SIZE, weight="600")
    below = _paragraph(svg, reading, below, room, READING_SIZE) + _GAP
    for block in blocks:
        scale = min(1.0, room / block.width)
        place = f"translate({MARGIN} {below:g})" + (f" scale({scale:.4g})" if scale < 1 else "")
        ET.SubElement(svg, "g", transform=place).append(block.drawn)
        below += scale * block.height + _GAP
    below = _paragraph(svg, caption, below, room, CAPTION_SIZE, color=PALE)
    height = below + MARGIN
    svg.attrib |= {"width": f"{width:g}", "height": f"{height:.4g}", "viewBox": f"0 0 {width:g} {height:.4g}"}
    return ET.tostring(svg, encoding="unicode")


def sheet_width(drawn: float) -> float:
    """How wide a sheet is that holds something of this width."""
    return COLUMN if drawn <= COLUMN - 2 * MARGIN else PAGE


def room_for(drawn: float) -> float:
    """How wide a legend may be beside a picture of this width."""
    return sheet_width(drawn) - 2 * MARGIN


def legend(entries: Sequence[tuple[ET.Element | None, str]], room: float) -> Block:
    """Signs and what they mean, from left to right in as many rows as they take.

    Args:
        entries: a sign of 18 by 18 pixels, or none, and its text.
        room: pixels from left to right.
    """
    drawn, x, y, high = ET.Element("g"), 0.0, 0.0, 0.0
    for sign, text in entries:
        beside = 0 if sign is None else _SWATCH
        lines = wrapped(text, room - beside, _ENTRY_SIZE)
        wide = beside + max(text_width(line, _ENTRY_SIZE) for line in lines) + 14
        if x and x + wide - 14 > room:
            x, y, high = 0.0, y + high, 0.0
        if sign is not None:
            ET.SubElement(drawn, "g", transform=f"translate({x:g} {y:g})").append(sign)
        for order, line in enumerate(lines):
            write(drawn, x + beside, y + 13 + 15 * order, line, _ENTRY_SIZE)
        x, high = x + wide, max(high, 24, 15 * len(lines) + 6)
    return Block(drawn, room, y + high)


def nested(svg: str) -> Block:
    """A whole SVG document as part of a sheet."""
    drawn = ET.fromstring(svg)
    for element in drawn.iter():
        # Without a prefix of its own for a name space that the sheet has already.
        element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
    width, height = (float(drawn.get(name, "0")) for name in ("width", "height"))
    return Block(drawn, width, height)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text as lines that fit a width.

    Args:
        text: any text; a word that is longer than a line is cut.
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
    """About how many pixels a line takes, rather more than less; letters of East Asian scripts take two places."""
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
    where = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{size:g}"}
    how = {"text-anchor": anchor, "font-weight": weight, "fill": color}
    ET.SubElement(parent, "text", where | how).text = printable(text)


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
    """A filled box with a letter in its middle."""
    box = {"x": x, "y": y, "width": width, "height": height, "rx": round_, "fill-opacity": opacity}
    ET.SubElement(parent, "rect", {name: f"{value:.4g}" for name, value in box.items()} | {"fill": color})
    if letter:
        write(parent, x + width / 2, y + height / 2 + size * 0.36, letter, size, anchor="middle", weight="700")
        parent[-1].set("fill", ink)


def printable(text: str) -> str:
    """The text with every character that XML cannot hold shown as a replacement character."""
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
    """Lines one below the other, wrapped; returns where they end."""
    for line in (part for text in lines for part in wrapped(text, room, size)):
        top += round(1.35 * size, 1)
        write(svg, MARGIN, top, line, size, weight=weight, color=color)
    return top
