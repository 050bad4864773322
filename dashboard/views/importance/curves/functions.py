"""Which heads with a role, or with a label by their most attended word, remain while heads are removed."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool

from attention_sieve.core.importance.pruning.functions import KeptFunction, kept_functions
from attention_sieve.core.importance.pruning.orders import Pruning, Removed
from attention_sieve.core.roles.roles import coarse_roles
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.importance.functions import functions_kept
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.numbers import Importance
from attention_sieve.dashboard.views.pickers import one_of, toggle
from attention_sieve.dashboard.views.surface.functions import argmax_heads

Functions = dict[str, Bool[np.ndarray, "layer head"]]
BY: Final = {wording.BY_SIEVE: True, wording.BY_ARGMAX: False}


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
    """Heads with each coarse role over the corpus."""
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
