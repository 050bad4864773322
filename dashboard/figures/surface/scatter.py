"""Panels of every head by layer: its shares of attention by kind of key, and its entropy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard.figures.axes import ValueAxis
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.surface.head_dots import DotSeries, head_dots

LABELS: Final = {
    "first": "first token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "punctuation",
    "sep from others": "other tokens → [SEP]",
    "sep from sep": "[SEP] → [SEP]",
    "next": "next token",
    "previous": "previous token",
    "self": "the token itself",
}
"""Names of shares in the figure."""
SHARE: Final = ValueAxis("share of attention", ".0%", 1)
TITLES: Final = {"entropy": "Entropy of all queries", "cls entropy": "Entropy of the [CLS] query alone"}
"""Statistics and the titles of their panels."""
ROOM: Final = 1.08
"""End of the axis relative to the largest value."""


@dataclass(frozen=True)
class Panel:
    title: str
    shares: tuple[str, ...]
    means: bool
    """Whether to draw a line through the means of the layers, as in the paper's figure."""


PANELS: Final = {
    "special tokens": Panel("To special tokens and punctuation", ("first", "cls", "sep", "punctuation"), True),
    "separator": Panel("To [SEP], by who attends", ("sep from others", "sep from sep"), True),
    "neighbours": Panel("To neighbours", ("next", "previous", "self"), False),
}


def panels_of(statistics: HeadStatistics) -> dict[str, Panel]:
    """PANELS with the shares that apply to some head, and without those that have none."""
    applicable = {name for name in statistics.names if np.isfinite(statistics.of(name)).any()}
    shown = {
        name: replace(panel, shares=tuple(share for share in panel.shares if share in applicable))
        for name, panel in PANELS.items()
    }
    if not applicable & {"cls", "sep"}:
        title = "To the first token and punctuation" if "first" in applicable else "To punctuation"
        shown["special tokens"] = replace(shown["special tokens"], title=title)
    return {name: panel for name, panel in shown.items() if panel.shares}


def share_scatter(statistics: HeadStatistics, panel: Panel, chosen: Sequence[Head]) -> Figure:
    """One panel: the share of a head's attention that goes to each kind of key.

    Source: Clark et al. 2019, Figure 2. The labels of its third panel are swapped in the authors' code; here "next" is
        the token after the query.
    """
    series = [series_of(statistics, share, LABELS[share]) for share in panel.shares]
    figure = head_dots(series, SHARE, title=panel.title, means=panel.means, chosen=chosen)
    target = panel.title[0].lower() + panel.title[1:]
    description = f"Attention {target}: the share of each head's attention, by layer. {figure.description}"
    return Figure(figure.spec, figure.data, description)


def series_of(statistics: HeadStatistics, name: str, label: str) -> DotSeries:
    index = statistics.names.index(name)
    mean, low, high = (values[index] for values in (statistics.mean, statistics.low, statistics.high))
    return DotSeries(label=label, mean=mean, low=low, high=high, n_texts=int(statistics.n_texts[index]))


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
