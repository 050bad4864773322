"""Entropy of the attention of every head, by layer, with that of uniform attention."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard.figures.axes import ValueAxis
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.surface.head_dots import head_dots
from attention_sieve.dashboard.figures.surface.scatter import series_of

TITLES: Final = {"entropy": "Entropy of all queries", "cls entropy": "Entropy of the [CLS] query alone"}
"""Statistics and the titles of their panels."""
ROOM: Final = 1.08
"""End of the axis relative to the largest value."""


def entropy_panel(
    statistics: HeadStatistics, name: str, uniform: Float[np.ndarray, " layer"], most: float, chosen: Sequence[Head]
) -> Figure:
    """Entropy of every head in nats against its layer, with the layer means and the line of uniform attention.

    Args:
        name: one of TITLES.
        uniform: entropy of uniform attention, in nats; differs between layers with windows; NaN draws no line.
        most: largest value of all panels, so that they share a scale.

    Source: Clark et al. 2019, Figure 4.
    """
    series = [series_of(statistics, name, "entropy")]
    axis = ValueAxis("entropy (nats)", ".2~f", round(most * ROOM, 2) if most > 0 else 1)
    figure = head_dots(series, axis, title=TITLES[name], level=("uniform attention", uniform), chosen=chosen)
    description = f"{TITLES[name]}, in nats, of each head by layer. {figure.description}{_of_uniform(uniform)}"
    return Figure(figure.spec, figure.data, description)


def _of_uniform(uniform: Float[np.ndarray, " layer"]) -> str:
    known = np.unique(uniform[~np.isnan(uniform)].round(3))
    if not len(known):
        return ""
    return f" Uniform attention: {' to '.join(f'{end:.3g}' for end in known[[0, -1]][: len(known)])} nats."
