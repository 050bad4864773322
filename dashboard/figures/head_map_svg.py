"""One number per head as an SVG file for download."""

from collections.abc import Collection, Sequence
from math import isnan
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from attention_sieve.dashboard.figures.appearance import AMOUNT, LESS, MORE, head_color, ink_on, mixed
from attention_sieve.dashboard.figures.head_map import NOT_APPLICABLE, HeadMap
from attention_sieve.dashboard.figures.roles.grid_svg import ABOVE, CELL, LEFT, SIGN, STEP, matrix_axes
from attention_sieve.dashboard.figures.sheet import DARK, Block, legend, room_for, sheet, square, text_width, write

FAINT: Final = "#C9C9C9"
RAMP: Final = 120
_STEPS: Final = 24
"""Number of steps of the ramp in the legend."""


def head_map_svg(
    head_map: HeadMap, *, title: str = "", caption: Sequence[str] = (), chosen: Collection[tuple[int, int]] = ()
) -> str:
    """The map on white: rows layers, columns heads.

    Args:
        head_map: the map.
        title: above the map; by default its label.
        caption: lines beneath the picture: checkpoints, settings, number of texts.
        chosen: heads to frame, in the colours of their order.

    Returns: an SVG document.
    """
    layers, heads = head_map.values.shape
    drawn, width, height = matrix_axes(layers, heads)
    for layer, head in np.ndindex(layers, heads):
        _cell(drawn, LEFT + head * STEP, ABOVE + layer * STEP, head_map, (layer, head))
    for order, (layer, head) in enumerate(chosen):
        _frame(drawn, LEFT + head * STEP - 2, ABOVE + layer * STEP - 2, CELL + 4, head_color(order), 3)
    marks = [("outline", head_map.outline)] if head_map.outlined is not None else []
    marks += [("hatch", NOT_APPLICABLE)] if np.isnan(head_map.values).any() else []
    blocks = [_ramp(head_map), Block(drawn, width, height)]
    if marks:
        blocks.insert(1, legend([(_sign(mark), text) for mark, text in marks], room_for(width)))
    _hatching(drawn)
    return sheet(title or head_map.label, blocks, caption=caption)


def _hatching(svg: ET.Element) -> None:
    size = {"width": "7", "height": "7", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = ET.SubElement(ET.SubElement(svg, "defs"), "pattern", {"id": "hatch", **size})
    ET.SubElement(pattern, "line", {"x1": "0", "y1": "0", "x2": "0", "y2": "7", "stroke": "#8A8A8A"})


def _ramp(head_map: HeadMap) -> Block:
    """The scale as a bar between the labels of its ends."""
    drawn, (low, high) = ET.Element("g"), head_map.ends
    low, high = f"{head_map.low_label} {low}".strip(), f"{high} {head_map.high_label}".strip()
    left, right = (text_width(end, 12) + 8 for end in (low, high))
    width = left + RAMP + right
    write(drawn, 0, 12, low, 12)
    for step in range(_STEPS):
        part = (step + 0.5) / _STEPS
        color = _color(2 * part - 1 if head_map.signed else part, head_map.signed)
        square(drawn, left + step * RAMP / _STEPS, 0, RAMP / _STEPS + 0.3, 16, color, round_=0)
    _frame(drawn, left, 0, RAMP, "#767676", 1, height=16)
    write(drawn, left + RAMP + 8, 12, high, 12)
    return Block(drawn, width, 16)


def _sign(mark: str) -> ET.Element:
    """A sign in a cell, for the legend."""
    sign = ET.Element("g")
    if mark == "outline":
        _frame(sign, 1.5, 1.5, SIGN - 3, DARK, 3)
    else:
        _hatched(sign, 0, 0, SIGN)
        _frame(sign, 0.5, 0.5, SIGN - 1, FAINT, 1)
    return sign


def _hatched(svg: ET.Element, x: float, y: float, side: float) -> None:
    box = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{side:g}", "height": f"{side:g}", "rx": "5"}
    ET.SubElement(svg, "rect", box | {"fill": "url(#hatch)"})


def _cell(svg: ET.Element, x: float, y: float, head_map: HeadMap, head: tuple[int, int]) -> None:
    value = float(head_map.values[head])
    if isnan(value):
        _hatched(svg, x, y, CELL)
    else:
        color = _color(max(-1.0, min(value / head_map.bound, 1.0)), head_map.signed)
        square(svg, x, y, CELL, CELL, color, head_map.written_in(*head), ink_on(color), 13, round_=5)
    if head_map.outlined is not None and head_map.outlined[head]:
        _frame(svg, x + 1.5, y + 1.5, CELL - 3, DARK, 3)
    else:
        _frame(svg, x + 0.5, y + 0.5, CELL - 1, FAINT, 1)


def _color(part: float, signed: bool) -> str:
    """The scale's colour at a part of its bound, from -1 or 0 to 1."""
    return mixed((LESS if part < 0 else MORE) if signed else AMOUNT, abs(part))


def _frame(svg: ET.Element, x: float, y: float, width: float, color: str, stroke: float, height: float = 0) -> None:
    """A rectangle without a fill; a square with round corners where it has no height of its own."""
    size = {"x": x, "y": y, "width": width, "height": height or width, "rx": 0 if height else 4}
    frame = {name: f"{value:g}" for name, value in size.items()} | {"stroke-width": f"{stroke:g}"}
    ET.SubElement(svg, "rect", frame | {"fill": "none", "stroke": color})
