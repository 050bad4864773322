"""Which heads hold each role in each of several checkpoints: small multiples."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import role_colors, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, drawable, rows_of, template

COLUMNS: Final = 4
"""Grids per row, so that each is legible on a phone; more grids start a new band."""
HIGH: Final = 96
"""Height in pixels of a grid of many layers."""
HIGHEST_CELL: Final = 9.0
LOWEST_CELL: Final = 3.5
LOWEST_ROW: Final = 28
"""Height in pixels of a role's name in two lines."""
HEADING: Final = 26
"""Pixels above a band of grids, for the names of its checkpoints."""
NUMBERS: Final = 18
"""Pixels above each grid, for its numbers."""
ASIDE: Final = 0.03
"""Free part of a grid's width on each side."""
INSET: Final = 0.1
"""Free part of a cell on each side."""
READING: Final = (
    "the first is the reference; row: layer (0 on top), column: head",
    "outline: gained; empty with a cross: lost",
)


def role_small_multiples(
    names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> Figure:
    """A small grid of layers and heads for each role and checkpoint, with heads gained and lost since the first.

    Args:
        names: of the checkpoints, the reference first.
        holds: which head holds which role in each.
        roles: names along the role axis, top first.
    """
    wall, names = _Wall(*holds.shape), [drawable(name) for name in names]
    frames = _frames(wall, names, holds, roles)
    headings = frames.drop_duplicates("number").assign(kind="name", top=lambda grids: grids["top"] - NUMBERS - 8)
    data = pd.concat([frames, headings, _cells(wall, names, holds, roles)])
    return Figure(_spec(wall, tuple(roles)), data, _description(names, holds, roles))


Places = Int[np.ndarray, " mark"]
Edges = dict[str, Float[np.ndarray, " mark"]]


@dataclass(frozen=True)
class _Wall:
    """Layout of the grids: horizontal unit one grid, vertical unit one pixel."""

    n_checkpoints: int
    n_roles: int
    n_layers: int
    n_heads: int

    @property
    def bands(self) -> int:
        return -(-self.n_checkpoints // COLUMNS)

    @property
    def columns(self) -> int:
        return -(-self.n_checkpoints // self.bands)

    @property
    def cell(self) -> float:
        return min(HIGHEST_CELL, max(LOWEST_CELL, HIGH / self.n_layers))

    @property
    def row(self) -> float:
        """Height of one role: its numbers and its grids."""
        return NUMBERS + max(LOWEST_ROW, self.cell * self.n_layers)

    @property
    def band(self) -> float:
        return HEADING + self.row * self.n_roles

    def edges(self, checkpoint: Places, role: Places) -> Edges:
        left = checkpoint % self.columns + ASIDE
        top = checkpoint // self.columns * self.band + HEADING + role * self.row + NUMBERS
        return {"left": left, "right": left + 1 - 2 * ASIDE, "top": top, "bottom": top + self.cell * self.n_layers}

    def cell_edges(self, checkpoint: Places, role: Places, layer: Places, head: Places) -> Edges:
        """Edges of a head's mark in its grid."""
        grid, width = self.edges(checkpoint, role), (1 - 2 * ASIDE) / self.n_heads
        left, top = grid["left"] + head * width, grid["top"] + layer * self.cell
        return {
            "left": left + INSET * width,
            "right": left + (1 - INSET) * width,
            "top": top + INSET * self.cell,
            "bottom": top + (1 - INSET) * self.cell,
        }


def _frames(
    wall: _Wall, names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> pd.DataFrame:
    number, role_index = np.indices(holds.shape[:2]).reshape(2, -1)
    compared = {"held": holds, "gained": holds & ~holds[0], "lost": holds[0] & ~holds}
    counts = {kind: is_head.sum(axis=(2, 3)).ravel() for kind, is_head in compared.items()}
    frames = pd.DataFrame(
        {"number": number, "role": np.array(roles)[role_index], **counts, **wall.edges(number, role_index)}
    )
    changes = (f" (+{gained} −{lost})" for gained, lost in zip(counts["gained"], counts["lost"], strict=True))
    labels = [f"{held}{change if index else ''}" for held, change, index in zip(counts["held"], changes, number)]
    return frames.assign(kind="frame", label=labels, checkpoint=np.array(names)[number])


def _cells(
    wall: _Wall, names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> pd.DataFrame:
    """The heads that hold a role in a checkpoint or in the reference."""
    indices = np.nonzero(holds | holds[0])
    number, role_index, layer, head = indices
    before = np.broadcast_to(holds[0], holds.shape)[indices]
    kind = np.where(holds[indices], np.where(before, "held", "gained"), "lost")
    return pd.DataFrame(
        {
            "kind": kind,
            "checkpoint": np.array(names)[number],
            "role": np.array(roles)[role_index],
            "layer": layer,
            "head": head,
        }
        | wall.cell_edges(number, role_index, layer, head)
    )


@cache
def _spec(wall: _Wall, roles: tuple[str, ...]) -> Spec:
    frames, *texts = _frame_layers(wall, roles)
    return template(
        alt.layer(frames, *_cell_layers(wall, roles), *texts),
        title="Heads that hold each role, by checkpoint",
        reading=READING,
        height=round(wall.band * wall.bands),
    )


def _across(wall: _Wall) -> "alt.X":
    return alt.X("left:Q", scale=alt.Scale(domain=[0, wall.columns], nice=False, zero=True), axis=None)


def _down(field: str, wall: _Wall, roles: tuple[str, ...]) -> "alt.Y":
    """Pixels from the top, with the names of the roles beside the grids."""
    tops = [band * wall.band + HEADING + role * wall.row for band in range(wall.bands) for role in range(wall.n_roles)]
    names = json.dumps([LOOKS[role].lines for role in roles])
    return alt.Y(
        field,
        type="quantitative",
        scale=alt.Scale(domain=[0, wall.band * wall.bands], nice=False, zero=True, reverse=True),
        axis=alt.Axis(
            values=[top + NUMBERS + wall.cell * wall.n_layers / 2 for top in tops],
            labelExpr=f"{names}[floor((datum.value % {wall.band:g} - {HEADING}) / {wall.row:g})]",
            title=None,
            grid=False,
            ticks=False,
            domain=False,
            labelPadding=6,
        ),
    )


def _frame_layers(wall: _Wall, roles: tuple[str, ...]) -> "list[alt.Chart]":
    """The frame of each grid, the numbers above it, and the names of the checkpoints."""
    x, y = _across(wall), _down("top", wall, roles)
    checkpoint, role = alt.Tooltip("checkpoint:N", title="checkpoint"), alt.Tooltip("role:N", title="role")
    counts = [alt.Tooltip(f"{kind}:N", title=f"heads {kind}") for kind in ("held", "gained", "lost")]
    frame = rows_of("frame").mark_rect(fillOpacity=0, stroke=INK, strokeWidth=0.7, strokeOpacity=0.45)
    room = alt.expr(f"width / {wall.columns} - 4")
    number = rows_of("frame").mark_text(color=INK, align="left", limit=room, fontSize=10, dy=-6)
    # Long names are cut at the start: their ends distinguish the steps of one run.
    name = rows_of("name").mark_text(color=INK, align="left", limit=room, fontSize=12, fontWeight="bold", dir="rtl")
    return [
        frame.encode(x=x, x2=alt.X2("right"), y=y, y2=alt.Y2("bottom"), tooltip=[checkpoint, role, *counts]),
        number.encode(x=x, y=y, text=alt.Text("label:N")),
        name.encode(x=x, y=y, text=alt.Text("checkpoint:N"), tooltip=[checkpoint]),
    ]


def _cell_layers(wall: _Wall, roles: tuple[str, ...]) -> "list[alt.Chart]":
    """Heads that hold a role in both checkpoints, in the later one only, and in the reference only."""
    x, y = _across(wall), _down("top", wall, roles)
    tooltip = tooltips("checkpoint", "role", "layer", "head", ("kind", "role is"))
    side = f"min({wall.cell:g}, width / {wall.columns * wall.n_heads})"
    held = rows_of("held").mark_rect(fillOpacity=0.7)
    gained = rows_of("gained").mark_rect(stroke=INK, strokeWidth=alt.expr(f"{side} < 5 ? 1 : 1.6"))
    lost = rows_of("lost").mark_rect(fillOpacity=0, strokeWidth=1)
    cross = rows_of("lost").mark_rule(color=INK, strokeWidth=1)
    cells = [
        held.encode(color=role_colors(alt.Color, roles), tooltip=tooltip),
        gained.encode(fill=role_colors(alt.Fill, roles), tooltip=tooltip),
        lost.encode(stroke=role_colors(alt.Stroke, roles), tooltip=tooltip),
        cross,
    ]
    return [
        *(cell.encode(x=x, x2=alt.X2("right"), y=y, y2=alt.Y2("bottom")) for cell in cells),
        cross.encode(x=x, x2=alt.X2("right"), y=_down("bottom", wall, roles), y2=alt.Y2("top")),
    ]


def _description(
    names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> str:
    heads = counted(holds[0, 0].size, "head")
    parts = []
    for number, (name, current) in enumerate(zip(names, holds, strict=True)):
        gained, lost = (current & ~holds[0]).sum(axis=(1, 2)), (holds[0] & ~current).sum(axis=(1, 2))
        numbers = (
            f"{LOOKS[role].label} {held}" + (f" (+{n_gained} −{n_lost})" if number else "")
            for role, held, n_gained, n_lost in zip(roles, current.sum(axis=(1, 2)), gained, lost, strict=True)
        )
        parts.append(f"{name}: {', '.join(numbers)}")
    return (
        f"Grids of {heads} in {counted(len(names), 'checkpoint')}: which of them hold each role, and in brackets how "
        f"many gained and lost it compared with the first. {'; '.join(parts)}."
    )
