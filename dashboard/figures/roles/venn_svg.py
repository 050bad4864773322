"""The overlaps of roles as an SVG file for download."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from dashboard.figures.appearance import LOOKS
from dashboard.figures.roles.combinations import Combination, code, ordered, total
from dashboard.figures.roles.grid_svg import DARK, sheet, square, text_width, write, write_caption

GEOMETRY: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "components" / "venn" / "regions.json").read_text("utf-8")
)
_SCALE: Final = 0.56
_VENN_WIDTH: Final = 610
_VENN_HEIGHT: Final = 550
_LABELS: Final = ((75, 96), (290, -8), (710, -8), (925, 96))
_ROW: Final = 30
_BAR: Final = 170


def venn_svg(
    *,
    roles: Sequence[str],
    combinations: Mapping[frozenset[str], int],
    title: str,
    caption: Sequence[str] = (),
) -> str:
    """Four ellipses with the number of heads in each region, beside the exact combinations.

    For any other number of roles the exact combinations stand alone.

    Args:
        roles: The roles that are counted.
        combinations: How many heads hold exactly which of these roles; the empty set counts heads without a role.
        title: First line of the picture.
        caption: Lines beneath the picture: checkpoint, settings, number of texts.

    Returns: an SVG document on white.
    """
    rows = ordered(roles, combinations)
    drawn = len(roles) == len(GEOMETRY["ellipses"])
    left = _VENN_WIDTH + 40 if drawn else 16
    column = 66 if drawn else 34
    bottom = max(_VENN_HEIGHT if drawn else 0, 110 + _ROW * (len(rows) + (0 if drawn else len(roles))))
    width = max(left + column * len(roles) + _BAR + 70, text_width([title], 20) + 32, text_width(caption, 13) + 32)
    svg = sheet(width, bottom + 20 + 18 * len(caption) + 12, title)
    if drawn:
        _venn(svg, roles, combinations)
        table_top = 70.0
    else:
        table_top = _legend(svg, roles, combinations)
    _table(svg, roles, combinations, rows, left, table_top, column, names=drawn)
    write_caption(svg, 16, bottom + 22, caption)
    return ET.tostring(svg, encoding="unicode")


def _venn(svg: ET.Element, roles: Sequence[str], combinations: Mapping[frozenset[str], int]) -> None:
    group = ET.SubElement(svg, "g", transform=f"translate(24 80) scale({_SCALE})")
    for role, path in zip(roles, GEOMETRY["ellipses"], strict=True):
        color = LOOKS[role].color
        paint = {"fill": color, "fill-opacity": "0.2", "stroke": color, "stroke-width": "3.5"}
        ET.SubElement(group, "path", {"d": path} | paint)
    counts = {code(roles, held): heads for held, heads in combinations.items()}
    for region in GEOMETRY["regions"]:
        heads = counts.get(region["code"], 0)
        size, weight = (32, "600") if heads else (26, "400")
        write(group, region["x"], region["y"] + size * 0.35, str(heads), size, anchor="middle", weight=weight)
    for role, (x, y) in zip(roles, _LABELS, strict=True):
        write(group, x, y, f"{LOOKS[role].label} {total(role, combinations)}", 30, anchor="middle", weight="600")
    none, heads = combinations.get(frozenset(), 0), sum(combinations.values())
    write(svg, _VENN_WIDTH - 24, _VENN_HEIGHT - 12, f"no role: {none} of {heads}", 16, anchor="end", weight="600")
    write(svg, 16, _VENN_HEIGHT - 12, "Areas are not to scale.", 13)


def _legend(svg: ET.Element, roles: Sequence[str], combinations: Mapping[frozenset[str], int]) -> float:
    """Draw the roles with their totals one below the other; the height where the table may start."""
    for order, role in enumerate(roles):
        look = LOOKS[role]
        square(svg, 16, 46 + _ROW * order, 20, 20, look.color, look.letter, look.ink)
        write(svg, 44, 61 + _ROW * order, f"{look.label} {total(role, combinations)}", 14)
    return 70.0 + _ROW * len(roles)


def _table(
    svg: ET.Element,
    roles: Sequence[str],
    combinations: Mapping[frozenset[str], int],
    rows: Sequence[Combination],
    left: float,
    top: float,
    column: float,
    *,
    names: bool,
) -> None:
    for order, role in enumerate(roles):
        x = left + column * (order + 0.5)
        write(svg, x, top, LOOKS[role].label if names else LOOKS[role].letter, 13, anchor="middle", weight="600")
        if names:
            write(svg, x, top + 16, str(total(role, combinations)), 13, anchor="middle")
    bars = left + column * len(roles) + 14
    write(svg, bars, top + (16 if names else 0), "heads", 13, weight="600")
    for order, row in enumerate(rows):
        y = top + 38 + _ROW * order
        _dots(svg, roles, row, left, y, column)
        length = max(3.0, _BAR * row.heads / rows[0].heads)
        square(svg, bars, y - 8, length, 16, "#868686", round_=3)
        write(svg, bars + length + 8, y + 5, str(row.heads), 14)


def _dots(svg: ET.Element, roles: Sequence[str], row: Combination, left: float, y: float, column: float) -> None:
    centres = [left + column * (order + 0.5) for order in range(len(roles))]
    held = [x for x, role in zip(centres, roles, strict=True) if role in row.roles]
    if len(held) > 1:
        ends = {"x1": f"{held[0]:g}", "x2": f"{held[-1]:g}", "y1": f"{y:g}", "y2": f"{y:g}"}
        ET.SubElement(svg, "line", ends | {"stroke": DARK, "stroke-opacity": "0.6", "stroke-width": "2"})
    for x, role in zip(centres, roles, strict=True):
        look = LOOKS[role]
        if role in row.roles:
            square(svg, x - 10, y - 10, 20, 20, look.color, look.letter, look.ink)
        else:
            ET.SubElement(svg, "circle", cx=f"{x:g}", cy=f"{y:g}", r="5", fill="#DDDDDD")
