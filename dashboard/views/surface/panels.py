"""What the page Where heads look shows of texts or of a corpus of any size, and its panels of dots and lines."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.statistics import HeadLabels, HeadStatistics
from attention_sieve.dashboard.figures.surface.gradient_lines import agreement_lines
from attention_sieve.dashboard.figures.surface.scatter import TITLES, entropy_panel, panels_of, share_scatter
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.descriptions.sentences import Sentences
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.surface import wording

MOSTLY: Final = {"first": "the first token", "cls": "[CLS]", "sep": "[SEP]"}
"""Shares that the headline counts, with their names in it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface:
    """The statistics of every head, and what else the page shows of them, wherever they come from."""

    statistics: HeadStatistics
    labels: HeadLabels
    uniform: Mapping[str, Float[np.ndarray, " layer"]]
    """Entropies of uniform attention."""
    n_texts: int
    n_rare_texts: int
    """Number of texts with a rare word."""
    checkpoint: str
    alpha: float
    """Of the intervals."""
    heads: list[Head]
    """The chosen heads."""
    reset: Hashable
    """Changes whenever the components have to take over the chosen heads."""
    facts: dict[str, str]
    """Provenance of files."""
    tabs: str
    """Key of the tabs in the session and in the link."""
    views: Mapping[str, Callable[["Surface"], None]]
    """Draws each tab that statistics from elsewhere do not have, by its title."""
    sentences: Callable[[], Sentences | None] = lambda: None
    """What each head mostly does, where that is known."""
    n_removed: int = 0
    """Number of heads that do not count."""
    as_in_code: bool = False
    """Whether shares are divided as in the authors' code."""


def mostly(statistics: HeadStatistics) -> dict[str, Float[np.ndarray, "layer head"]]:
    """The shares of MOSTLY that apply to some head, by their names in the headline."""
    shares = {name: statistics.of(key) for key, name in MOSTLY.items() if key in statistics.names}
    return {name: share for name, share in shares.items() if np.isfinite(share).any()}


def say(surface: Surface) -> None:
    """Say what most attention goes to, and what limits it."""
    statistics, labels = surface.statistics, surface.labels
    positional = labels.positional
    offsets = Counter(positional.offset[positional.holds].tolist())
    has_offsets = np.isfinite(statistics.of("distance")).any()
    shares = mostly(statistics)
    most = {name: int((share > wording.MOST).sum()) for name, share in shares.items()}
    numbers = [
        wording.numbers(
            surface.n_texts,
            most,
            dict(sorted(offsets.items())) if has_offsets else None,
            int(labels.rare.sum()) if surface.n_rare_texts else None,
        )
    ]
    layers = {name: np.flatnonzero(share.mean(axis=1) > wording.MOST).tolist() for name, share in shares.items()}
    if any(layers.values()):
        numbers.append(plain(wording.most_of_layers({name: of_name for name, of_name in layers.items() if of_name})))
    if surface.n_texts < wording.FEW_TEXTS:
        numbers.append(wording.FEW)
    n_heads = positional.holds.size - surface.n_removed
    frame.say_finding(wording.finding(n_heads, most, offsets.total()), " ".join(numbers))
    if not has_offsets:
        st.info(wording.NO_NEIGHBOURS)
    if surface.as_in_code:
        st.caption(wording.BY_CODE)


def share_panel(surface: Surface, name: str) -> None:
    """Draw the shares of one group of kinds of keys; chosen heads are ringed."""
    figure = share_scatter(surface.statistics, panels_of(surface.statistics)[name], surface.heads)
    chart(f"shares, {name}", figure, surface.facts, wording.CLARK_2, large=True, selects=True)


def say_denominators(surface: Surface) -> None:
    """Say why shares of neighbours can add up to more than 1, unless they are divided as in the authors' code."""
    if not surface.as_in_code:
        st.caption(wording.DENOMINATORS)


def entropy_panels(surface: Surface) -> None:
    """Draw a panel for each entropy that the texts have, on one scale."""
    st.markdown(wording.ENTROPY_SEE)
    statistics = surface.statistics
    values = [*(statistics.of(name) for name in TITLES), *surface.uniform.values()]
    most = max((float(np.nanmax(value)) for value in values if np.isfinite(value).any()), default=0.0)
    for column, name in zip(halves(), (name for name in TITLES if np.isfinite(statistics.of(name)).any())):
        with column:
            figure = entropy_panel(statistics, name, surface.uniform[name], most, surface.heads)
            chart(name, figure, surface.facts, wording.CLARK_4, selects=True)


def agreement(layers: HeadStatistics, facts: Mapping[str, str]) -> None:
    st.markdown(wording.AGREEMENT)
    attention, outputs = layers.mean[:2]
    chart("agreement", agreement_lines({"attention": attention, "outputs": outputs}), facts, wording.MICHEL)
