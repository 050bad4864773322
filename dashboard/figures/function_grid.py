"""The functions of every head: a row for each layer, its heads in order of some number, coloured by what they do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from dashboard.figures.appearance import Look
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.head_dots import CHOICE, Head

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
) -> Figure:
    """Rows of heads, from the one with the largest number on, each with what it does.

    Args:
        functions: of the heads that have any; a head with several is split.
        order: what the heads of a layer are ordered by, largest first; NaN comes last.
        order_name: what that number is.
        chosen: heads that are framed.
        kinds: of FUNCTIONS, those that were looked for.

    Source: Voita et al. 2019, Figure 1 (c).
    """
    n_layers, n_heads = order.shape
    ranks = np.argsort(np.argsort(-order, axis=1, kind="stable"), axis=1, kind="stable")
    cells, parts = list[dict[str, object]](), list[dict[str, object]]()
    for (place, head), rank in np.ndenumerate(ranks):
        held = functions.get((place, head), ())
        cell = {
            **{"layer": place, "head": head, "name": f"L{place} H{head}", "number": f"H{head}"},
            **{"order": order[place, head], "top": place + 0.04, "bottom": place + 0.96},
            "function": held[0].kind if held else None,
            "does": "; ".join(f"{_named(one)}: {one.evidence}" for one in held) or "none of these",
        }
        cells.append({**cell, "kind": "cell", "left": rank + 0.03, "right": rank + 0.97})
        for part, one in enumerate(held):
            left, wide = rank + 0.03 + 0.94 * part / len(held), 0.94 / len(held)
            look = FUNCTIONS[one.kind]
            parts.append(
                {
                    **{**cell, "kind": "part", "left": left, "right": left + wide, "function": one.kind},
                    **{"middle": left + wide / 2, "center": place + 0.5, "wide": wide, "letter": look.letter},
                    "label": f"{look.letter} {one.label}".strip(),
                    "short": f"{look.letter} {one.short}".strip(),
                }
            )
    table = pd.DataFrame(cells + parts)
    frames = table[[row.kind == "cell" and (row.layer, row.head) in chosen for row in table.itertuples()]]
    spec = _spec(order_name, n_layers, n_heads, kinds)
    described = _description(functions, n_layers * n_heads, order_name, kinds)
    return Figure(spec, pd.concat([table, frames.assign(kind="chosen")]), described)


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
        names = [f"L{at} H{of}" + (f" ({labels[0]})" if labels[0] else "") for (at, of), labels in heads.items()]
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        said.append(
            f"{look.label} ({look.letter}) {len(heads)}" + (": " if names else "") + ", ".join(names[:NAMED] + more)
        )
    n_any = sum(bool(held) for held in functions.values())
    return (
        f"Rows: layers; heads from left to right by {order_name}, largest first. Of {counted(n_all, 'head')} {n_any} "
        f"have a function. {'; '.join(said)}."
    )


@lru_cache(maxsize=16)
def _spec(order_name: str, n_layers: int, n_heads: int, kinds: tuple[str, ...]) -> Spec:
    row = ROWS[n_layers > FEW_LAYERS]
    x = {
        "type": "quantitative",
        "title": f"heads of the layer by {order_name}, largest first",
        "scale": {"domain": [0, n_heads], "nice": False, "zero": True},
        "axis": {"labels": False, "ticks": False, "grid": False, "domain": False},
    }
    y = {
        "type": "quantitative",
        "title": "layer (0 is next to the input)",
        "scale": {"domain": [0, n_layers], "nice": False, "zero": True, "reverse": True},
        "axis": {
            "values": [place + 0.5 for place in range(n_layers)],
            "labelExpr": "floor(datum.value)",
            **{"ticks": False, "grid": False, "domain": False, "labelOverlap": False},
        },
    }
    tooltip = [
        {"field": "name", "title": "head"},
        {"field": "order", "title": order_name, "format": ".3~f"},
        {"field": "does", "title": "does"},
    ]
    box = {"x": {**x, "field": "left"}, "x2": {"field": "right"}, "y": {**y, "field": "top"}, "y2": {"field": "bottom"}}
    color = _by_function({kind: FUNCTIONS[kind].color for kind in kinds})
    ink = {**_by_function({kind: FUNCTIONS[kind].ink for kind in kinds}), "legend": None}
    cell = layer(
        "cell",
        {"type": "rect", "fill": INK, "fillOpacity": 0.06, "stroke": INK, "strokeOpacity": 0.45, "cursor": "pointer"},
        **box,
        tooltip=tooltip,
    )
    part = layer("part", {"type": "rect", "cursor": "pointer"}, **box, fill=color, tooltip=tooltip)
    cell["params"] = [{"name": CHOICE, "select": {"type": "point", "fields": ["layer", "head"]}}]
    room = f"(datum.wide * width / {n_heads})"

    def fits(field: str) -> str:
        return f"{room} > {LETTER} * length(datum.{field}) + 6"

    label = {
        **{"type": "text", "fontSize": 11, "baseline": "middle", "dy": 5 if row > ROWS[1] else 0},
        "text": {"expr": f"{fits('label')} ? datum.label : {fits('short')} ? datum.short : datum.letter"},
        "opacity": {"expr": f"{room} < {NARROWEST} ? 0 : 1"},
    }
    number = {"type": "text", "fontSize": 9, "align": "left", "baseline": "top", "dx": 2, "dy": 2}
    number["opacity"] = {"expr": f"width / {n_heads} < {NAME} ? 0 : 1"}
    middle = {"x": {**x, "field": "middle"}, "y": {**y, "field": "center"}}
    corner = {"x": {**x, "field": "left"}, "y": {**y, "field": "top"}}
    on_part = {"condition": {**ink, "test": "isValid(datum.function)"}, "value": INK}
    layers = [
        cell,
        part,
        layer("part", label, **middle, color=ink),
        layer("chosen", {"type": "rect", "fill": None, "stroke": INK, "strokeWidth": 2.5}, **box),
    ]
    if row == ROWS[0]:
        layers.insert(3, layer("cell", number, **corner, color=on_part, text={"field": "number"}))
    return picture(
        layers,
        title="What every head does",
        reading=("framed: chosen; what a letter says of a head stands in its tooltip",),
        height=row * n_layers,
    )


def _by_function(colors: Mapping[str, str]) -> Spec:
    """The colour of each kind of function."""
    legend = {
        "orient": "bottom",
        "columns": 2,
        "title": None,
        "symbolType": "square",
        "symbolSize": 120,
        "symbolOpacity": 1,
    }
    labels = {name: f"{look.label} ({look.letter})" for name, look in FUNCTIONS.items()}
    legend["labelExpr"] = f"{json.dumps(labels)}[datum.label]"
    return {
        "field": "function",
        "type": "nominal",
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": legend,
    }
