"""Pruning curves: a score as more and more heads are removed, and how many of them can go."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.pruning.curves import (
    Curve,
    KeptFunction,
    Removable,
    curves_table,
    kept_functions,
    removable,
)
from attention_sieve.core.importance.pruning.orders import Pruning, Removed
from attention_sieve.core.roles.roles import coarse_roles
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.importance.curves import pruning_curves
from attention_sieve.dashboard.figures.importance.functions import functions_kept
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.curves.drawn import (
    drawing_in,
    drawn,
    kept_curves,
    n_passes,
    pruning_of,
)
from attention_sieve.dashboard.views.importance.curves.over_training import over_training
from attention_sieve.dashboard.views.importance.curves.removal import removal
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle
from attention_sieve.dashboard.views.relations import argmax_heads

WITHIN: Final = {"1%": 0.01, "2%": 0.02, "5%": 0.05}
SETTING_WIDTH: Final = 200
Functions = dict[str, Bool[np.ndarray, "layer head"]]
BY: Final = {wording.BY_SIEVE: True, wording.BY_ARGMAX: False}


def how_many(importance: Importance) -> None:
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
    pruning = pruning_of(importance, at_least)
    _ = pruning.half  # raises if there are too few texts, before any work
    checkpoint = importance.material.visit.engine.files.name
    run = drawing_in("curves", checkpoint, importance.material.key, at_least, wants_greedy)
    found = kept_curves(importance, pruning, wants_greedy, run.left_out)
    if not found.is_whole:
        passes, n_kept = n_passes(pruning, wants_greedy), len(found.curves)
        run.begin_or_watch(
            drawn(importance, pruning, wants_greedy, found.curves),
            wording.waiting(n_kept, passes, importance.cost(passes)),
            has_curves=n_kept > 0,
        )
    if not found.curves:
        return
    names = list(dict.fromkeys(curve.order for curve in found.curves))
    start = ABLATION if ABLATION in names else names[0]
    with picker:
        order = from_list(
            wording.ORDER, {name: name for name in names}, key="order", start=start, help=wording.ORDER_HELP
        )
    options = [*importance.material.pruning_options(at_least, within), *(["--greedy"] if wants_greedy else [])]
    facts = importance.computed_by("prune", *options) | {"heads of a layer that stay": str(at_least)}
    score = importance.ablation.score
    figure = pruning_curves(found.curves, pruning.n_heads, page_wording.SCORE_NAMES[score.name], order)
    chart("pruning curves", figure, facts, wording.MICHEL_3)
    if found.left_out:
        st.caption(plain(wording.refused(found.left_out)))
    results = removable(found.curves, score, within)
    st.markdown(wording.summary(results, order, pruning.n_heads, wording.allowed(score.name, within)))
    _table(pruning, found.curves, results, facts)
    n_fine = next(result.n for result in results if result.order == order)
    functions(importance, pruning, found.whole.get(order), order)
    removal(importance, pruning, found.whole.get(order), n_fine)


def _table(pruning: Pruning, curves: Sequence[Curve], results: Sequence[Removable], facts: dict[str, str]) -> None:
    with st.expander(wording.TABLE):
        rows = pd.DataFrame(map(asdict, results)).rename(columns={"n": "heads that can go"})
        table("heads that can go", rows, facts)
        table_downloads("points of the curves", curves_table(curves, pruning.n_heads), facts)


def functions(importance: Importance, pruning: Pruning, order: Removed | None, name: str) -> None:
    """Draw the functions of the heads that remain, if the reader turns this on: finding them takes passes.

    Args:
        order: found on all texts; None while it is not.
    """
    if order is None or not toggle(wording.FUNCTIONS, key="functions kept", help=wording.FUNCTIONS_HELP):
        return
    by_sieve = one_of(wording.BY, BY, key="functions by", help=wording.BY_HELP)
    visit = importance.material.visit
    head_functions = _by_sieve(visit) if by_sieve else _by_argmax(visit)
    if head_functions is None:
        return
    remaining = kept_functions(head_functions, order, pruning.counts(order).tolist(), pruning.is_there)
    if not remaining:
        st.info(wording.NO_FUNCTION)
        return
    facts = importance.facts | {"order": name, "heads of a layer that stay": str(pruning.at_least)}
    chart("functions kept", functions_kept(remaining, pruning.n_heads), facts, wording.VOITA_8)
    st.markdown(wording.functions_summary(remaining, pruning.n_heads))
    table_downloads("functions kept", _rows(remaining), facts)


def _by_sieve(visit: Visit) -> Functions | None:
    tested = corpus(visit)
    if tested is None:
        return None
    tests = tested.tests
    return {LOOKS[role].label: tests.holds[tests.roles.index(role)] for role in coarse_roles(tests.roles)}


def _by_argmax(visit: Visit) -> Functions | None:
    """Heads with each label by their most attended word, as in Voita et al."""
    found = find(visit, SURFACE_ANALYSIS, SURFACE_ANALYSIS.settings)
    if found is None:
        return None
    labels = found.finding.labels
    by_label = {wording.POSITIONAL: labels.positional.holds, wording.RARE: labels.rare}
    syntactic = None if visit.settings.kind == "cross" else argmax_heads(visit)
    return by_label if syntactic is None else {**by_label, wording.SYNTACTIC: syntactic.heads}


def _rows(remaining: list[KeptFunction]) -> pd.DataFrame:
    columns = ("n_removed", "kept", "expected", "low", "high")
    return pd.concat(
        [
            pd.DataFrame({"function": function.name, **{column: getattr(function, column) for column in columns}})
            for function in remaining
        ],
        ignore_index=True,
    )
