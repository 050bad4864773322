"""One number per head as an SVG file for download."""

from collections.abc import Collection, Sequence
from math import isnan
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from dashboard.figures.appearance import AMOUNT, LESS, MORE, head_color, ink_on, mixed
from dashboard.figures.head_map import NOT_APPLICABLE, HeadMap
from dashboard.figures.roles.grid_svg import CELL, DARK, LEFT, STEP, sheet, square, text_width, write, write_caption

FAINT: Final = "#C9C9C9"
RAMP: Final = 120
_STEPS: Final = 24
"""Of the ramp in the legend."""


def head_map_svg(head_map: HeadMap, *, caption: Sequence[str] = (), chosen: Collection[tuple[int, int]] = ()) -> str:
    """The map on white: rows layers, columns heads.

    Args:
        head_map: what to draw; its label is the first line of the picture.
        caption: lines beneath the picture: checkpoints, settings, number of texts.
        chosen: heads to frame, in the colours of their order.

    Returns: an SVG document.
    """
    values, outlined, signed = head_map.values, head_map.outlined, head_map.signed
    layers, heads = values.shape
    low, high = head_map.ends
    ends = f"{head_map.low_label} {low}".strip(), f"{high} {head_map.high_label}".strip()
    marks = [("outline", head_map.outline)] if outlined is not None else []
    marks += [("hatch", NOT_APPLICABLE)] if np.isnan(values).any() else []
    top = 112 + 26 * len(marks)
    ramp = RAMP + sum(text_width([end], 13) for end in ends) + 16
    texts = max(text_width([head_map.label], 20), text_width([*caption, *(text for _, text in marks)], 13), ramp) + 48
    width = max(LEFT + heads * STEP + 16, texts)
    svg = sheet(width, top + layers * STEP + 20 + 18 * len(caption) + 12, head_map.label)
    _hatching(svg)
    _ramp(svg, ends, signed)
    for order, (mark, text) in enumerate(marks):
        _mark(svg, 16, 76 + 26 * order, mark, text)
    _axes(svg, layers, heads, top)
    for layer, head in np.ndindex(layers, heads):
        _cell(svg, LEFT + head * STEP, top + layer * STEP, head_map, (layer, head))
    for order, (layer, head) in enumerate(chosen):
        _frame(svg, LEFT + head * STEP - 2, top + layer * STEP - 2, CELL + 4, head_color(order), 3)
    write_caption(svg, 16, top + layers * STEP + 22, caption)
    return ET.tostring(svg, encoding="unicode")


def _hatching(svg: ET.Element) -> None:
    size = {"width": "7", "height": "7", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = ET.SubElement(ET.SubElement(svg, "defs"), "pattern", {"id": "hatch", **size})
    ET.SubElement(pattern, "line", {"x1": "0", "y1": "0", "x2": "0", "y2": "7", "stroke": "#8A8A8A"})


def _ramp(svg: ET.Element, ends: tuple[str, str], signed: bool) -> None:
    """The scale as a bar between what its ends mean."""
    write(svg, 16, 62, ends[0], 13)
    start = 16 + text_width([ends[0]], 13) + 8
    for step in range(_STEPS):
        part = (step + 0.5) / _STEPS
        color = _color(2 * part - 1 if signed else part, signed)
        square(svg, start + step * RAMP / _STEPS, 50, RAMP / _STEPS + 0.3, 16, color, round_=0)
    _frame(svg, start, 50, RAMP, "#767676", 1, height=16)
    write(svg, start + RAMP + 8, 62, ends[1], 13)


def _mark(svg: ET.Element, x: float, y: float, mark: str, text: str) -> None:
    """A sign in a cell, and what it means."""
    if mark == "outline":
        _frame(svg, x + 1.5, y + 1.5, 15, DARK, 3)
    else:
        _hatched(svg, x, y, 18)
        _frame(svg, x + 0.5, y + 0.5, 17, FAINT, 1)
    write(svg, x + 25, y + 14, text, 13)


def _hatched(svg: ET.Element, x: float, y: float, side: float) -> None:
    box = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{side:g}", "height": f"{side:g}", "rx": "5"}
    ET.SubElement(svg, "rect", box | {"fill": "url(#hatch)"})


def _axes(svg: ET.Element, layers: int, heads: int, top: float) -> None:
    write(svg, 16, top - 8, "Layer", 12)
    write(svg, LEFT + heads * STEP / 2, top - 25, "Head", 12, anchor="middle")
    for head in range(heads):
        write(svg, LEFT + head * STEP + CELL / 2, top - 8, str(head), 12, anchor="middle")
    for layer in range(layers):
        write(svg, LEFT - 10, top + layer * STEP + CELL / 2 + 4, str(layer), 12, anchor="end")


def _cell(svg: ET.Element, x: float, y: float, head_map: HeadMap, at: tuple[int, int]) -> None:
    value = float(head_map.values[at])
    if isnan(value):
        _hatched(svg, x, y, CELL)
    else:
        color = _color(max(-1.0, min(value / head_map.bound, 1.0)), head_map.signed)
        square(svg, x, y, CELL, CELL, color, head_map.written(value), ink_on(color), 13, round_=5)
    if head_map.outlined is not None and head_map.outlined[at]:
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
