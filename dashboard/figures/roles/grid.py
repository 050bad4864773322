"""The roles of every head as a grid, for the page and as an SVG file."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil, isnan, sqrt
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.hypotheses import CERTAIN
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS, RoleLook, head_color
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.figures.head_map import CELL, LETTERS, SIGN, HeadMatrix, bracket_entry
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

STABLE: Final = "share of bootstrap resamples of the texts in which the head has the same label: the role, or no role"
FAINT: Final = f"faint: stays in fewer than {percent(CERTAIN)} of resamples"


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleGrid:
    """Rows are layers, columns heads; a cell has one corner per shown role."""

    label: str
    """Description of the grid with its checkpoint, for screen readers and as the title of the file."""
    scores: Float[np.ndarray, "role layer head"]
    """Mean scores; NaN where a role is not applicable, and for heads that were removed from the checkpoint."""
    holds: Bool[np.ndarray, "role layer head"]
    tau: float
    """Threshold on the mean score; the tint of a corner is its score relative to it."""
    scale: Scale = "score"
    roles: Sequence[str] = ROLES
    """Names of the role axis, in order; none where only patterns are shown, whose cells `sentences` describe."""
    shown: Sequence[str] | None = None
    """Those with a corner in each cell; None for all."""
    title: str = ""
    """Of its files, before the checkpoint and the texts; the number of heads by default."""
    highlight: Collection[Head] | None = None
    """Heads that stay bright on the page while the others are dimmed; None keeps all bright."""
    off: Collection[Head] = ()
    """Heads that are switched off; their cells are struck through."""
    held_before: Bool[np.ndarray, "role layer head"] | None = None
    """Which heads hold which role in the reference of a comparison; corners then show gained, kept and lost roles."""
    far: float | None = None
    """On the page, how far from the reference to the compared checkpoint, 0 to 1: lost roles fade, gained ones appear.
    None shows all alike."""
    before: str = "before"
    """Name of the reference in the legend: "against ..."."""
    filled: str = ""
    """Explanation of a filled corner, a sentence for the tooltip."""
    uniform: Float[np.ndarray, "role layer"] | None = None
    """Score of uniform attention; for the tooltip, with `greatest`."""
    greatest: Float[np.ndarray, "role layer"] | None = None
    """Score of the best possible attention; None leaves both columns out."""
    positional: Bool[np.ndarray, "role layer head"] | None = None
    """Held syntactic roles that do not beat other words at the same distance; marked in the tooltip."""
    p_values: Float[np.ndarray, "role layer head"] | None = None
    """None leaves the column out."""
    p_name: str = "p"
    """Header of that column, such as "p (Holm)"."""
    odds: bool = False
    """Whether that column holds natural logarithms of evidence in place of p-values."""
    stability: Float[np.ndarray, "role layer head"] | None = None
    """Share of bootstrap resamples in which each label stays; letters under CERTAIN are faint. None leaves it out."""
    sentences: Sequence[Sequence[str]] | None = None
    """Description of each head, by layer: for the tooltip and the file; None leaves it out."""
    n_shared: int = 1
    """How many neighbouring heads share keys and values; these are bracketed."""
    layers_across: bool = False
    """Whether columns are layers and rows heads instead."""

    @property
    def corners(self) -> list[int]:
        return [self.roles.index(role) for role in (self.roles if self.shown is None else self.shown)]

    @property
    def removed(self) -> Bool[np.ndarray, "layer head"]:
        """Heads that were removed from the checkpoint: they have no score, while other heads have."""
        has_score = ~np.isnan(self.scores).all(axis=0)
        return ~has_score & has_score.any()

    def without_roles(self, sentence: str) -> "RoleGrid":
        """The same heads, of which nothing is shown but what their patterns show; each is described by a sentence."""
        n_layers, n_heads = self.scores.shape[1:]
        none = np.empty((0, n_layers, n_heads))
        return replace(
            self,
            roles=(),
            shown=None,
            scores=none,
            holds=none.astype(bool),
            held_before=None,
            uniform=None,
            greatest=None,
            p_values=None,
            stability=None,
            sentences=[[sentence] * n_heads] * n_layers,
        )

    @property
    def faint(self) -> Bool[np.ndarray, "role layer head"]:
        return np.zeros(self.holds.shape, bool) if self.stability is None else self.stability < CERTAIN


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
