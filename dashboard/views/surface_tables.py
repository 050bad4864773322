"""The statistics of every head as numbers: one of them as a grid, and all as a table."""

from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from core.surface_statistics import HeadStatistics
from dashboard import provenance, state
from dashboard import surface_wording as wording
from dashboard.components.head_map import head_map
from dashboard.downloads import drawing_downloads, table_downloads
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.entropy_panels import TITLES
from dashboard.figures.head_map_svg import NOT_APPLICABLE, head_map_svg, round_bound
from dashboard.figures.surface_scatter import LABELS
from dashboard.plain import plain
from dashboard.views.surface_focus import Surface

FIRST: Final = "sep"
"""Statistic that the grid shows at first, where it applies."""
OF_PAPER: Final = {
    **dict.fromkeys(LABELS, wording.DOTS_2),
    **dict.fromkeys(TITLES, wording.DOTS_4),
    "confidence": wording.VOITA_1B,
}
"""The figure of a paper that a statistic's grid corresponds to; of the others there is none."""


def head_grid(surface: Surface) -> None:
    """Any statistic of every head, to be chosen."""
    statistics = surface.numbers.heads
    labels = {wording.STATISTICS[name]: name for name in statistics.names}
    known = [label for label, name in labels.items() if np.isfinite(statistics.of(name)).any()]
    usual = wording.STATISTICS[FIRST]
    label = st.selectbox(
        wording.STATISTIC,
        labels,
        index=list(labels).index(usual if usual in known else known[0]),
        key="statistic",
        bind="query-params",
        persist_state="session",
    )
    place = statistics.names.index(labels[label])
    values = statistics.mean[place]
    if not np.isfinite(values).any():
        st.info(wording.NO_VALUE)
        return
    drawn: dict[str, Any] = {"values": values, "bound": round_bound(float(np.nanmax(values))), "signed": False}
    name = surface.engine.files.name
    head_map(
        key="statistic map",
        title=label,
        label=f"{label} of the heads of {name}",
        details=[
            (wording.MEAN, values),
            (wording.interval(surface.chosen.criterion.alpha), _intervals(statistics, place)),
            (wording.TEXTS, [[str(statistics.n_texts[place])] * values.shape[1]] * values.shape[0]),
        ],
        chosen=surface.heads,
        reset=(name, surface.engine.files.fingerprint, state.n_pushed()),
        on_change=state.choose_heads,
        **drawn,
    )
    st.caption(plain(OF_PAPER.get(labels[label], wording.NO_FIGURE)))
    drawing_downloads(
        "head grid",
        lambda: head_map_svg(title=f"{label}: {name}", caption=provenance.caption(surface.facts), **drawn),
    )


def _intervals(statistics: HeadStatistics, place: int) -> list[list[str]]:
    ends = zip(statistics.low[place], statistics.high[place])
    return [[_interval(low, high) for low, high in zip(*rows)] for rows in ends]


def _interval(low: float, high: float) -> str:
    return wording.NO_INTERVAL if np.isnan(low) else f"{low:.3g} to {high:.3g}"


def statistics_table(statistics: HeadStatistics) -> pd.DataFrame:
    """A row for each statistic and head: mean, interval, and texts that have it."""
    _, n_layers, n_heads = statistics.mean.shape
    index = pd.MultiIndex.from_product(
        [statistics.names, range(n_layers), range(n_heads)], names=("statistic", "layer", "head")
    )
    columns = {name: getattr(statistics, name).astype(float).ravel() for name in ("mean", "low", "high")}
    return pd.DataFrame({**columns, "texts": statistics.n_texts.repeat(n_layers * n_heads)}, index=index).reset_index()


def table(surface: Surface) -> None:
    """All statistics of all heads, filtered, with files."""
    statistics = surface.numbers.heads
    rows = statistics_table(statistics)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = [wording.STATISTICS[name] for name in statistics.names]
        picked = _picked(wording.ONLY_STATISTICS, labels, "all statistics")
        layers = _picked(wording.ONLY_LAYERS, list(map(str, range(statistics.mean.shape[1]))), "all layers")
        only = st.toggle(wording.ONLY_CHOSEN, key="surface chosen", bind="query-params", persist_state="session")
    named = rows["statistic"].map(wording.STATISTICS)
    wanted = named.isin(picked) & rows["layer"].astype(str).isin(layers)
    if only:
        wanted &= np.array([head in surface.heads for head in zip(rows["layer"], rows["head"])])
    number = {name: st.column_config.NumberColumn(format="%.4f") for name in ("mean", "low", "high")}
    st.dataframe(rows.assign(statistic=named)[wanted], hide_index=True, column_config=number)
    table_downloads("surface", rows[wanted], surface.facts)


def chosen_heads_table(surface: Surface) -> None:
    """The chosen heads side by side."""
    statistics = surface.numbers.heads
    columns = {head_name(*head): [_written(value) for value in statistics.mean[:, *head]] for head in surface.heads}
    labels = [wording.STATISTICS[name] for name in statistics.names]
    st.markdown(f"**{wording.CHOSEN}**")
    st.dataframe(pd.DataFrame({"statistic": labels, **columns}), hide_index=True)


def _written(value: float) -> str:
    return NOT_APPLICABLE if np.isnan(value) else f"{value:.3f}"


def _picked(label: str, options: Any, every: str) -> list[str]:
    picked = st.multiselect(
        label, options, key=f"surface {label.lower()}", placeholder=every, bind="query-params", persist_state="session"
    )
    return picked or list(options)
