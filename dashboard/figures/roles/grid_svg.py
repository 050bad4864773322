"""The grid of roles as an SVG file for download."""

from collections.abc import Collection, Sequence
from math import ceil, isnan, sqrt
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.dashboard.figures.appearance import LOOKS, RoleLook, head_color
from attention_sieve.dashboard.figures.head_map import CELL, LETTERS, SIGN, HeadMatrix, bracket_entry
from attention_sieve.dashboard.figures.roles.grid import FAINT, RoleGrid
from attention_sieve.dashboard.figures.scales import WORDS
from attention_sieve.dashboard.figures.sheet import (
    DARK,
    SHEET,
    Block,
    Box,
    Size,
    legend,
    room_for,
    sheet,
)

_CELL: Final = Box(0, 0, CELL, CELL)
_TINT: Final = 0.3
_OPACITY: Final = {"held": 1.0, "gained": 1.0, "kept": 0.3, "lost": 0.1}
"""Of the colour of a role in a corner, by the state of the role."""
_STROKE: Final = {"fill": "none", "stroke": DARK, "stroke-width": "2"}


def grid_svg(
    grid: RoleGrid,
    *,
    title: str = "",
    caption: Sequence[str] = (),
    chosen: Collection[tuple[int, int]] = (),
    size: Size = SHEET,
) -> str:
    """The grid on white, below its label if there is no title, with the chosen heads framed, and a legend."""
    states = _states(grid)
    _, layers, heads = grid.scores.shape
    matrix = HeadMatrix(layers, heads, grid.n_shared, grid.layers_across)
    group, letters = matrix.axes(size), size.legible(LETTERS, matrix.width)
    clip = ET.SubElement(ET.SubElement(group, "defs"), "clipPath", id="cell")
    ET.SubElement(clip, "rect", width=str(CELL), height=str(CELL), rx="5")
    for layer, head in np.ndindex(layers, heads):
        box = matrix.cell(layer, head)
        cell = ET.SubElement(group, "g", transform=f"translate({box.x} {box.y})")
        cell.set("clip-path", "url(#cell)")
        if grid.removed[layer, head]:
            _hole(cell)
            continue
        if grid.sentences is not None:
            ET.SubElement(cell, "title").text = f"{head_name(layer, head)}: {grid.sentences[layer][head]}"
        _corners(cell, grid, states, (layer, head), letters)
        if (layer, head) in grid.off:
            _strike(cell)
    for order, (layer, head) in enumerate(chosen):
        color = head_color(order) if len(chosen) > 1 else DARK
        matrix.cell(layer, head).inner(-2, 5).frame(group, color, 3)
    room = room_for(matrix.width, size)
    blocks = [legend(_entries(grid, states), room), Block(group, matrix.width, matrix.height)]
    return sheet(title or grid.label, blocks, caption=caption, size=size)


def _entries(grid: RoleGrid, states: np.ndarray) -> list[tuple[ET.Element | None, str]]:
    looks = [LOOKS[grid.roles[role]] for role in grid.corners]
    entries: list[tuple[ET.Element | None, str]] = []
    for look in looks:
        sign = ET.Element("g")
        Box(0, 0, SIGN, SIGN, 4).show(sign, look)
        entries.append((sign, look.label))
    for state in ("gained", "kept", "lost") if grid.held_before is not None else ():
        sign = ET.Element("g")
        _corner(sign, Box(0, 0, SIGN, SIGN), RoleLook(state, "", "#7A7A7A", DARK, state), state)
        entries.append((sign, state))
    tinted = ET.Element("g")
    for step in range(3):
        Box(step * SIGN / 3, 0, SIGN / 3, SIGN).fill(tinted, looks[0].color, _TINT * (step + 1) / 3)
    noun = WORDS[grid.scale].noun
    entries.append((tinted, f"tint: not that role; the stronger, the closer the {noun} is to tau {grid.tau:g}"))
    if grid.off:
        sign = ET.Element("g", transform=f"scale({SIGN / CELL:.3g})")
        _CELL.inner(1, 5).frame(sign, "#8A8A8A", 2)
        _strike(sign)
        entries.append((sign, "switched off"))
    if grid.removed.any():
        sign = ET.Element("g", transform=f"scale({SIGN / CELL:.3g})")
        _hole(sign)
        entries.append((sign, "not in this checkpoint"))
    if grid.n_shared > 1:
        entries.append(bracket_entry())
    if grid.filled:
        entries.append((None, grid.filled))
    if grid.stability is not None:
        entries.append((None, FAINT.capitalize()))
    return entries


def _hole(cell: ET.Element) -> None:
    ET.SubElement(cell, "title").text = "not in this checkpoint"
    _CELL.inner(1, 5).frame(cell, "#8A8A8A", 1)
    cell[-1].set("stroke-dasharray", "4 3")


def _states(grid: RoleGrid) -> np.ndarray:
    """State of each role for each head: "" or "held"; in a comparison "", "gained", "kept" or "lost"."""
    if grid.held_before is None:
        return np.where(grid.holds, "held", "")
    return np.array(["", "gained", "lost", "kept"])[grid.holds + 2 * grid.held_before]


def _corners(cell: ET.Element, grid: RoleGrid, states: np.ndarray, head: Head, letters: float) -> None:
    corners = grid.corners
    columns = ceil(sqrt(len(corners)))
    wide, high = CELL / columns, CELL / ceil(len(corners) / columns)
    for position, role in enumerate(corners):
        look, score, state = LOOKS[grid.roles[role]], float(grid.scores[role, *head]), states[role, *head]
        box = Box(position % columns * wide, position // columns * high, wide, high)
        if state:
            _corner(cell, box, look, str(state), letters, faint=bool(grid.faint[role, *head]))
        elif not isnan(score):
            tint = _TINT * min(max(score / grid.tau, 0.0), 1.0)
            box.fill(cell, look.color, tint)
    _CELL.inner(0.5, 5).frame(cell, "#C9C9C9", 1)


def _corner(
    parent: ET.Element, box: Box, look: RoleLook, state: str, letters: float = LETTERS, *, faint: bool = False
) -> None:
    """One role of a head: full where held, framed where gained, pale where kept, hatched and struck where lost.

    If faint, its letter and colour have half the opacity.
    """
    if faint:
        parent = ET.SubElement(parent, "g", {"opacity": "0.5", "class": "faint"})
    x, y, wide, high = box.x, box.y, box.width, box.height
    size, opacity = min(letters, wide * min(0.68 * letters / LETTERS, 0.9)), _OPACITY[state]
    box.fill(parent, look.color, opacity)
    box.write(parent, look.letter, size, look.ink if opacity == 1 else DARK)
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
    """A line from corner to corner, light around dark so that it is visible on every colour."""
    for color, stroke in (("#FFFFFF", 5), (DARK, 2.5)):
        line = {"x1": "0", "y1": "0", "x2": f"{CELL}", "y2": f"{CELL}", "stroke": color, "stroke-width": f"{stroke}"}
        ET.SubElement(cell, "line", line)
