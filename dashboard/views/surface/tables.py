"""The statistics of every head as numbers: one statistic as a grid, and all as a table."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.corpus.results import CorpusPart
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard.figures.head_map import NOT_APPLICABLE, HeadMap, intervals, round_bound
from attention_sieve.dashboard.figures.surface.scatter import LABELS, TITLES
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import charts
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.pickers import from_list, some_of, toggle
from attention_sieve.dashboard.views.results.chosen import Opened, parts_of
from attention_sieve.dashboard.views.results.raw import highest_texts
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.panels import Surface, say_denominators

DEFAULT_STATISTICS: Final = ("sep", "first")
"""Default statistic of the grid: the first one of these that applies to the texts."""
OF_PAPER: Final = {
    **dict.fromkeys(LABELS, wording.DOTS_2),
    **dict.fromkeys(TITLES, wording.DOTS_4),
    "confidence": wording.VOITA_1B,
}
"""The figure of a paper that a statistic's grid corresponds to; the other statistics have none."""


def head_grid(surface: Surface) -> None:
    statistics = surface.statistics
    labels = {wording.STATISTICS[name]: name for name in statistics.names}
    applicable = _applicable(statistics)
    start = [*(name for name in DEFAULT_STATISTICS if name in applicable), *applicable][0]
    name = from_list(wording.STATISTIC, labels, key="statistic", start=wording.STATISTICS[start])
    index, label = statistics.names.index(name), wording.STATISTICS[name]
    values = statistics.mean[index]
    if not np.isfinite(values).any():
        st.info(wording.NO_VALUE)
        return
    n_layers, n_heads = values.shape
    details = [
        (wording.MEAN, values),
        (
            wording.interval(surface.alpha),
            intervals(statistics.low[index], statistics.high[index], ".3g", wording.NO_INTERVAL),
        ),
        (wording.TEXTS, [[str(statistics.n_texts[index])] * n_heads] * n_layers),
    ]
    picture = HeadMap(
        title=label,
        label=f"{label} of the heads of {surface.checkpoint}",
        values=values,
        bound=round_bound(float(np.nanmax(values))),
        details=details,
    )
    selection = head_selection("statistic map", surface.heads, surface.reset)
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
    """Draw a table of all statistics; its files have what each head mostly does, where that is known."""
    statistics = surface.statistics
    rows = statistics_table(statistics)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = [wording.STATISTICS[name] for name in statistics.names]
        picked = some_of(wording.ONLY_STATISTICS, labels, key="surface statistics", every="all statistics")
        layer_numbers = list(map(str, range(statistics.mean.shape[1])))
        layers = some_of(wording.ONLY_LAYERS, layer_numbers, key="surface layers", every="all layers")
        only_chosen = toggle(wording.ONLY_CHOSEN, key="surface chosen")
    statistic_labels = rows["statistic"].map(wording.STATISTICS)
    is_selected = statistic_labels.isin(picked) & rows["layer"].astype(str).isin(layers)
    if only_chosen:
        is_selected &= np.array([head in surface.heads for head in zip(rows["layer"], rows["head"])])
    number = {name: st.column_config.NumberColumn(format="%.4f") for name in ("mean", "low", "high")}
    st.dataframe(rows.assign(statistic=statistic_labels)[is_selected], hide_index=True, column_config=number)
    say_denominators(surface)
    table_downloads("surface", with_sentences(rows[is_selected], surface.sentences()), surface.facts)


def chosen_heads_table(surface: Surface) -> None:
    statistics = surface.statistics
    columns = {
        head_name(*head): [NOT_APPLICABLE if np.isnan(value) else f"{value:.3f}" for value in statistics.mean[:, *head]]
        for head in surface.heads
    }
    labels = [wording.STATISTICS[name] for name in statistics.names]
    st.dataframe(pd.DataFrame({"statistic": labels, **columns}), hide_index=True, height="content")
    say_denominators(surface)


def parts_table(opened: Opened, surface: Surface) -> None:
    """Draw the statistics of the first chosen head in each part of a corpus."""
    parts = parts_of(opened)
    if not parts or not surface.heads:
        return
    rows = [{"texts of": part.stratum.title, "n": part.n_texts, **_means(part, surface)} for part in parts]
    charts.table("parts", pd.DataFrame(rows), without_command(surface.facts), number="%.3f")


def _means(part: CorpusPart, surface: Surface) -> dict[str, float]:
    statistics = part.surface(surface.alpha)
    return {wording.STATISTICS[name]: float(statistics.of(name)[surface.heads[0]]) for name in statistics.names}


def highest(opened: Opened, surface: Surface) -> None:
    """Offer the texts on which the first chosen head has the highest values of a statistic."""
    if surface.heads:
        options = {wording.STATISTICS[name]: name for name in _applicable(surface.statistics)}
        highest_texts(opened, from_list(wording.STATISTIC, options, key="highest statistic"), surface.heads[0])


def _applicable(statistics: HeadStatistics) -> list[str]:
    return [name for name in statistics.names if np.isfinite(statistics.of(name)).any()]
