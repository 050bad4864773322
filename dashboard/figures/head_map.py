"""One number per head on a colour scale, for the page and the file."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, log10
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.dashboard.figures.appearance import (
    AMOUNT,
    LESS,
    MORE,
    MUTED,
    MUTED_PART,
    head_color,
    ink_on,
    mixed,
)
from attention_sieve.dashboard.figures.figure import SHARED, interval
from attention_sieve.dashboard.figures.sheet import (
    DARK,
    SHEET,
    Block,
    Box,
    Size,
    TextStyle,
    legend,
    room_for,
    sheet,
    text_width,
    write,
)

MINUS: Final = "\N{MINUS SIGN}"
NOT_APPLICABLE: Final = "not applicable"
ROUND_NUMBERS: Final = (1, 1.5, 2, 3, 4, 5, 7.5, 10)

Detail = tuple[str, Sequence[Sequence[str]] | Float[np.ndarray, "layer head"]]
"""Name of a number, and its value for every head, as text or to be formatted with three digits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadMap:
    """One number per head.

    Raises: ValueError for a bound or values that the scale has no place for.
    """

    title: str
    """What the numbers are, before the scale on the page."""
    label: str
    """What the map shows, with its checkpoint: for screen readers, and the title of the file."""
    values: Float[np.ndarray, "layer head"]
    """NaN where the number does not apply."""
    bound: float
    """End of the scale; maps with one bound can be compared. A value beyond it has the colour of the end."""
    signed: bool = False
    """Whether the scale runs from -bound over 0 to bound, or from 0 to bound."""
    muted: bool = False
    """Whether numbers below 0 are a faint grey, because only those above it are of interest."""
    low_label: str = ""
    high_label: str = ""
    marked: Bool[np.ndarray, "layer head"] | None = None
    mark: str = ""
    """What the dot in the corner of a marked head means, such as "differs significantly"."""
    cells: Sequence[Sequence[str]] | None = None
    """Text of each cell; None for its number."""
    details: Sequence[Detail] = ()
    """Lines of the tooltip."""
    n_shared: int = 1
    """How many neighbouring heads share keys and values; these are bracketed."""
    layers_across: bool = False
    """Whether columns are layers and rows heads instead."""

    def __post_init__(self) -> None:
        if not 0 < self.bound < np.inf:
            raise ValueError(f"The scale's bound must be above 0 and finite, got {self.bound}.")
        if np.isinf(self.values).any():
            n_infinite = int(np.isinf(self.values).sum())
            raise ValueError(f"{n_infinite} values are infinite; give NaN where nothing applies.")
        if not self.signed and (self.values < 0).any():
            raise ValueError(f"A scale from 0 has no place for {np.nanmin(self.values):.3g}; use the signed scale.")

    def written_in(self, layer: int, head: int) -> str:
        return self.written(float(self.values[layer, head])) if self.cells is None else self.cells[layer][head]

    @property
    def colors(self) -> tuple[str | None, str]:
        """Colours of both ends of the scale; no lower one where it begins at 0."""
        return ((MUTED if self.muted else LESS), MORE) if self.signed else (None, AMOUNT)

    @property
    def ends(self) -> tuple[str, str]:
        """The numbers at both ends of the scale, with ≤ or ≥ if some value is beyond."""
        bound = f"{self.bound:.3g}"
        high = ("≥ " if (self.values > self.bound).any() else "") + ("+" if self.signed else "") + bound
        return ("≤ " if (self.values < -self.bound).any() else "") + MINUS + bound if self.signed else "0", high

    def written(self, value: float) -> str:
        return short_number(value, self.bound, self.signed)


def round_bound(largest: float) -> float:
    """A round number at or above the largest of some amounts, as the end of a scale that several maps share.

    Returns: 1 if the largest is 0 or NaN, since a scale needs a positive bound.
    """
    if not largest > 0:
        return 1.0
    size = 10.0 ** np.floor(log10(largest))
    return float(next(step * size for step in ROUND_NUMBERS if step * size >= largest * (1 - 1e-9)))


