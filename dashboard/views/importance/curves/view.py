"""Pruning curves: a score as more and more heads are removed, and how many of them can go."""

from collections.abc import Sequence
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.serving.requests import Report
from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.pruning.curves import Curve, Removable, allowed_loss, curves_table, removable
from attention_sieve.core.importance.pruning.orders import Pruning
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.importance.curves import pruning_curves
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.progress import with_progress
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.curves.asker import Asker, Work
from attention_sieve.dashboard.views.importance.curves.drawn import (
    PruningCurves,
    collected,
    kept_curves,
    n_passes,
    pruning_of,
)
from attention_sieve.dashboard.views.importance.curves.functions import functions
from attention_sieve.dashboard.views.importance.curves.over_training import over_training
from attention_sieve.dashboard.views.importance.curves.removal import removal
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle

BEGUN: Final = "curves begun"
"""Session-state key: hash of the work that the reader started."""
WITHIN: Final = {"1%": 0.01, "2%": 0.02, "5%": 0.05}
SETTING_WIDTH: Final = 200


def how_many(importance: Importance) -> None:
    """Draw the tab: curves of all orders, how many heads can go at a small cost, and how that changed over training."""
    st.markdown(wording.SEE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        within = one_of(wording.WITHIN, WITHIN, key="allowed loss", help=wording.WITHIN_HELP)
        numbers = {str(number): number for number in range(importance.ablation.effects.delta.shape[1] + 1)}
        at_least = from_list(
            wording.AT_LEAST, numbers, key="heads that stay", help=wording.AT_LEAST_HELP, width=SETTING_WIDTH
        )
        wants_greedy = toggle(wording.GREEDY, key="greedy", help=wording.GREEDY_HELP)
        picker = st.container(width=SETTING_WIDTH)
    _of_checkpoint(importance, at_least, wants_greedy, within, picker)
    over_training(importance, at_least, within)


def _of_checkpoint(
    importance: Importance, at_least: int, wants_greedy: bool, within: float, picker: DeltaGenerator
) -> None:
    """Curves of the checkpoint of the page, as far as they are cached or the reader starts the work."""
    pruning = pruning_of(importance, at_least)
    _ = pruning.half  # raises if there are too few texts, before any work
    work, slot = st.container(), st.empty()
    computed = kept_curves(importance, pruning, wants_greedy)
    if not computed.is_whole:
        with work:
            computed = _computed(importance, pruning, wants_greedy, computed, slot)
    if not computed.curves:
        return
    names = list(dict.fromkeys(curve.order for curve in computed.curves))
    start = ABLATION if ABLATION in names else names[0]
    with picker:
        order = from_list(
            wording.ORDER, {name: name for name in names}, key="order", start=start, help=wording.ORDER_HELP
        )
    options = [*importance.material.pruning_options(at_least, within), *(["--greedy"] if wants_greedy else [])]
    facts = importance.computed_by("prune", *options) | {"heads of a layer that stay": str(at_least)}
    with slot.container():
        chart(
            "pruning curves",
            _figure(importance, pruning, computed.curves, order),
            facts,
            wording.MICHEL_3,
        )
        if computed.refused:
            st.caption(plain(wording.refused(computed.refused)))
    score = importance.ablation.score
    tolerance = allowed_loss(score, importance.ablation.effects.full, within)
    results = removable(computed.curves, score.sign, tolerance)
    st.markdown(wording.summary(results, order, pruning.n_heads, wording.allowed(score.name, within)))
    _table(pruning, computed.curves, results, facts)
    n_fine = next(result.n for result in results if result.order == order)
    functions(importance, pruning, computed.whole.get(order), order)
    removal(importance, pruning, computed.whole.get(order), n_fine)


def _computed(
    importance: Importance, pruning: Pruning, wants_greedy: bool, cached: PruningCurves, slot: DeltaGenerator
) -> PruningCurves:
    """All curves once the reader has started the work; the cached ones before that, and after a stop."""
    key = (importance.material.key, pruning.at_least, wants_greedy)
    if st.session_state.get(BEGUN) != hash(key):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                wording.GO_ON if cached.curves else wording.BEGIN,
                key="begin curves",
                icon=":material/play_circle:",
                on_click=lambda: st.session_state.update({BEGUN: hash(key)}),
            )
            st.markdown(wording.waiting(len(cached.curves), n_passes(pruning, wants_greedy)), width="stretch")
        return cached

    def show(curves: Sequence[Curve]) -> None:
        figure = _figure(importance, pruning, curves, ABLATION)
        slot.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description)

    def work(report: Report) -> PruningCurves:
        if cached.curves:
            show(cached.curves)
        asker = Asker(importance=importance, work=Work(report=report))
        return collected(importance, pruning, wants_greedy, asker, show)

    return with_progress(("curves", key), work, wording.DOING) or cached


def _figure(importance: Importance, pruning: Pruning, curves: Sequence[Curve], order: str) -> Figure:
    return pruning_curves(curves, pruning.n_heads, page_wording.SCORE_NAMES[importance.ablation.score.name], order)


def _table(pruning: Pruning, curves: Sequence[Curve], results: Sequence[Removable], facts: dict[str, str]) -> None:
    with st.expander(wording.TABLE):
        rows = pd.DataFrame(
            [
                {"order": result.order, "heads that can go": result.n, "low": result.low, "high": result.high}
                for result in results
            ]
        )
        table("heads that can go", rows, facts)
        table_downloads("points of the curves", curves_table(curves, pruning.n_heads), facts)
