"""Where heads look, over a corpus of any size, from its statistics."""

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.corpus.results import CorpusPart, Results
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.surface.scatter import TITLES
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import table
from attention_sieve.dashboard.views.pickers import from_list
from attention_sieve.dashboard.views.results import chosen as choosing
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import Opened
from attention_sieve.dashboard.views.results.raw import highest_texts
from attention_sieve.dashboard.views.surface import tables
from attention_sieve.dashboard.views.surface import wording as surface_wording
from attention_sieve.dashboard.views.surface.panels import (
    HeadNumbers,
    agreement,
    entropy_panels,
    share_panels,
    summary,
)


def surface(results: Results) -> None:
    opened = choosing.opened(results, "surface")
    alpha = opened.choice.criterion.alpha
    statistics, layers = opened.part.surface(alpha), opened.part.layers(alpha)
    choosing.say_what(opened)
    labels, rare = opened.part.labels()
    st.markdown(summary(statistics, labels, n_texts=opened.part.n_texts, n_rare_texts=rare.n_texts))
    heads = opened.heads(highest_head(statistics.of("confidence")))
    numbers = HeadNumbers(
        statistics=statistics,
        checkpoint=results.checkpoint,
        alpha=alpha,
        heads=heads,
        reset=opened.reset,
        facts=opened.facts,
    )
    uniform = dict(zip(TITLES, layers.mean[2:], strict=True))
    frame.tabs(
        "results surface",
        {
            surface_wording.SHARES: lambda: share_panels(numbers),
            surface_wording.ENTROPY: lambda: entropy_panels(numbers, uniform),
            surface_wording.HEADS: lambda: tables.head_grid(numbers),
            surface_wording.LAYERS: lambda: agreement(layers, without_command(opened.facts)),
            wording.PARTS: lambda: _parts(opened, heads),
            wording.HIGHEST: lambda: _highest(opened, numbers),
            surface_wording.TABLE: lambda: tables.table(numbers),
        },
    )
    state.put_in_link(heads)


def _parts(opened: Opened, heads: list[Head]) -> None:
    """Statistics of the first chosen head in each part."""
    parts = [choosing.part_of(opened.results, stratum) for stratum in opened.results.strata]
    if len(parts) < 2 or not heads:
        st.info(wording.NO_PARTS)
        return
    rows = pd.DataFrame([_row(part, heads[0], opened.choice.criterion.alpha) for part in parts])
    table("parts", rows, without_command(opened.facts), number="%.3f")


def _row(part: CorpusPart, head: Head, alpha: float) -> dict[str, object]:
    statistics = part.surface(alpha)
    means = {surface_wording.STATISTICS[name]: float(statistics.of(name)[head]) for name in statistics.names}
    return {"texts of": part.stratum.title, "n": part.n_texts, **means}


def _highest(opened: Opened, numbers: HeadNumbers) -> None:
    if numbers.heads:
        statistics = numbers.statistics
        applicable = [name for name in statistics.names if np.isfinite(statistics.of(name)).any()]
        options = {surface_wording.STATISTICS[name]: name for name in applicable}
        highest_texts(opened, from_list(surface_wording.STATISTIC, options, key="highest statistic"), numbers.heads[0])
