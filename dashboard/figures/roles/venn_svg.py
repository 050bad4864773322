"""The overlaps of roles as an SVG file for download."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from attention_sieve.dashboard.figures.roles.combinations import Combination, Overlaps, code
from attention_sieve.dashboard.figures.sheet import DARK, ONE_COLUMN, SHEET, Block, Box, Size, TextStyle, sheet, write

GEOMETRY: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "components" / "venn" / "regions.json").read_text("utf-8")
)
_SCALE: Final = 0.56
_VENN_WIDTH: Final = 610
_VENN_HEIGHT: Final = 505
_ROW: Final = 30
_BAR, _SHORT_BAR = 170, 60
"""Length of the longest bar on a page, and in a column."""


def venn_svg(overlaps: Overlaps, *, title: str, caption: Sequence[str] = (), size: Size = SHEET) -> str:
    """Outlines of two to four roles with the number of heads in each region; for others the combinations alone."""
    bar = _SHORT_BAR if size is ONE_COLUMN else _BAR
    if str(len(overlaps.roles)) in GEOMETRY:
        blocks = [_venn(overlaps, size), _table(overlaps, 76, bar, names=True)]
    else:
        drawn = ET.Element("g")
        for order, role in enumerate(overlaps.roles):
            look = overlaps.looks[role]
            Box(0, _ROW * order, 20, 20, 4).show(drawn, look)
            write(drawn, 28, 15 + _ROW * order, f"{look.label} {overlaps.total(role)}", TextStyle(14))
        blocks = [Block(drawn, 300, _ROW * len(overlaps.roles)), _table(overlaps, 34, bar, names=False)]
    return sheet(title, blocks, caption=caption, size=size)


def _venn(overlaps: Overlaps, on: Size) -> Block:
    roles, combinations = overlaps.roles, overlaps.combinations
    drawn, geometry = ET.Element("g"), GEOMETRY[str(len(roles))]
    group = ET.SubElement(drawn, "g", transform=f"translate(24 24) scale({_SCALE})")
    for role, path in zip(roles, geometry["ellipses"], strict=True):
        color = overlaps.looks[role].color
        paint = {"fill": color, "fill-opacity": "0.2", "stroke": color, "stroke-width": "3.5"}
        ET.SubElement(group, "path", {"d": path} | paint)
    counts = {code(roles, held): heads for held, heads in combinations.items()}
    for region in geometry["regions"]:
        heads = counts.get(region["code"], 0)
        style = (
            TextStyle(32, "middle", "600")
            if heads
            else TextStyle(on.legible(26 * _SCALE, _VENN_WIDTH) / _SCALE, "middle")
        )
        write(group, region["x"], region["y"] + style.size * 0.35, str(heads), style)
    for role, (x, y) in zip(roles, geometry["labels"], strict=True):
        write(group, x, y, f"{overlaps.looks[role].label} {overlaps.total(role)}", TextStyle(30, "middle", "600"))
    n_none, heads = combinations.get(frozenset(), 0), sum(combinations.values())
    without = f"{overlaps.none}: {n_none} of {heads}"
    write(drawn, _VENN_WIDTH - 24, _VENN_HEIGHT - 12, without, TextStyle(on.legible(16, _VENN_WIDTH), "end", "600"))
    write(drawn, 0, _VENN_HEIGHT - 12, "Areas are not to scale.", TextStyle(on.legible(12, _VENN_WIDTH)))
    return Block(drawn, _VENN_WIDTH, _VENN_HEIGHT)


def _table(overlaps: Overlaps, column: float, bar: float, *, names: bool) -> Block:
    roles, rows = overlaps.roles, overlaps.rows
    drawn, bars = ET.Element("g"), column * len(roles) + 14
    for order, role in enumerate(roles):
        x = column * (order + 0.5)
        write(
            drawn,
            x,
            12,
            overlaps.looks[role].label if names else overlaps.looks[role].letter,
            TextStyle(13, "middle", "600"),
        )
        if names:
            write(drawn, x, 28, str(overlaps.total(role)), TextStyle(13, "middle"))
    write(drawn, bars, 28 if names else 12, "heads", TextStyle(13, weight="600"))
    for order, row in enumerate(rows):
        y = 48 + _ROW * order
        _dots(drawn, overlaps, row, y, column)
        length = max(3.0, bar * row.heads / rows[0].heads)
        Box(bars, y - 8, length, 16, 3).fill(drawn, "#868686")
        write(drawn, bars + length + 8, y + 5, str(row.heads), TextStyle(14))
    return Block(drawn, bars + bar + 56, 38 + _ROW * len(rows))


def _dots(svg: ET.Element, overlaps: Overlaps, row: Combination, y: float, column: float) -> None:
    roles = overlaps.roles
    centres = [column * (order + 0.5) for order in range(len(roles))]
    held = [x for x, role in zip(centres, roles, strict=True) if role in row.roles]
    if len(held) > 1:
        ends = {"x1": f"{held[0]:g}", "x2": f"{held[-1]:g}", "y1": f"{y:g}", "y2": f"{y:g}"}
        ET.SubElement(svg, "line", ends | {"stroke": DARK, "stroke-opacity": "0.6", "stroke-width": "2"})
    for x, role in zip(centres, roles, strict=True):
        if role in row.roles:
            Box(x - 10, y - 10, 20, 20, 4).show(svg, overlaps.looks[role])
        else:
            ET.SubElement(svg, "circle", cx=f"{x:g}", cy=f"{y:g}", r="5", fill="#DDDDDD")
