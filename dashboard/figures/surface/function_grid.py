"""The functions of every head: a row for each layer, its heads by number or in some order, coloured by what they do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.attention.settings import Head, head_name
from dashboard.figures.appearance import Look
from dashboard.figures.axes import LAYER_AXIS
from dashboard.figures.figure import INK, Figure, Spec, counted, of_kind, template
from dashboard.figures.heads import head_choice

if TYPE_CHECKING:
    import altair as alt

FUNCTIONS: Final[dict[str, Look]] = {
    look.name: look
    for look in (
        Look("positional", "P", "#7D55B5", "#FFFFFF", "positional"),
        Look("syntactic", "S", "#1B7A4B", "#FFFFFF", "syntactic"),
        Look("argmax", "D", "#1F66A8", "#FFFFFF", "syntactic by argmax"),
        Look("rare", "R", "#E69F00", "#000000", "rare tokens"),
    )
}
"""Colours after the paper's figure; orange differs from the others in lightness too."""
USUAL: Final = ("positional", "syntactic", "rare")
"""Kinds that the grid has unless others are named."""
FEW_LAYERS: Final = 16
ROWS: Final = (34, 24)
"""Heights of a layer's row in pixels: where there are few layers, and where there are many."""
LETTER, NAME = 6.3, 26
"""Pixels that a letter of a label takes, and that a cell needs for the number of its head."""
GAP: Final = 0.04
SIDE_GAP: Final = 0.03
"""Part of a cell that stays free above and below it, and on each side."""
NAMED: Final = 24
"""Heads of one function that the description names."""
NARROWEST: Final = 8
"""Pixels that a part of a cell needs for its letter."""


@dataclass(frozen=True)
class Function:
    """One thing that a head does."""

    kind: str
    """One of FUNCTIONS."""
    label: str
    """Which of its kind: an offset, relations; may be empty."""
    evidence: str
    """By what, as a tooltip says it."""
    short: str = ""
    """The label where a cell has little room; may be empty."""


def function_grid(
    functions: Mapping[Head, Sequence[Function]],
    order: Float[np.ndarray, "layer head"],
    order_name: str,
    chosen: Sequence[Head] = (),
    kinds: tuple[str, ...] = USUAL,
    *,
    is_ordered: bool = False,
) -> Figure:
    """Rows of heads, each with what it does.

    Args:
        functions: of the heads that have any; a head with several is split.
        order: a number of each head; NaN comes last where heads are ordered by it.
        order_name: what that number is.
        chosen: heads that are framed.
        kinds: of FUNCTIONS, those that were looked for.
        is_ordered: whether the heads of a layer stand in that order, largest first; otherwise each in its column.

    Source: Voita et al. 2019, Figure 1 (c).
    """
    n_layers, n_heads = order.shape
    places = np.broadcast_to(np.arange(n_heads), order.shape)
    if is_ordered:
        places = np.argsort(np.argsort(-order, axis=1, kind="stable"), axis=1, kind="stable")
    cells, parts = list[dict[str, object]](), list[dict[str, object]]()
    for (layer, head), place in np.ndenumerate(places):
        held = functions.get((layer, head), ())
        cell = _cell((layer, head), int(place), float(order[layer, head]), held)
        cells.append(cell)
        parts += [_part(cell, number, held) for number in range(len(held))]
    table = pd.DataFrame(cells + parts)
    frames = table[[row.kind == "cell" and (row.layer, row.head) in chosen for row in table.itertuples()]]
    spec = _spec(_Grid(n_layers, n_heads, order_name, is_ordered), kinds)
    described = _description(functions, n_layers * n_heads, order_name if is_ordered else "number", kinds)
    return Figure(spec, pd.concat([table, frames.assign(kind="chosen")]), described)


def _cell(head: Head, place: int, order: float, held: Sequence[Function]) -> dict[str, object]:
    """The cell of a head, 1 wide and 1 high but for the gap to the next."""
    return {
        "layer": head[0],
        "head": head[1],
        "name": head_name(*head),
        "number": f"H{head[1]}",
        "order": order,
        "top": head[0] + GAP,
        "bottom": head[0] + 1 - GAP,
        "function": held[0].kind if held else None,
        "does": "; ".join(f"{_named(function)}: {function.evidence}" for function in held) or "none of these",
        "kind": "cell",
        "left": place + SIDE_GAP,
        "right": place + 1 - SIDE_GAP,
    }


def _part(cell: Mapping[str, Any], number: int, held: Sequence[Function]) -> dict[str, object]:
    """The part of a cell that stands for one of the head's functions."""
    wide = (1 - 2 * SIDE_GAP) / len(held)
    left = cell["left"] + number * wide
    look = FUNCTIONS[held[number].kind]
    return {
        **cell,
        "kind": "part",
        "left": left,
        "right": left + wide,
        "function": held[number].kind,
        "middle": left + wide / 2,
        "center": cell["layer"] + 0.5,
        "wide": wide,
        "letter": look.letter,
        "label": f"{look.letter} {held[number].label}".strip(),
        "short": f"{look.letter} {held[number].short}".strip(),
    }


