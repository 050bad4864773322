"""Shares of every head's attention by kind of key, as a row of panels."""

from collections.abc import Mapping, Sequence

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.statistics import HeadStatistics
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
