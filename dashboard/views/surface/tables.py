"""The statistics of every head as numbers: one statistic as a grid, and all as a table."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import NOT_APPLICABLE, intervals
from attention_sieve.dashboard.figures.surface.scatter import LABELS, TITLES
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.pickers import from_list, some_of, toggle
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.panels import Surface, statistic_map

DEFAULT_STATISTICS: Final = ("sep", "first")
"""Default statistic of the grid: the first one of these that applies to the texts."""
OF_PAPER: Final = {
    **dict.fromkeys(LABELS, wording.DOTS_2),
    **dict.fromkeys(TITLES, wording.DOTS_4),
    "confidence": wording.VOITA_1B,
}
"""The figure of a paper that a statistic's grid corresponds to; the other statistics have none."""


def head_grid(surface: Surface) -> None:
    statistics = surface.finding.heads
    labels = {wording.STATISTICS[name]: name for name in statistics.names}
    applicable = [label for label, name in labels.items() if np.isfinite(statistics.of(name)).any()]
    defaults = [label for name in DEFAULT_STATISTICS if (label := wording.STATISTICS[name]) in applicable]
    name = from_list(wording.STATISTIC, labels, key="statistic", start=[*defaults, *applicable][0])
    index = statistics.names.index(name)
    if not np.isfinite(statistics.mean[index]).any():
        st.info(wording.NO_VALUE)
        return
    checkpoint = surface.visit.engine.files.name
    ends = intervals(statistics.low[index], statistics.high[index], ".3g", wording.NO_INTERVAL)
    n_layers, n_heads = statistics.mean.shape[1:]
    details = [
        (wording.interval(surface.visit.choice.criterion.alpha), ends),
        (wording.TEXTS, [[str(statistics.n_texts[index])] * n_heads] * n_layers),
    ]
    picture = statistic_map(statistics, name, checkpoint, details)
    reset = (checkpoint, surface.visit.engine.files.fingerprint, state.n_pushed())
    selection = head_selection("statistic map", surface.heads, reset)
    show_head_map(picture, selection, file="head grid", facts=surface.facts)
    st.caption(plain(OF_PAPER.get(name, wording.NO_FIGURE)))


def statistics_table(statistics: HeadStatistics) -> pd.DataFrame:
    """One row per statistic and head: mean, interval, and number of texts that have the statistic."""
    _, n_layers, n_heads = statistics.mean.shape
    index = pd.MultiIndex.from_product(
        [statistics.names, range(n_layers), range(n_heads)], names=("statistic", "layer", "head")
    )
    columns = {name: getattr(statistics, name).astype(float).ravel() for name in ("mean", "low", "high")}
    return pd.DataFrame({**columns, "texts": statistics.n_texts.repeat(n_layers * n_heads)}, index=index).reset_index()


def table(surface: Surface) -> None:
    statistics = surface.finding.heads
    rows = statistics_table(statistics)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = [wording.STATISTICS[name] for name in statistics.names]
        picked = some_of(wording.ONLY_STATISTICS, labels, key="surface statistics", every="all statistics")
        numbers = list(map(str, range(statistics.mean.shape[1])))
        layers = some_of(wording.ONLY_LAYERS, numbers, key="surface layers", every="all layers")
        only_chosen = toggle(wording.ONLY_CHOSEN, key="surface chosen")
    statistic_labels = rows["statistic"].map(wording.STATISTICS)
    is_selected = statistic_labels.isin(picked) & rows["layer"].astype(str).isin(layers)
    if only_chosen:
        is_selected &= np.array([head in surface.heads for head in zip(rows["layer"], rows["head"])])
    number = {name: st.column_config.NumberColumn(format="%.4f") for name in ("mean", "low", "high")}
    st.dataframe(rows.assign(statistic=statistic_labels)[is_selected], hide_index=True, column_config=number)
    say_denominators(surface)
    table_downloads("surface", with_sentences(rows[is_selected], kept_sentences(surface.visit)), surface.facts)


def chosen_heads_table(surface: Surface) -> None:
    statistics = surface.finding.heads
    columns = {
        head_name(*head): [NOT_APPLICABLE if np.isnan(value) else f"{value:.3f}" for value in statistics.mean[:, *head]]
        for head in surface.heads
    }
    labels = [wording.STATISTICS[name] for name in statistics.names]
    st.dataframe(pd.DataFrame({"statistic": labels, **columns}), hide_index=True, height="content")
    say_denominators(surface)


def say_denominators(surface: Surface) -> None:
    """Say why shares of neighbours can add up to more than 1, unless they are divided as in the authors' code."""
    if not surface.finding.settings.as_in_code:
        st.caption(wording.DENOMINATORS)
