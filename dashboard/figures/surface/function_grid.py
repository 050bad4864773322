"""The functions of every head: a row for each layer, its heads by index or in a given order, coloured by function."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.dashboard.figures.appearance import RoleLook
from attention_sieve.dashboard.figures.axes import LAYER_AXIS, tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    counted,
    head_choice,
    rows_of,
    template,
)

FUNCTIONS: Final[dict[str, RoleLook]] = {
    look.name: look
    for look in (
        RoleLook("positional", "P", "#7D55B5", "#FFFFFF", "positional"),
        RoleLook("syntactic", "S", "#1B7A4B", "#FFFFFF", "syntactic"),
        RoleLook("argmax", "D", "#1F66A8", "#FFFFFF", "syntactic by argmax"),
        RoleLook("rare", "R", "#E69F00", "#000000", "rare tokens"),
    )
}
"""Colours as in the paper's figure; orange also differs from the others in lightness."""
USUAL: Final = ("positional", "syntactic", "rare")
"""Default kinds of the grid."""
FEW_LAYERS: Final = 16
ROWS: Final = (34, 24)
"""Heights of a layer's row in pixels: for few layers, and for many."""
LETTER, NAME = 6.3, 26
"""Width in pixels of a letter of a label, and of a cell with the number of its head."""
GAP: Final = 0.04
SIDE_GAP: Final = 0.03
"""Free part of a cell above and below, and on each side."""
NAMED: Final = 24
"""Maximum number of heads per function in the description."""
NARROWEST: Final = 8
"""Minimum width in pixels of a part of a cell for its letter."""


@dataclass(frozen=True)
class Function:
    kind: str
    """One of FUNCTIONS."""
    label: str
    """Detail, such as an offset or relations; may be empty."""
    evidence: str
    """For the tooltip."""
    short: str = ""
    """Label for narrow cells; may be empty."""


def function_grid(
    functions: Mapping[Head, Sequence[Function]],
    order: Float[np.ndarray, "layer head"],
    order_name: str,
    chosen: Sequence[Head] = (),
    kinds: tuple[str, ...] = USUAL,
    *,
    is_ordered: bool = False,
) -> Figure:
    """Rows of heads with their functions.

    Args:
        functions: of the heads that have any; a head with several is split.
        order: a number of each head; NaN comes last if heads are ordered by it.
        kinds: keys of FUNCTIONS in the grid.
        is_ordered: whether the heads of a layer are in that order, largest first; otherwise each is in its column.

    Source: Voita et al. 2019, Figure 1 (c).
    """
    n_layers, n_heads = order.shape
    columns = np.broadcast_to(np.arange(n_heads), order.shape)
    if is_ordered:
        columns = np.argsort(np.argsort(-order, axis=1, kind="stable"), axis=1, kind="stable")
    cells, parts = list[dict[str, object]](), list[dict[str, object]]()
    for (layer, head), column in np.ndenumerate(columns):
        head_functions = functions.get((layer, head), ())
        cell = _cell((layer, head), int(column), float(order[layer, head]), head_functions)
        cells.append(cell)
        parts += [_part(cell, number, head_functions) for number in range(len(head_functions))]
    table = pd.DataFrame(cells + parts)
    frames = table[[row.kind == "cell" and (row.layer, row.head) in chosen for row in table.itertuples()]]
    spec = _spec(_Grid(n_layers, n_heads, order_name, is_ordered), kinds)
    description = _description(functions, n_layers * n_heads, order_name if is_ordered else "number", kinds)
    return Figure(spec, pd.concat([table, frames.assign(kind="chosen")]), description)


def _cell(head: Head, place: int, order: float, functions: Sequence[Function]) -> dict[str, object]:
    """The cell of a head, 1 wide and 1 high including gaps."""
    return {
        "layer": head[0],
        "head": head[1],
        "name": head_name(*head),
        "number": f"H{head[1]}",
        "order": order,
        "top": head[0] + GAP,
        "bottom": head[0] + 1 - GAP,
        "function": functions[0].kind if functions else None,
        "does": "; ".join(f"{_named(function)}: {function.evidence}" for function in functions) or "none of these",
        "kind": "cell",
        "left": place + SIDE_GAP,
        "right": place + 1 - SIDE_GAP,
    }


def _part(cell: Mapping[str, Any], number: int, functions: Sequence[Function]) -> dict[str, object]:
    width = (1 - 2 * SIDE_GAP) / len(functions)
    left = cell["left"] + number * width
    look = FUNCTIONS[functions[number].kind]
    return {
        **cell,
        "kind": "part",
        "left": left,
        "right": left + width,
        "function": functions[number].kind,
        "middle": left + width / 2,
        "center": cell["layer"] + 0.5,
        "wide": width,
        "letter": look.letter,
        "label": f"{look.letter} {functions[number].label}".strip(),
        "short": f"{look.letter} {functions[number].short}".strip(),
    }


def _named(function: Function) -> str:
    return f"{FUNCTIONS[function.kind].label} {function.label}".strip()