def texts_of(write: Callable[..., str], *values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    """A text for every head, written from one or more numbers of it, for the tooltip."""
    return [[write(*of_head) for of_head in zip(*of_layer)] for of_layer in zip(*(each.tolist() for each in values))]


def intervals(
    low: Float[np.ndarray, "layer head"], high: Float[np.ndarray, "layer head"], number: str, missing: str = ""
) -> list[list[str]]:
    """The interval of every head in a number format, for the tooltip; `missing` where it is NaN."""
    return texts_of(partial(interval, number=number, missing=missing), low, high)


def percents(shares: Float[np.ndarray, "layer head"], missing: str = NOT_APPLICABLE) -> list[list[str]]:
    """Shares from 0 to 1 of every head as text for the tooltip; `missing` where they are NaN."""
    return texts_of(lambda share: missing if isnan(share) else f"{share:.1%}", shares)


def short_number(value: float, bound: float, signed: bool) -> str:
    """At most three characters and, for differences that do not round to 0, a sign: `+0.8`, `−.04`, `12` or `0`."""
    if isnan(value):
        return ""
    decimals = 0 if bound >= 10 else 1 if bound >= 1 else 2 if bound >= 0.1 else 3
    size = f"{abs(value):.{decimals}f}"
    if float(size) == 0:
        return "0"
    if bound < 1:
        size = size.removeprefix("0")
    return f"{(MINUS if value < 0 else '+') if signed else ''}{size}"


CELL: Final = 44
STEP: Final = 48
LEFT: Final = 56
ABOVE: Final = 40
"""Pixels above the cells for the numbers of the heads."""
LETTERS: Final = 13
"""Size of the letters of roles, in pixels."""
SIGN: Final = 18
"""Side of a sign in a legend."""
FAINT: Final = "#C9C9C9"
RAMP: Final = 120
DOT: Final = 3
"""Radius of the dot that marks a head, in pixels."""
_HATCHED: Final = {"fill": "url(#hatch)"}
_STEPS: Final = 24


@dataclass(frozen=True)
class HeadMatrix:
    """Where the cells of all heads are drawn: layers down and heads across, or the other way round."""

    n_layers: int
    n_heads: int
    n_shared: int = 1
    """How many neighbouring heads share keys and values; these are bracketed."""
    layers_across: bool = False

    @property
    def width(self) -> float:
        return LEFT + (self.n_layers if self.layers_across else self.n_heads) * STEP

    @property
    def height(self) -> float:
        return ABOVE + (self.n_heads if self.layers_across else self.n_layers) * STEP

    def cell(self, layer: int, head: int) -> Box:
        column, row = (layer, head) if self.layers_across else (head, layer)
        return Box(LEFT + column * STEP, ABOVE + row * STEP, CELL, CELL, 5)

    def axes(self, on: Size = SHEET) -> ET.Element:
        """The numbers of layers and heads, larger where the matrix has to be scaled down to fit, and the brackets."""
        group = ET.Element("g")
        across, down = ("Layer", "Head") if self.layers_across else ("Head", "Layer")
        size = min(28.0, 12 * max(1.0, self.width / on.room))
        write(group, 0, ABOVE - 8, down, TextStyle(min(size, 20)))
        write(group, (LEFT + self.width) / 2, ABOVE - 14 - size, across, TextStyle(size, "middle"))
        for column in range(round(self.width - LEFT) // STEP):
            write(group, LEFT + column * STEP + CELL / 2, ABOVE - 8, str(column), TextStyle(size, "middle"))
        for row in range(round(self.height - ABOVE) // STEP):
            write(group, LEFT - 10, ABOVE + row * STEP + CELL / 2 + size / 3, str(row), TextStyle(size, "end"))
        for first in range(0, self.n_heads, self.n_shared) if self.n_shared > 1 else ():
            length = self.n_shared * STEP - STEP + CELL
            if self.layers_across:
                bracket(group, f"M{LEFT - 2} {ABOVE + first * STEP}h-4v{length}h4")
            else:
                bracket(group, f"M{LEFT + first * STEP} {ABOVE - 2}v-4h{length}v4")
        return group


def bracket(parent: ET.Element, path: str) -> None:
    """A bracket beside heads that share keys and values."""
    ET.SubElement(parent, "path", {"d": path, "fill": "none", "stroke": DARK, "stroke-width": "1.5"})


def bracket_entry() -> tuple[ET.Element, str]:
    sign = ET.Element("g")
    bracket(sign, f"M0 {SIGN / 2 + 2:g}v-4h{SIGN}v4")
    return sign, SHARED


def head_map_svg(
    head_map: HeadMap,
    *,
    title: str = "",
    caption: Sequence[str] = (),
    chosen: Collection[tuple[int, int]] = (),
    size: Size = SHEET,
) -> str:
    """The map on white, below its label if there is no title, with the chosen heads framed."""
    layers, heads = head_map.values.shape
    matrix = HeadMatrix(layers, heads, head_map.n_shared, head_map.layers_across)
    group, letters = matrix.axes(size), size.legible(LETTERS, matrix.width)
    for layer, head in np.ndindex(layers, heads):
        _cell(group, matrix.cell(layer, head), head_map, (layer, head), letters)
    for order, (layer, head) in enumerate(chosen):
        matrix.cell(layer, head).inner(-2, 4).frame(group, head_color(order) if len(chosen) > 1 else DARK, 3)
    marks = [("mark", head_map.mark)] if head_map.marked is not None else []
    marks += [("hatch", NOT_APPLICABLE)] if np.isnan(head_map.values).any() else []
    blocks = [_ramp(head_map), Block(group, matrix.width, matrix.height)]
    entries = [(_sign(mark), text) for mark, text in marks] + ([bracket_entry()] if head_map.n_shared > 1 else [])
    if entries:
        blocks.insert(1, legend(entries, room_for(matrix.width, size)))
    _hatching(group)
    return sheet(title or head_map.label, blocks, caption=caption, size=size)


def _hatching(svg: ET.Element) -> None:
    size = {"width": "7", "height": "7", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = ET.SubElement(ET.SubElement(svg, "defs"), "pattern", {"id": "hatch", **size})
    ET.SubElement(pattern, "line", {"x1": "0", "y1": "0", "x2": "0", "y2": "7", "stroke": "#8A8A8A"})


def _ramp(head_map: HeadMap) -> Block:
    group, (low, high) = ET.Element("g"), head_map.ends
    low, high = f"{head_map.low_label} {low}".strip(), f"{high} {head_map.high_label}".strip()
    left, right = (text_width(end, 12) + 8 for end in (low, high))
    width = left + RAMP + right
    write(group, 0, 12, low, TextStyle(12))
    for step in range(_STEPS):
        part = (step + 0.5) / _STEPS
        color = _color(2 * part - 1 if head_map.signed else part, head_map)
        Box(left + step * RAMP / _STEPS, 0, RAMP / _STEPS + 0.3, 16).fill(group, color)
    Box(left, 0, RAMP, 16).frame(group, "#767676", 1)
    write(group, left + RAMP + 8, 12, high, TextStyle(12))
    return Block(group, width, 16)


def _sign(mark: str) -> ET.Element:
    sign, box = ET.Element("g"), Box(0, 0, SIGN, SIGN, 5)
    if mark == "mark":
        _dot(sign, box, DARK)
    else:
        box.draw(sign, _HATCHED)
    box.inner(0.5, 4).frame(sign, FAINT, 1)
    return sign


def _dot(svg: ET.Element, box: Box, color: str) -> None:
    """The mark of a head, in the upper right corner of its cell: an outline means that a head is chosen."""
    center = {"cx": f"{box.x + box.width - 2 * DOT:g}", "cy": f"{box.y + 2 * DOT:g}", "r": f"{DOT:g}"}
    ET.SubElement(svg, "circle", {**center, "fill": color})


def _cell(svg: ET.Element, box: Box, head_map: HeadMap, head: tuple[int, int], letters: float) -> None:
    value = float(head_map.values[head])
    if isnan(value):
        box.draw(svg, _HATCHED)
    else:
        color = _color(max(-1.0, min(value / head_map.bound, 1.0)), head_map)
        box.fill(svg, color)
        if head_map.marked is not None and head_map.marked[head]:
            _dot(svg, box, ink_on(color))
        written = head_map.written_in(*head)
        widest = (box.width - 2) / max(text_width(written, 1), 1)
        box.write(svg, written, max(LETTERS, min(letters, widest)), ink_on(color))
    box.inner(0.5, 4).frame(svg, FAINT, 1)


def _color(part: float, head_map: HeadMap) -> str:
    """The scale's colour at a part of its bound, from -1 or 0 to 1."""
    less, more = head_map.colors
    if part < 0 and less:
        return mixed(less, -part * (MUTED_PART if head_map.muted else 1))
    return mixed(more, abs(part))
