"""How much the masked-language-model loss depends on attention, by layer and kind of key; computed on request."""

from typing import Final

import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS
from attention_sieve.core.surface.finding import GradientFinding, GradientSettings
from attention_sieve.dashboard.figures.surface.gradient_lines import gradient_lines
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.focus import Surface

REQUESTED: Final = "gradients asked for"
"""Session-state key of the inputs for which the reader has requested gradients."""


def gradients(surface: Surface) -> None:
    """Draw lines by layer, a button to compute them, or the reason why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        found = _found(surface)
    except AnalysisError as error:
        show_error(error)
        return
    if found is None:
        return
    texts, statistics = found.finding.texts, found.finding.statistics
    by_key = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(texts), sum(of_text.n_masked for of_text in texts)))
    chart("gradients", gradient_lines(by_key), surface.facts, wording.CLARK_3)


def _found(surface: Surface) -> CorpusFinding[GradientFinding] | None:
    """Gradients that are cached or that the reader has requested; None while there are none."""
    visit = surface.visit
    settings = GradientSettings(alpha=visit.choice.criterion.alpha)
    found = kept_finding(visit, GRADIENT_ANALYSIS, settings)
    if found is not None:
        return found
    if visit.inference.is_loaded(visit.engine) and visit.inference.checkpoint(visit.engine).head != "masked token":
        st.info(wording.NO_LANGUAGE_MODEL)
        return None
    question = (visit.engine, visit.settings, visit.texts)
    if st.session_state.get(REQUESTED) == question:
        return find(visit, GRADIENT_ANALYSIS, settings)
    st.button(
        wording.COMPUTE,
        icon=":material/calculate:",
        help=wording.COMPUTE_HELP,
        on_click=lambda: st.session_state.update({REQUESTED: question}),
    )
    return None
