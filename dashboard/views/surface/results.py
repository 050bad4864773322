"""Where heads look, over a corpus of any size, from its statistics."""

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.corpus.results import CorpusPart, Results
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.surface.scatter import TITLES
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import head_selection, show_head_map, table
from attention_sieve.dashboard.views.pickers import from_list
from attention_sieve.dashboard.views.results import chosen as choosing
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import Opened
from attention_sieve.dashboard.views.results.raw import highest_texts
from attention_sieve.dashboard.views.surface import wording as surface_wording
from attention_sieve.dashboard.views.surface.panels import (
    agreement,
    entropy_panels,
    share_panels,
    statistic_map,
    summary,
)
from attention_sieve.dashboard.views.surface.tables import statistics_table


def surface(results: Results) -> None:
    opened = choosing.opened(results, "surface")
    statistics = opened.part.surface(opened.choice.criterion.alpha)
    choosing.say_what(opened)
    labels, rare = opened.part.labels()
    st.markdown(summary(statistics, labels, n_texts=opened.part.n_texts, n_rare_texts=rare.n_texts))
    heads = opened.heads(highest_head(statistics.of("confidence")))
    frame.tabs(
        "results surface",
        {
            surface_wording.SHARES: lambda: _shares(opened, statistics, heads),
            surface_wording.ENTROPY: lambda: _entropy(opened, statistics, heads),
            surface_wording.HEADS: lambda: _map(opened, statistics, heads),
            surface_wording.LAYERS: lambda: agreement(_layers(opened), without_command(opened.facts)),
            wording.PARTS: lambda: _parts(opened, heads),
            wording.HIGHEST: lambda: _highest(opened, statistics, heads),
            surface_wording.TABLE: lambda: _table(opened, statistics),
        },
    )
    state.put_in_link(heads)


def _layers(opened: Opened) -> HeadStatistics:
    return opened.part.layers(opened.choice.criterion.alpha)


def _shares(opened: Opened, statistics: HeadStatistics, heads: list[Head]) -> None:
    share_panels(statistics, heads, opened.facts)
    st.caption(surface_wording.DENOMINATORS)


def _entropy(opened: Opened, statistics: HeadStatistics, heads: list[Head]) -> None:
    uniform = dict(zip(TITLES, _layers(opened).mean[2:], strict=True))
    entropy_panels(statistics, uniform, heads, opened.facts)


def _picked(statistics: HeadStatistics, key: str) -> str:
    applicable = [name for name in statistics.names if np.isfinite(statistics.of(name)).any()]
    options = {surface_wording.STATISTICS[name]: name for name in applicable}
    return from_list(surface_wording.STATISTIC, options, key=key)


def _map(opened: Opened, statistics: HeadStatistics, heads: list[Head]) -> None:
    name = _picked(statistics, "results statistic")
    index = statistics.names.index(name)
    ends = [("low", statistics.low[index]), ("high", statistics.high[index])]
    picture = statistic_map(statistics, name, opened.results.checkpoint, ends)
    show_head_map(picture, head_selection("results map", heads, opened.reset), file="head grid", facts=opened.facts)


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


def _highest(opened: Opened, statistics: HeadStatistics, heads: list[Head]) -> None:
    if heads:
        highest_texts(opened, _picked(statistics, "highest statistic"), heads[0])


def _table(opened: Opened, statistics: HeadStatistics) -> None:
    rows = statistics_table(statistics)
    labelled = rows.assign(statistic=rows["statistic"].map(surface_wording.STATISTICS))
    table("surface", labelled, opened.facts, number="%.4f", written=rows)
