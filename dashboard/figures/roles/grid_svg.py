"""The grid of roles as an SVG file for download."""

from collections.abc import Collection, Sequence
from math import ceil, isnan, sqrt
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from core.attention.settings import Head, head_name
from dashboard.figures.appearance import LOOKS, Look, head_color
from dashboard.figures.roles.grid import FAINT, RoleGrid

# Names that end in a digit must be quoted, or a renderer drops the whole list and with it every text.
FONT: Final = "'Source Sans 3', Helvetica, Arial, 'Liberation Sans', sans-serif"
DARK: Final = "#1A1A1A"
CELL: Final = 44
STEP: Final = 48
LEFT: Final = 64
_TINT: Final = 0.3
_STROKE: Final = {"fill": "none", "stroke": DARK, "stroke-width": "2"}


def grid_svg(grid: RoleGrid, *, caption: Sequence[str] = (), chosen: Collection[tuple[int, int]] = ()) -> str:
    """The grid on white: rows layers, columns heads, one corner per shown role.

    Args:
        grid: What to draw; its label is the first line of the picture.
        caption: Lines beneath the picture: checkpoint, settings, number of texts.
        chosen: Heads to frame, in the colours of their order.

    Returns: an SVG document.
    """
    states = _states(grid)
    _, layers, heads = grid.scores.shape
    caption = [*caption, *([] if grid.stability is None else [FAINT.capitalize()])]
    legend = [LOOKS[grid.roles[role]] for role in grid.corners]
    columns = max(1, (heads * STEP + LEFT - 24) // 170)
    changes = [] if grid.held_before is None else ["gained", "kept", "lost"]
    top = 112 + 26 * (ceil((len(legend) + len(changes)) / columns) - 1)
    width = max(LEFT + heads * STEP + 16, text_width([grid.label], 20) + 48, text_width(caption, 13) + 48)
    svg = sheet(width, top + layers * STEP + 20 + 18 * len(caption) + 12, grid.label)
    clip = ET.SubElement(ET.SubElement(svg, "defs"), "clipPath", id="cell")
    ET.SubElement(clip, "rect", width=str(CELL), height=str(CELL), rx="5")
    for order, look in enumerate(legend):
        x, y = 24 + 170 * (order % columns), 50 + 26 * (order // columns)
        square(svg, x, y, 18, 18, look.color, look.letter, look.ink, 12)
        write(svg, x + 25, y + 14, look.label, 13)
    for order, state in enumerate(changes, start=len(legend)):
        x, y = 24 + 170 * (order % columns), 50 + 26 * (order // columns)
        _corner(svg, (x, y, 18, 18), Look(state, "", "#7A7A7A", DARK, state), state)
        write(svg, x + 25, y + 14, state, 13)
    write(svg, 16, top - 8, "Layer", 12)
    write(svg, LEFT + heads * STEP / 2, top - 25, "Head", 12, anchor="middle")
    for head in range(heads):
        write(svg, LEFT + head * STEP + CELL / 2, top - 8, str(head), 12, anchor="middle")
    for layer in range(layers):
        write(svg, LEFT - 10, top + layer * STEP + CELL / 2 + 4, str(layer), 12, anchor="end")
        for head in range(heads):
            cell = ET.SubElement(svg, "g", transform=f"translate({LEFT + head * STEP} {top + layer * STEP})")
            cell.set("clip-path", "url(#cell)")
            if grid.sentences is not None:
                ET.SubElement(cell, "title").text = f"{head_name(layer, head)}: {grid.sentences[layer][head]}"
            _corners(cell, grid, states, (layer, head))
            if (layer, head) in grid.off:
                _strike(cell)
    for order, (layer, head) in enumerate(chosen):
        color = head_color(order) if len(chosen) > 1 else DARK
        _frame(svg, LEFT + head * STEP - 2, top + layer * STEP - 2, CELL + 4, color, 3)
    write_caption(svg, 16, top + layers * STEP + 22, caption)
    return ET.tostring(svg, encoding="unicode")


def _states(grid: RoleGrid) -> np.ndarray:
    """What each role is to each head: "", "held", or where this is compared "gained", "kept" or "lost"."""
    if grid.held_before is None:
        return np.where(grid.holds, "held", "")
    return np.array(["", "gained", "lost", "kept"])[grid.holds + 2 * grid.held_before]


def _corners(cell: ET.Element, grid: RoleGrid, states: np.ndarray, head: Head) -> None:
    corners = grid.corners
    columns = ceil(sqrt(len(corners)))
    wide, high = CELL / columns, CELL / ceil(len(corners) / columns)
    for position, role in enumerate(corners):
        look, score, state = LOOKS[grid.roles[role]], float(grid.scores[role, *head]), states[role, *head]
        x, y = position % columns * wide, position // columns * high
        if state:
            _corner(cell, (x, y, wide, high), look, str(state), faint=bool(grid.faint[role, *head]))
        elif not isnan(score):
            tint = _TINT * min(max(score / grid.tau, 0.0), 1.0)
            square(cell, x, y, wide, high, look.color, opacity=tint, round_=0)
    _frame(cell, 0.5, 0.5, CELL - 1, "#C9C9C9", 1)


def _corner(
    parent: ET.Element, box: tuple[float, float, float, float], look: Look, state: str, *, faint: bool = False
) -> None:
    """One role of a head: full where held, framed where gained, pale where kept, hatched and struck where lost.

    A faint one is half as strong, letter and colour.
    """
    if faint:
        parent = ET.SubElement(parent, "g", {"opacity": "0.5", "class": "faint"})
    x, y, wide, high = box
    size = min(13, wide * 0.68)
    if state in ("held", "gained"):
        square(parent, *box, look.color, look.letter, look.ink, size, round_=0)
    else:
        square(parent, *box, look.color, look.letter, DARK, size, opacity=0.3 if state == "kept" else 0.1, round_=0)
    if state == "gained":
        ET.SubElement(parent, "rect", _numbers(x=x + 1, y=y + 1, width=wide - 2, height=high - 2) | _STROKE)
    if state == "lost":
        for start in (-0.5, 0, 0.5):
            ends = {"x1": x + wide * max(start, 0), "y1": y + high * max(-start, 0)}
            ends |= {"x2": x + wide * min(1 + start, 1), "y2": y + high * min(1 - start, 1)}
            ET.SubElement(parent, "line", _numbers(**ends) | {"stroke": look.color, "stroke-width": "1.6"})
        middle = {"x1": x + wide / 2 - size / 2, "x2": x + wide / 2 + size / 2, "y1": y + high / 2, "y2": y + high / 2}
        ET.SubElement(parent, "line", _numbers(**middle) | {"stroke": DARK, "stroke-width": "1.3"})


def _numbers(**values: float) -> dict[str, str]:
    return {name: f"{value:.4g}" for name, value in values.items()}


def _strike(cell: ET.Element) -> None:
    """A line from corner to corner, light beside dark so that it shows on every colour."""
    for color, stroke in (("#FFFFFF", 5), (DARK, 2.5)):
        line = {"x1": "0", "y1": "0", "x2": f"{CELL}", "y2": f"{CELL}", "stroke": color, "stroke-width": f"{stroke}"}
        ET.SubElement(cell, "line", line)


def _frame(parent: ET.Element, x: float, y: float, size: float, color: str, stroke: float) -> None:
    attributes = {"x": x, "y": y, "width": size, "height": size, "rx": 5, "stroke-width": stroke}
    frame = {name: f"{value:g}" for name, value in attributes.items()}
    ET.SubElement(parent, "rect", frame | {"fill": "none", "stroke": color})


def sheet(width: float, height: float, title: str) -> ET.Element:
    """A white SVG page of this size with its title."""
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img", **size})
    ET.SubElement(svg, "title").text = printable(title)
    ET.SubElement(svg, "rect", width="100%", height="100%", fill="#FFFFFF")
    write(svg, 16, 30, title, 20, weight="600")
    return svg


def write(
    parent: ET.Element, x: float, y: float, text: str, size: float, *, anchor: str = "start", weight: str = "400"
) -> None:
    """One line of text whose baseline is at y."""
    where = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{size:g}"}
    how = {"text-anchor": anchor, "font-weight": weight, "fill": DARK}
    ET.SubElement(parent, "text", where | how).text = printable(text)


def write_caption(svg: ET.Element, x: float, y: float, lines: Sequence[str]) -> None:
    """Lines beneath a picture."""
    for order, line in enumerate(lines):
        write(svg, x, y + 18 * order, line, 13)


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


def text_width(lines: Sequence[str], size: float) -> float:
    """About how wide the longest of these lines is drawn."""
    return ceil(max((len(line) for line in lines), default=0) * size * 0.56)


def printable(text: str) -> str:
    """The text with every character that XML cannot hold shown as a replacement character."""
    return "".join(
        letter if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff" else "\ufffd"
        for letter in text
    )
