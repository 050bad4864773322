"""The statistics of each layer: how much its heads agree, and gradients of the loss with respect to attention."""

from collections.abc import Mapping
from typing import Final

import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.surface.analysis import (
    GRADIENT_ANALYSIS,
    GradientFinding,
    GradientSettings,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard import costs
from attention_sieve.dashboard.figures.surface.gradient_lines import agreement_lines, gradient_lines
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views.analysis import Analysed
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.panels import Surface

REQUESTED: Final = "gradients asked for"
"""Session-state key of the inputs for which the reader has requested gradients."""


def agreement(layers: HeadStatistics, facts: Mapping[str, str]) -> None:
    st.markdown(wording.AGREEMENT)
    attention, outputs = layers.mean[:2]
    chart("agreement", agreement_lines({"attention": attention, "outputs": outputs}), facts, wording.MICHEL)


def layers(found: Analysed[SurfaceSettings, SurfaceFinding], surface: Surface) -> None:
    left, right = halves()
    with left:
        agreement(found.finding.layers, surface.facts)
    with right:
        _gradients(found, surface.facts)


def _gradients(found: Analysed[SurfaceSettings, SurfaceFinding], facts: dict[str, str]) -> None:
    """Draw lines by layer, a button to compute them, or the reason why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        corpus_finding = _gradient_finding(found)
    except AnalysisError as error:
        show_error(error)
        return
    if corpus_finding is None:
        return
    texts, statistics = corpus_finding.finding.texts, corpus_finding.finding.statistics
    by_key = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(texts), sum(of_text.n_masked for of_text in texts)))
    facts = facts | {"command": f"{facts['command']} --gradients=gradients.parquet"}
    chart("gradients", gradient_lines(by_key), facts, wording.CLARK_3)


def _gradient_finding(
    found: Analysed[SurfaceSettings, SurfaceFinding],
) -> CorpusFinding[GradientFinding] | None:
    """Gradients that are cached or that the reader has requested; None while there are none."""
    visit = found.visit
    settings = GradientSettings(punctuation=found.settings.punctuation, alpha=found.settings.alpha)
    if (kept := kept_finding(visit, GRADIENT_ANALYSIS, settings)) is not None:
        return kept
    if visit.engine.files.head != "masked token":
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
    costs.say(visit.engine.files, costs.TRAINING * len(visit.texts), visit.texts)
    return None
