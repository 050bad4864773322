"""Pruning curves: a score while more and more heads are removed, and how many of them can go."""

from collections.abc import Sequence
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache.serving.requests import Report
from core.importance.measures import ABLATION
from core.importance.pruning.curves import Curve, Removable, allowed_loss, curves_table, removable
from core.importance.pruning.orders import Pruning
from dashboard.figures.figure import Figure
from dashboard.figures.importance.curves import pruning_curves
from dashboard.files.downloads import table_downloads
from dashboard.plain import plain
from dashboard.progress import with_progress
from dashboard.views.charts import chart
from dashboard.views.importance import wording as page_wording
from dashboard.views.importance.curves import wording
from dashboard.views.importance.curves.asker import Asker, Work
from dashboard.views.importance.curves.drawn import Drawn, collected, kept_curves, n_passes, pruning_of
from dashboard.views.importance.curves.functions import functions
from dashboard.views.importance.curves.over_training import over_training
from dashboard.views.importance.curves.removal import removal
from dashboard.views.importance.numbers import Importance
from dashboard.views.pickers import from_list, one_of, toggle

BEGUN: Final = "curves begun"
"""The work that the reader asked for."""
WITHIN: Final = {"1%": 0.01, "2%": 0.02, "5%": 0.05}
SETTING_WIDTH: Final = 200


def how_many(importance: Importance) -> None:
    """Curves of all orders, how many heads each removes at a small cost, and how that changed over training."""
    st.markdown(wording.SEE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        within = one_of(wording.WITHIN, WITHIN, key="allowed loss", help=wording.WITHIN_HELP)
        numbers = {str(number): number for number in range(importance.effects.delta.shape[1] + 1)}
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
    """Curves of the checkpoint of the page, as far as they are known or the reader asks for them."""
    pruning = pruning_of(importance, at_least)
    _ = pruning.half  # too few texts are refused before any work
    work, place = st.container(), st.empty()
    drawn = kept_curves(importance, pruning, wants_greedy)
    if not drawn.is_whole:
        with work:
            drawn = _worked(importance, pruning, wants_greedy, drawn, place)
    if not drawn.curves:
        return
    names = list(dict.fromkeys(each.order for each in drawn.curves))
    start = ABLATION if ABLATION in names else names[0]
    with picker:
        order = from_list(
            wording.ORDER, {name: name for name in names}, key="order", start=start, help=wording.ORDER_HELP
        )
    with place.container():
        _curves(importance, pruning, drawn, order)
    found = _said(importance, pruning, drawn.curves, order, within)
    _table(importance, pruning, drawn.curves, found)
    n_fine = next(each.n for each in found if each.order == order)
    functions(importance, pruning, drawn.whole.get(order), order)
    removal(importance, pruning, drawn.whole.get(order), n_fine)


def _worked(importance: Importance, pruning: Pruning, wants_greedy: bool, known: Drawn, place: DeltaGenerator) -> Drawn:
    """All curves once the reader has asked for them; those that are known before, and after a stop."""
    key = (importance.material.key, pruning.at_least, wants_greedy)
    if st.session_state.get(BEGUN) != hash(key):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                wording.GO_ON if known.curves else wording.BEGIN,
                key="begin curves",
                icon=":material/play_circle:",
                on_click=lambda: st.session_state.update({BEGUN: hash(key)}),
            )
            st.markdown(wording.waiting(len(known.curves), n_passes(pruning, wants_greedy)), width="stretch")
        return known

    def show(curves: Sequence[Curve]) -> None:
        figure = _figure(importance, pruning, curves, ABLATION)
        place.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description)

    def work(report: Report) -> Drawn:
        if known.curves:
            show(known.curves)
        asker = Asker(importance=importance, work=Work(report=report))
        return collected(importance, pruning, wants_greedy, asker, show)

    return with_progress(("curves", key), work, wording.DOING) or known


def _figure(importance: Importance, pruning: Pruning, curves: Sequence[Curve], order: str) -> Figure:
    return pruning_curves(curves, pruning.n_heads, page_wording.SCORE_NAMES[importance.score.name], order)


def _curves(importance: Importance, pruning: Pruning, drawn: Drawn, order: str) -> None:
    chart(
        "pruning curves",
        _figure(importance, pruning, drawn.curves, order),
        facts(importance, pruning),
        wording.MICHEL_3,
    )
    if drawn.refused:
        st.caption(plain(wording.refused(drawn.refused)))


def facts(importance: Importance, pruning: Pruning) -> dict[str, str]:
    """Where curves come from."""
    return importance.facts | {"heads of a layer that stay": str(pruning.at_least)}


def _said(
    importance: Importance, pruning: Pruning, curves: Sequence[Curve], order: str, within: float
) -> list[Removable]:
    """How many heads can go, in a sentence."""
    score = importance.score
    tolerance = allowed_loss(score, importance.effects.full, within)
    found = removable(curves, score.sign, tolerance)
    st.markdown(wording.summary(found, order, pruning.n_heads, wording.allowed(score.name, within)))
    return found


def _table(importance: Importance, pruning: Pruning, curves: Sequence[Curve], found: Sequence[Removable]) -> None:
    with st.expander(wording.TABLE):
        rows = pd.DataFrame(
            [{"order": each.order, "heads that can go": each.n, "low": each.low, "high": each.high} for each in found]
        )
        st.dataframe(rows, hide_index=True)
        table_downloads("heads that can go", rows, facts(importance, pruning))
        table_downloads("points of the curves", curves_table(curves, pruning.n_heads), facts(importance, pruning))