def _description(
    functions: Mapping[Head, Sequence[Function]], n_all: int, order_name: str, kinds: Sequence[str]
) -> str:
    parts = []
    for kind in kinds:
        look = FUNCTIONS[kind]
        heads = {
            head: [function.label for function in head_functions if function.kind == kind]
            for head, head_functions in sorted(functions.items())
            if any(function.kind == kind for function in head_functions)
        }
        names = [head_name(*head) + (f" ({labels[0]})" if labels[0] else "") for head, labels in heads.items()]
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        parts.append(
            f"{look.label} ({look.letter}) {len(heads)}" + (": " if names else "") + ", ".join(names[:NAMED] + more)
        )
    n_any = sum(bool(head_functions) for head_functions in functions.values())
    return (
        f"Rows: layers; columns: heads by {order_name}. Of {counted(n_all, 'head')} {n_any} have a function. "
        f"{'; '.join(parts)}."
    )


@dataclass(frozen=True)
class _Grid:
    n_layers: int
    n_heads: int
    order_name: str
    is_ordered: bool

    @property
    def row(self) -> int:
        return ROWS[self.n_layers > FEW_LAYERS]

    @property
    def has_numbers(self) -> bool:
        """Whether each cell shows the number of its head: if columns do not, and rows are high enough."""
        return self.is_ordered and self.row == ROWS[0]

    def across(self, field: str) -> "alt.X":
        return alt.X(
            field,
            type="quantitative",
            # Not "head": for screen readers, that is the title of the name of a head.
            title="heads of the layer" + (f" by {self.order_name}, largest first" if self.is_ordered else ""),
            scale=alt.Scale(domain=[0, self.n_heads], nice=False, zero=True),
            axis=alt.Axis(
                values=[place + 0.5 for place in range(self.n_heads)],
                labels=not self.is_ordered,
                labelExpr="floor(datum.value)",
                labelOverlap="greedy",
                ticks=False,
                grid=False,
                domain=False,
            ),
        )

    def down(self, field: str) -> "alt.Y":
        return alt.Y(
            field,
            type="quantitative",
            title=LAYER_AXIS,
            scale=alt.Scale(domain=[0, self.n_layers], nice=False, zero=True, reverse=True),
            axis=alt.Axis(
                values=[place + 0.5 for place in range(self.n_layers)],
                labelExpr="floor(datum.value)",
                ticks=False,
                grid=False,
                domain=False,
                labelOverlap=False,
            ),
        )


@lru_cache(maxsize=16)
def _spec(grid: _Grid, kinds: tuple[str, ...]) -> Spec:
    cells, parts, frames = _boxes(grid, kinds)
    texts = [_labels(grid)]
    if grid.has_numbers:
        fits = alt.expr(f"width / {grid.n_heads} < {NAME} ? 0 : 1")
        numbers = rows_of("cell").mark_text(fontSize=9, align="left", baseline="top", dx=2, dy=2, opacity=fits)
        texts.append(numbers.encode(x=grid.across("left"), y=grid.down("top"), color=_ink(), text=alt.Text("number:N")))
    return template(
        alt.layer(cells, parts, *texts, frames),
        title="Heads by function",
        reading=("framed: chosen; a head's tooltip explains its letters",),
        height=grid.row * grid.n_layers,
    )


def _boxes(grid: _Grid, kinds: Sequence[str]) -> "list[alt.Chart]":
    tooltip = tooltips(("name", "head"), ("order", grid.order_name, ".3~f"), "does")
    cells = rows_of("cell").mark_rect(fill=INK, fillOpacity=0.06, stroke=INK, strokeOpacity=0.45, cursor="pointer")
    labels = {name: look.lettered for name, look in FUNCTIONS.items()}
    legend = alt.Legend(
        orient="bottom",
        columns=2,
        title=None,
        symbolType="square",
        symbolSize=120,
        symbolOpacity=1,
        labelExpr=f"{json.dumps(labels)}[datum.label]",
    )
    colors = alt.Scale(domain=list(kinds), range=[FUNCTIONS[kind].color for kind in kinds])
    parts = rows_of("part").mark_rect(cursor="pointer")
    boxes = [
        cells.encode(tooltip=tooltip).add_params(head_choice()),
        parts.encode(fill=alt.Fill("function:N", scale=colors, legend=legend), tooltip=tooltip),
        rows_of("chosen").mark_rect(fill=None, stroke=INK, strokeWidth=2.5),
    ]
    x, x2, y, y2 = grid.across("left"), alt.X2("right"), grid.down("top"), alt.Y2("bottom")
    return [box.encode(x=x, x2=x2, y=y, y2=y2) for box in boxes]


def _labels(grid: _Grid) -> "alt.Chart":
    """The label of each part, shortened to fit."""
    room = f"(datum.wide * width / {grid.n_heads})"

    def fits(field: str) -> str:
        return f"{room} > {LETTER} * length(datum.{field}) + 6"

    labels = rows_of("part").mark_text(
        fontSize=11,
        baseline="middle",
        # Below the number of the head, if shown.
        dy=5 if grid.has_numbers else 0,
        text=alt.expr(f"{fits('label')} ? datum.label : {fits('short')} ? datum.short : datum.letter"),
        opacity=alt.expr(f"{room} < {NARROWEST} ? 0 : 1"),
    )
    return labels.encode(x=grid.across("middle"), y=grid.down("center"), color=_ink())


def _ink() -> Any:
    """The colour of text on the fill of a function, or without a fill."""
    ink = alt.when("!isValid(datum.function)").then(alt.value(INK))
    for kind, look in FUNCTIONS.items():
        ink = ink.when(f"datum.function == '{kind}'").then(alt.value(look.ink))
    return ink.otherwise(alt.value(INK))
