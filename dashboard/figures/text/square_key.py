"""An empty square of attention enlarged, with its words: how to read the squares of a grid, and where to look."""

from collections.abc import Collection, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from attention_sieve.dashboard.figures.text.arcs_svg import visible

CELL: Final = 22
"""Pixels of one field."""
ABOVE, BESIDE = 84, 92
"""Pixels for the words across the top, and down the side."""


def square_key_svg(tokens: Sequence[str], rows: Collection[int], columns: Collection[int]) -> str:
    """Draw the square, with some rows and columns marked, and the fields where they meet outlined."""
    side = CELL * len(tokens)
    width, height = BESIDE + side + 2, ABOVE + side + 2
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=f"{width}", height=f"{height}")
    svg.set("viewBox", f"0 0 {width} {height}")
    for row in rows:
        _rect(svg, BESIDE, ABOVE + CELL * row, side, CELL, fill="currentColor", opacity="0.1")
    for column in columns:
        _rect(svg, BESIDE + CELL * column, ABOVE, CELL, side, fill="currentColor", opacity="0.1")
    for number in range(len(tokens) + 1):
        at = CELL * number
        path = f"M{BESIDE},{ABOVE + at}h{side}M{BESIDE + at},{ABOVE}v{side}"
        ET.SubElement(svg, "path", d=path, stroke="currentColor", opacity="0.25", fill="none")
    for number, token in enumerate(tokens):
        middle = CELL * number + CELL / 2
        across, down = BESIDE + middle + 5, ABOVE - 6
        _word(svg, token, BESIDE - 8, ABOVE + middle + 5, is_marked=number in rows, **{"text-anchor": "end"})
        _word(svg, token, across, down, is_marked=number in columns, transform=f"rotate(-90 {across} {down})")
    for row in rows:
        for column in columns:
            x, y = BESIDE + CELL * column, ABOVE + CELL * row
            _rect(svg, x, y, CELL, CELL, fill="none", stroke="currentColor", **{"stroke-width": "3"})
    return ET.tostring(svg, encoding="unicode")


def _rect(svg: ET.Element, x: float, y: float, width: float, height: float, **looks: str) -> None:
    ET.SubElement(svg, "rect", {"x": f"{x}", "y": f"{y}", "width": f"{width}", "height": f"{height}", **looks})


def _word(svg: ET.Element, token: str, x: float, y: float, *, is_marked: bool, **place: str) -> None:
    looks = {"font-size": "14", "font-weight": "700" if is_marked else "400", "fill": "currentColor"}
    word = ET.SubElement(svg, "text", {"x": f"{x}", "y": f"{y}", **looks, **place})
    word.text = visible(token)
