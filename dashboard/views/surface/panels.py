"""Panels of every head's attention: its shares by kind of key, and its entropy."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard.figures.surface.entropy_panels import TITLES, entropy_panel
from attention_sieve.dashboard.figures.surface.scatter import panels_of, share_scatter
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.layout import halves, thirds
from attention_sieve.dashboard.views.surface import wording


def share_panels(statistics: HeadStatistics, heads: Sequence[Head], facts: Mapping[str, str]) -> None:
    """Draw a panel for each group of kinds of keys that the texts have; chosen heads are ringed."""
    panels = panels_of(statistics)
    cells = halves() if len(panels) < 3 else thirds("top")
    for cell, (name, panel) in zip(cells, panels.items()):
        with cell:
            chart(f"shares, {name}", share_scatter(statistics, panel, heads), facts, wording.CLARK_2, selects=True)


def entropy_panels(
    statistics: HeadStatistics,
    uniform: Mapping[str, Float[np.ndarray, " layer"]],
    heads: Sequence[Head],
    facts: Mapping[str, str],
) -> None:
    """Draw a panel for each entropy that the texts have, on one scale; `uniform` are those of uniform attention."""
    values = [*(statistics.of(name) for name in TITLES), *uniform.values()]
    most = max((float(np.nanmax(value)) for value in values if np.isfinite(value).any()), default=0.0)
    for column, name in zip(halves(), (name for name in TITLES if np.isfinite(statistics.of(name)).any())):
        with column:
            figure = entropy_panel(statistics, name, uniform[name], most, heads)
            chart(name, figure, facts, wording.CLARK_4, selects=True)
