"""What the views of the page Where heads look share, over texts or over a corpus of any size."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.analysis import SurfaceFinding
from attention_sieve.core.surface.statistics import HeadLabels, HeadStatistics
from attention_sieve.dashboard.figures.surface.gradient_lines import agreement_lines
from attention_sieve.dashboard.figures.surface.scatter import TITLES, entropy_panel, panels_of, share_scatter
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import halves, thirds
from attention_sieve.dashboard.views.surface import wording

MOSTLY: Final = {"first": "the first token", "cls": "[CLS]", "sep": "[SEP]"}
"""Shares that the headline counts, with their names in it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadNumbers:
    """The statistics of every head, whether they are of texts or of a results folder."""

    statistics: HeadStatistics
    checkpoint: str
    alpha: float
    """Of their intervals."""
    heads: list[Head]
    """The chosen heads."""
    reset: Hashable
    """Changes whenever the components have to take over the chosen heads."""
    facts: dict[str, str]
    as_in_code: bool = False
    """Whether shares are divided as in the authors' code."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface:
    visit: Visit
    finding: SurfaceFinding
    """Over the texts of the corpus that were not left out."""
    numbers: HeadNumbers


def mostly(statistics: HeadStatistics) -> dict[str, Float[np.ndarray, "layer head"]]:
    """The shares of MOSTLY that apply to some head, by their names in the headline."""
    shares = {name: statistics.of(key) for key, name in MOSTLY.items() if key in statistics.names}
    return {name: share for name, share in shares.items() if np.isfinite(share).any()}


def summary(
    statistics: HeadStatistics, labels: HeadLabels, *, n_texts: int, n_rare_texts: int, n_removed: int = 0
) -> str:
    positional = labels.positional
    offsets = Counter(positional.offset[positional.holds].tolist())
    has_offsets = np.isfinite(statistics.of("distance")).any()
    return wording.summary(
        n_texts,
        positional.holds.size - n_removed,
        {name: int((share > wording.MOST).sum()) for name, share in mostly(statistics).items()},
        dict(sorted(offsets.items())) if has_offsets else None,
        int(labels.rare.sum()) if n_rare_texts else None,
    )


def share_panels(numbers: HeadNumbers) -> None:
    """Draw a panel for each group of kinds of keys that the texts have; chosen heads are ringed."""
    statistics = numbers.statistics
    panels = panels_of(statistics)
    cells = halves() if len(panels) < 3 else thirds("top")
    for cell, (name, panel) in zip(cells, panels.items()):
        with cell:
            figure = share_scatter(statistics, panel, numbers.heads)
            chart(f"shares, {name}", figure, numbers.facts, wording.CLARK_2, selects=True)
    say_denominators(numbers)


def say_denominators(numbers: HeadNumbers) -> None:
    """Say why shares of neighbours can add up to more than 1, unless they are divided as in the authors' code."""
    if not numbers.as_in_code:
        st.caption(wording.DENOMINATORS)


def entropy_panels(numbers: HeadNumbers, uniform: Mapping[str, Float[np.ndarray, " layer"]]) -> None:
    """Draw a panel for each entropy that the texts have, on one scale; `uniform` are those of uniform attention."""
    statistics = numbers.statistics
    values = [*(statistics.of(name) for name in TITLES), *uniform.values()]
    most = max((float(np.nanmax(value)) for value in values if np.isfinite(value).any()), default=0.0)
    for column, name in zip(halves(), (name for name in TITLES if np.isfinite(statistics.of(name)).any())):
        with column:
            figure = entropy_panel(statistics, name, uniform[name], most, numbers.heads)
            chart(name, figure, numbers.facts, wording.CLARK_4, selects=True)


def agreement(layers: HeadStatistics, facts: Mapping[str, str]) -> None:
    st.markdown(wording.AGREEMENT)
    attention, outputs = layers.mean[:2]
    chart("agreement", agreement_lines({"attention": attention, "outputs": outputs}), facts, wording.MICHEL)
