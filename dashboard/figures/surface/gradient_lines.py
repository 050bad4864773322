"""Lines by layer: how much the loss depends on attention to each kind of key, and how similar the heads of a layer
are."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.figure import Figure, Spec, alt, rows_of, template
from attention_sieve.dashboard.figures.surface.head_dots import HALF, HEIGHT, NOTHING

AGREEMENT: Final = axes.ValueAxis("agreement (1: the most)", ".2~f", 1)


def gradient_lines(gradients: Mapping[str, Float[np.ndarray, " layer"]]) -> Figure:
    """The mean absolute derivative of the masked-language-model loss by attention weights, by kind of key.

    Source: Clark et al. 2019, Figure 3.
    """
    most = axes.round_ends(value for row in gradients.values() for value in row)[1]
    axis, title = axes.ValueAxis("mean absolute gradient", "~g", most), "What the loss depends on, by kind of key"
    said = "Mean absolute gradient of the loss by attention weights, by layer and kind of key."
    return _lines(gradients, axis, title, said)


def agreement_lines(agreement: Mapping[str, Float[np.ndarray, " layer"]]) -> Figure:
    """How similar the heads of each layer are, by the compared quantity: mean over pairs of heads.

    Source: Michel et al. 2019, statistics of their code; Li et al. 2018, disagreement.
    """
    said = "Agreement of the heads within each layer, mean over the texts."
    return _lines(agreement, AGREEMENT, "Agreement of the heads of a layer", said)


def _lines(values: Mapping[str, Float[np.ndarray, " layer"]], axis: axes.ValueAxis, title: str, said: str) -> Figure:
    points = pd.concat(
        pd.DataFrame(
            {
                "kind": "point",
                "series": number,
                "label": label,
                "layer": range(len(row)),
                "place": range(len(row)),
                "value": row,
            }
        )
        for number, (label, row) in enumerate(values.items())
    )
    # A layer without a value stays in the data, so that it interrupts the line.
    n_layers = max(map(len, values.values()))
    description = " ".join([said, *(_description_of(label, row) for label, row in values.items())])
    data = pd.concat([points, axes.note_rows(bool(points["value"].isna().all()), NOTHING)])
    return Figure(_spec(tuple(values), axis, title, n_layers), data, description)


def _description_of(label: str, row: Float[np.ndarray, " layer"]) -> str:
    if np.isnan(row).all():
        return f"{label}: not applicable."
    low, high = int(np.nanargmin(row)), int(np.nanargmax(row))
    return f"{label}: highest {row[high]:.3g} in layer {high}, lowest {row[low]:.3g} in layer {low}."


@lru_cache(maxsize=64)
def _spec(labels: tuple[str, ...], axis: axes.ValueAxis, title: str, n_layers: int) -> Spec:
    x, y = axes.places_axis("place", n_layers, HALF), axes.values_axis(axis)
    tooltip = axes.tooltips(("label", "what"), "layer", ("value", axis.title, ".3~g"))
    rows = rows_of("point").encode(x=x, y=y)
    marks = alt.layer(axes.series_line(rows, labels), axes.series_points(rows, labels, tooltip, 60), axes.note())
    return template(marks, title=title, height=HEIGHT)
