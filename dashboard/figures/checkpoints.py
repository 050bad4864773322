"""Which heads hold each role in each of several checkpoints: small grids beside each other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from dashboard.figures.appearance import LOOKS
from dashboard.figures.export import NOT_IN_XML
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture

COLUMNS: Final = 4
"""Grids beside each other, so that each can be read on a phone; further ones start a new band."""
HIGH: Final = 96
"""Pixels that a grid of many layers is high."""
HIGHEST_CELL: Final = 9.0
LOWEST_CELL: Final = 3.5
LOWEST_ROW: Final = 28
"""Pixels that a role's name in two lines needs."""
HEADING: Final = 26
"""Pixels above a band of grids, for the names of its checkpoints."""
NUMBERS: Final = 18
"""Pixels above each grid, for its numbers."""
ASIDE: Final = 0.03
"""Part of a grid's place that stays free on its left and on its right."""
INSET: Final = 0.1
"""Part of a cell that stays free on each side."""
READING: Final = (
    "the first is the reference; row: layer (0 on top), column: head",
    "outline: gained; empty with a cross: lost",
)


def role_small_multiples(
    names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> Figure:
    """A small grid of layers and heads for each role and checkpoint, with what is gained and lost since the first.

    Args:
        names: of the checkpoints, the reference first.
        holds: which head holds which role in each.
        roles: names along the role axis, top first.
    """
    wall, names = _Wall(*holds.shape), [shown(name) for name in names]
    frames = _frames(wall, names, holds, roles)
    headings = frames.drop_duplicates("number").assign(kind="name", top=lambda grids: grids["top"] - NUMBERS - 8)
    data = pd.concat([frames, headings, _cells(wall, names, holds, roles)])
    return Figure(_spec(wall, tuple(roles)), data, _description(names, holds, roles))


def shown(name: str, most: int | None = None) -> str:
    """A checkpoint's name as a figure shows it: signs that no picture takes replaced, and a long one by its end."""
    clean = NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", name)
    return clean if most is None or len(clean) <= most else "…" + clean[1 - most :]


Places = Int[np.ndarray, " mark"]
Edges = dict[str, Float[np.ndarray, " mark"]]


@dataclass(frozen=True)
class _Wall:
    """Where everything hangs: across in grids, downwards in pixels."""

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
        """Of one role: its numbers and its grids."""
        return NUMBERS + max(LOWEST_ROW, self.cell * self.n_layers)

    @property
    def band(self) -> float:
        return HEADING + self.row * self.n_roles

    def edges(self, checkpoint: Places, role: Places) -> Edges:
        """Edges of a grid."""
        left = checkpoint % self.columns + ASIDE
        top = checkpoint // self.columns * self.band + HEADING + role * self.row + NUMBERS
        return {"left": left, "right": left + 1 - 2 * ASIDE, "top": top, "bottom": top + self.cell * self.n_layers}

    def cell_edges(self, checkpoint: Places, role: Places, layer: Places, head: Places) -> Edges:
        """Edges of a head's mark in its grid."""
        grid, wide = self.edges(checkpoint, role), (1 - 2 * ASIDE) / self.n_heads
        left, top = grid["left"] + head * wide, grid["top"] + layer * self.cell
        return {
            "left": left + INSET * wide,
            "right": left + (1 - INSET) * wide,
            "top": top + INSET * self.cell,
            "bottom": top + (1 - INSET) * self.cell,
        }


def _frames(
    wall: _Wall, names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> pd.DataFrame:
    number, place = np.indices(holds.shape[:2]).reshape(2, -1)
    compared = {"held": holds, "gained": holds & ~holds[0], "lost": holds[0] & ~holds}
    counts = {what: of_heads.sum(axis=(2, 3)).ravel() for what, of_heads in compared.items()}
    frames = pd.DataFrame({"number": number, "role": np.array(roles)[place], **counts, **wall.edges(number, place)})
    changes = (f" (+{gained} −{lost})" for gained, lost in zip(counts["gained"], counts["lost"], strict=True))
    labels = [f"{held}{change if of else ''}" for held, change, of in zip(counts["held"], changes, number)]
    return frames.assign(kind="frame", label=labels, checkpoint=np.array(names)[number])


def _cells(
    wall: _Wall, names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> pd.DataFrame:
    """The heads that hold a role, or did in the reference."""
    places = np.nonzero(holds | holds[0])
    number, place, at_layer, head = places
    before = np.broadcast_to(holds[0], holds.shape)[places]
    kind = np.where(holds[places], np.where(before, "held", "gained"), "lost")
    return pd.DataFrame(
        {
            **{"kind": kind, "checkpoint": np.array(names)[number], "role": np.array(roles)[place]},
            **{"layer": at_layer, "head": head, **wall.cell_edges(number, place, at_layer, head)},
        }
    )


@cache
def _spec(wall: _Wall, roles: tuple[str, ...]) -> Spec:
    labels = [[LOOKS[role].label, f"({LOOKS[role].letter})"] for role in roles]
    rows = [(band * wall.band + HEADING, role) for band in range(wall.bands) for role in range(wall.n_roles)]
    height = wall.band * wall.bands
    sizes = f"min({wall.cell:g}, width / {wall.columns * wall.n_heads})"
    x = {
        "field": "left",
        "type": "quantitative",
        "scale": {"domain": [0, wall.columns], "nice": False, "zero": True},
        "axis": None,
    }
    y = {
        "field": "top",
        "type": "quantitative",
        "scale": {"domain": [0, height], "nice": False, "zero": True, "reverse": True},
        "axis": {
            "values": [start + role * wall.row + NUMBERS + wall.cell * wall.n_layers / 2 for start, role in rows],
            "labelExpr": f"{json.dumps(labels)}[floor((datum.value % {wall.band:g} - {HEADING}) / {wall.row:g})]",
            **{"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 6},
        },
    }
    area = {"x": x, "x2": {"field": "right"}, "y": y, "y2": {"field": "bottom"}}
    colors = {"domain": list(roles), "range": [LOOKS[role].color for role in roles]}
    color = {"field": "role", "type": "nominal", "scale": colors, "legend": None}
    of_grid = [{"field": "checkpoint", "title": "checkpoint"}, {"field": "role", "title": "role"}]
    of_cell = [
        *of_grid,
        {"field": "layer", "title": "layer"},
        {"field": "head", "title": "head"},
        {"field": "kind", "title": "role is"},
    ]
    counts = [{"field": what, "title": f"heads {what}"} for what in ("held", "gained", "lost")]
    frame = {"type": "rect", "fillOpacity": 0, "stroke": INK, "strokeWidth": 0.7, "strokeOpacity": 0.45}
    ring = {"stroke": INK, "strokeWidth": {"expr": f"{sizes} < 5 ? 1 : 1.6"}}
    cross = {"type": "rule", "color": INK, "strokeWidth": 1}
    text = {"type": "text", "color": INK, "align": "left", "limit": {"expr": f"width / {wall.columns} - 4"}}
    down, up = {**y, "field": "bottom"}, {"field": "top"}
    return picture(
        [
            layer("frame", frame, **area, tooltip=[*of_grid, *counts]),
            layer("held", {"type": "rect", "fillOpacity": 0.7}, **area, color=color, tooltip=of_cell),
            layer("gained", {"type": "rect", **ring}, **area, fill=color, tooltip=of_cell),
            layer("lost", {"type": "rect", "fillOpacity": 0, "strokeWidth": 1}, **area, stroke=color, tooltip=of_cell),
            layer("lost", cross, **area),
            layer("lost", cross, x=x, x2={"field": "right"}, y=down, y2=up),
            layer("frame", {**text, "fontSize": 10, "dy": -6}, x=x, y=y, text={"field": "label"}),
            layer(
                "name",
                # Of a long name the end is kept: it tells the steps of one run apart.
                {**text, "fontSize": 12, "fontWeight": "bold", "dir": "rtl"},
                x=x,
                y=y,
                text={"field": "checkpoint"},
                tooltip=of_grid[:1],
            ),
        ],
        title="Heads that hold each role, by checkpoint",
        reading=READING,
        height=round(height),
    )


def _description(
    names: Sequence[str], holds: Bool[np.ndarray, "checkpoint role layer head"], roles: Sequence[str]
) -> str:
    of_all = counted(holds[0, 0].size, "head")
    parts = []
    for number, (name, now) in enumerate(zip(names, holds, strict=True)):
        gained, lost = (now & ~holds[0]).sum(axis=(1, 2)), (holds[0] & ~now).sum(axis=(1, 2))
        numbers = (
            f"{LOOKS[role].label} {held}" + (f" (+{up} −{down})" if number else "")
            for role, held, up, down in zip(roles, now.sum(axis=(1, 2)), gained, lost, strict=True)
        )
        parts.append(f"{name}: {', '.join(numbers)}")
    return (
        f"Grids of {of_all} in {counted(len(names), 'checkpoint')}: which of them hold each role, and in brackets how "
        f"many gained and lost it against the first. {'; '.join(parts)}."
    )
