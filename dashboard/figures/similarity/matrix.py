"""Distances as a matrix: between layers, or between the heads of two layers."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures.appearance import AMOUNT
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, rows_of, template

CELL: Final = 26
"""Height of a row in pixels."""
NUMBERED: Final = 16
"""Maximum number of columns for which cells have room for their numbers."""
STRONGEST: Final = 0.6
"""Opacity of the largest number; text on it is still legible."""


@dataclass(frozen=True)
class MatrixSide:
    title: str
    names: tuple[str, ...]
    """Without duplicates."""


def distance_matrix(
    values: Float[np.ndarray, "row column"], rows: MatrixSide, columns: MatrixSide, *, title: str, unit: str
) -> Figure:
    """A matrix of numbers of 0 or more, or NaN for none; larger numbers have stronger colours."""
    row, column = np.indices(values.shape).reshape(2, -1)
    cells = pd.DataFrame(
        {
            "kind": "cell",
            "row": np.array(rows.names, dtype=object)[row],
            "column": np.array(columns.names, dtype=object)[column],
            "value": values.ravel(),
        }
    )
    cells = cells[cells["value"].notna()]
    most = float(cells["value"].max()) if len(cells) else 0.0
    return Figure(_spec(rows, columns, most or 1.0, title, unit), cells, _description(cells, title, unit))


def _description(cells: pd.DataFrame, title: str, unit: str) -> str:
    if not len(cells):
        return f"{title}: nothing to draw."
    low, high = (cells.loc[place] for place in (cells["value"].idxmin(), cells["value"].idxmax()))
    return (
        f"{title} ({unit}): {cells['value'].mean():.3g} on average, least {low['value']:.3g} ({low['row']}, "
        f"{low['column']}), most {high['value']:.3g} ({high['row']}, {high['column']})."
    )


@lru_cache(maxsize=32)
def _spec(rows: MatrixSide, columns: MatrixSide, most: float, title: str, unit: str) -> Spec:
    # Streamlit's theme would move the first and last label away from the middle of their cells.
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", labelFlush=False, ticks=False, domain=False)
    cells = rows_of("cell").encode(
        x=alt.X("column:N", title=columns.title, sort=list(columns.names), axis=axis),
        y=alt.Y("row:N", title=rows.title, sort=list(rows.names), axis=axis),
    )
    tooltip = tooltips(("row", rows.title), ("column", columns.title), ("value", unit, ".4~g"))
    opacity = alt.FillOpacity("value:Q", scale=alt.Scale(domain=[0, most], range=[0, STRONGEST]), legend=None)
    layers = [cells.mark_rect(fill=AMOUNT).encode(fillOpacity=opacity, tooltip=tooltip)]
    if len(columns.names) <= NUMBERED:
        numbers = cells.mark_text(color=INK, fontSize=10, tooltip=False)
        layers.append(numbers.encode(text=alt.Text("value:Q", format=".2r")))
    return template(
        alt.layer(*layers),
        title=title,
        reading=(f"stronger colour: further apart ({unit})",),
        height=CELL * len(rows.names),
    )