def _named(function: Function) -> str:
    return f"{FUNCTIONS[function.kind].label} {function.label}".strip()


def _description(
    functions: Mapping[Head, Sequence[Function]], n_all: int, order_name: str, kinds: Sequence[str]
) -> str:
    said = []
    for kind in kinds:
        look = FUNCTIONS[kind]
        heads = {
            head: [one.label for one in held if one.kind == kind]
            for head, held in sorted(functions.items())
            if any(one.kind == kind for one in held)
        }
        names = [head_name(*head) + (f" ({labels[0]})" if labels[0] else "") for head, labels in heads.items()]
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        said.append(
            f"{look.label} ({look.letter}) {len(heads)}" + (": " if names else "") + ", ".join(names[:NAMED] + more)
        )
    n_any = sum(bool(held) for held in functions.values())
    return (
        f"Rows: layers; columns: heads by {order_name}. Of {counted(n_all, 'head')} {n_any} have a function. "
        f"{'; '.join(said)}."
    )


@dataclass(frozen=True)
class _Grid:
    """Where cells are, and what may decide their order."""

    n_layers: int
    n_heads: int
    order_name: str
    is_ordered: bool

    @property
    def row(self) -> int:
        """Height of a layer's row, in pixels."""
        return ROWS[self.n_layers > FEW_LAYERS]

    @property
    def has_numbers(self) -> bool:
        """Whether each cell bears the number of its head: where no column does, and rows are high enough."""
        return self.is_ordered and self.row == ROWS[0]

    def across(self, field: str) -> "alt.X":
        """Position in a layer's row: the number of the head, or its place in the order."""
        import altair as alt

        return alt.X(
            field,
            type="quantitative",
            # Not "head": the name of a head bears that title in what a cell says to a screen reader.
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
        """Position by layer."""
        import altair as alt

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
    import altair as alt

    cells, parts, frames = _boxes(grid, kinds)
    texts = [_labels(grid)]
    if grid.has_numbers:
        texts.append(_numbers(grid))
    return template(
        alt.layer(cells, parts, *texts, frames),
        title="Heads by function",
        reading=("framed: chosen; what a letter says of a head stands in its tooltip",),
        height=grid.row * grid.n_layers,
    )


def _boxes(grid: _Grid, kinds: Sequence[str]) -> "list[alt.Chart]":
    """Cells of heads, their parts by function, and frames around the chosen ones."""
    import altair as alt

    tooltip = [
        alt.Tooltip("name:N", title="head"),
        alt.Tooltip("order:N", title=grid.order_name, format=".3~f"),
        alt.Tooltip("does:N", title="does"),
    ]
    cells = of_kind("cell").mark_rect(fill=INK, fillOpacity=0.06, stroke=INK, strokeOpacity=0.45, cursor="pointer")
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
    parts = of_kind("part").mark_rect(cursor="pointer")
    boxes = [
        cells.encode(tooltip=tooltip).add_params(head_choice()),
        parts.encode(fill=alt.Fill("function:N", scale=colors, legend=legend), tooltip=tooltip),
        of_kind("chosen").mark_rect(fill=None, stroke=INK, strokeWidth=2.5),
    ]
    x, x2, y, y2 = grid.across("left"), alt.X2("right"), grid.down("top"), alt.Y2("bottom")
    return [box.encode(x=x, x2=x2, y=y, y2=y2) for box in boxes]


def _labels(grid: _Grid) -> "alt.Chart":
    """The label of each part, shortened to what its part has room for."""
    import altair as alt

    room = f"(datum.wide * width / {grid.n_heads})"

    def fits(field: str) -> str:
        return f"{room} > {LETTER} * length(datum.{field}) + 6"

    labels = of_kind("part").mark_text(
        fontSize=11,
        baseline="middle",
        # Below the number of the head, where there is one.
        dy=5 if grid.has_numbers else 0,
        text=alt.expr(f"{fits('label')} ? datum.label : {fits('short')} ? datum.short : datum.letter"),
        opacity=alt.expr(f"{room} < {NARROWEST} ? 0 : 1"),
    )
    return labels.encode(x=grid.across("middle"), y=grid.down("center"), color=_ink())


def _numbers(grid: _Grid) -> "alt.Chart":
    """The number of each head in the corner of its cell."""
    import altair as alt

    fits = alt.expr(f"width / {grid.n_heads} < {NAME} ? 0 : 1")
    numbers = of_kind("cell").mark_text(fontSize=9, align="left", baseline="top", dx=2, dy=2, opacity=fits)
    return numbers.encode(x=grid.across("left"), y=grid.down("top"), color=_ink(), text=alt.Text("number:N"))


def _ink() -> Any:
    """The colour of text on a function's fill, or on none."""
    import altair as alt

    ink = alt.when("!isValid(datum.function)").then(alt.value(INK))
    for kind, look in FUNCTIONS.items():
        ink = ink.when(f"datum.function == '{kind}'").then(alt.value(look.ink))
    return ink.otherwise(alt.value(INK))
