"""Which tasks the same heads encode: correlations between tasks, and a dendrogram of the tasks."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures.appearance import LESS, MORE
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, drawable, rows_of, template

ROW: Final = 30
"""Height of a task in pixels."""
TREE: Final = 3.0
"""Width of the tree, in cells."""
NAMES: Final = 4.5
"""Room for the last name, in cells."""
LONGEST: Final = 24
STRONGEST: Final = 0.75
"""Opacity of a correlation of 1 or -1; its number is still legible."""


def similarity_of_tasks(similarity: Float[np.ndarray, "task other"], names: Sequence[str]) -> Figure:
    """Half a matrix of correlations, ordered by the tree beside it.

    Args:
        similarity: correlations over the heads, none of them NaN.
        names: of the tasks, two or more.

    Source: Jo and Myaeng 2020, their matrix of tasks.
    """
    tree = _tree(similarity)
    order = tree["leaves"]
    labels = [drawable(names[task], LONGEST) for task in order]
    ordered = similarity[np.ix_(order, order)]
    row, column = np.tril_indices(len(order), -1)
    cells = pd.DataFrame(
        {
            "kind": "cell",
            "x": column - 0.5,
            "x2": column + 0.5,
            "y": row - 0.5,
            "y2": row + 0.5,
            "middle": column,
            "row": row,
            "value": ordered[row, column],
            "task": [labels[index] for index in row],
            "other": [labels[index] for index in column],
        }
    )
    label_rows = pd.DataFrame({"kind": "name", "middle": np.arange(len(order)) - 0.4, "row": np.arange(len(order))})
    data = pd.concat([cells, label_rows.assign(label=labels), _branches(tree)], ignore_index=True)
    return Figure(_spec(len(order)), data, _description(cells))


def _tree(similarity: Float[np.ndarray, "task other"]) -> dict[str, list[Any]]:
    """Dendrogram of tasks by their mean distance 1 - r."""
    from scipy.cluster.hierarchy import dendrogram, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distances = squareform(np.clip(1 - similarity, 0, 2), checks=False)
    tree: dict[str, list[Any]] = dendrogram(
        optimal_leaf_ordering(linkage(distances, "average"), distances), no_plot=True
    )
    return tree


def _branches(tree: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Each merge as a bracket to the left of the matrix; in SciPy's coordinates leaves stand at 5, 15, 25, ..."""
    most = max(map(max, tree["dcoord"])) or 1.0
    return pd.DataFrame(
        [
            {
                "kind": "branch",
                "merge": merge,
                "corner": corner,
                "middle": -0.6 - (TREE - 0.6) * height / most,
                "row": (place - 5) / 10,
                "distance": max(heights),
            }
            for merge, (places, heights) in enumerate(zip(tree["icoord"], tree["dcoord"]))
            for corner, (place, height) in enumerate(zip(places, heights))
        ]
    )


def _description(cells: pd.DataFrame) -> str:
    most, least = cells.loc[cells["value"].idxmax()], cells.loc[cells["value"].idxmin()]
    return (
        f"Correlation over heads between the scores on {len(cells['task'].unique()) + 1} tasks: highest between "
        f"{most['task']} and {most['other']} ({most['value']:.2f}), lowest between {least['task']} and "
        f"{least['other']} ({least['value']:.2f})."
    )


@lru_cache(maxsize=16)
def _spec(n_tasks: int) -> Spec:
    across = alt.Scale(domain=[-TREE - 0.1, n_tasks - 1 + NAMES], nice=False, zero=False)
    down = alt.Scale(domain=[n_tasks - 0.5, -0.5], nice=False, zero=False)

    def x(field: str) -> alt.X:
        return alt.X(field, type="quantitative", scale=across, axis=None)

    def y(field: str) -> alt.Y:
        return alt.Y(field, type="quantitative", scale=down, axis=None)

    sign = alt.when("datum.value < 0").then(alt.value(LESS)).otherwise(alt.value(MORE))
    cells = rows_of("cell")
    tooltip = tooltips("task", ("other", "and"), ("value", "correlation over heads", ".3f"))
    rect = cells.transform_calculate(strength="abs(datum.value)").mark_rect()
    strength = alt.FillOpacity("strength:Q", scale=alt.Scale(domain=[0, 1], range=[0, STRONGEST]), legend=None)
    branch = rows_of("branch").mark_line(color=INK, strokeWidth=1.2, strokeJoin="miter", tooltip=False)
    return template(
        alt.layer(
            rect.encode(
                x=x("x"), x2=alt.X2("x2"), y=y("y"), y2=alt.Y2("y2"), fill=sign, fillOpacity=strength, tooltip=tooltip
            ),
            cells.mark_text(color=INK, fontSize=10, tooltip=False).encode(
                x=x("middle"), y=y("row"), text=alt.Text("value:Q", format=".2f")
            ),
            rows_of("name")
            .mark_text(color=INK, align="left", fontSize=11)
            .encode(x=x("middle"), y=y("row"), text=alt.Text("label:N")),
            branch.encode(x=x("middle"), y=y("row"), detail=alt.Detail("merge:N"), order=alt.Order("corner:Q")),
        ),
        title="Which tasks the same heads know",
        reading=("number: correlation of both tasks' scores over the heads", "tree: tasks that join early are alike"),
        height=ROW * n_tasks,
    )
