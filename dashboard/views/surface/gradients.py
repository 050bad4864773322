"""How much the masked-language-model loss depends on attention, by layer and kind of key; computed on request."""

from typing import Final

import streamlit as st

from attention_sieve.cache.answers import Answers
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.surface.per_text import TextGradients
from attention_sieve.core.surface.question import GRADIENTS
from attention_sieve.core.surface.statistics import gradient_statistics
from attention_sieve.dashboard.figures.surface.gradient_lines import gradient_lines
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views.asking import ask, policy
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.numbers import Surface

REQUESTED: Final = "gradients asked for"
"""Session-state key of the inputs for which the reader has requested gradients."""


def gradients(surface: Surface) -> None:
    """Draw lines by layer, a button to compute them, or the reason why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        answers = _answers(surface)
    except AnalysisError as error:
        show_error(error)
        return
    if answers is None:
        return
    texts = answers.results
    statistics = gradient_statistics(texts, surface.visit.chosen.criterion.alpha)
    by_key = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(texts), sum(of_text.n_masked for of_text in texts)))
    chart("gradients", gradient_lines(by_key), surface.facts, wording.CLARK_3)


def _answers(surface: Surface) -> Answers[TextGradients] | None:
    """Gradients that are cached or that the reader has requested; None while there are none."""
    visit = surface.visit
    inference, engine, texts, settings = visit.inference, visit.engine, visit.texts, visit.settings
    cached = inference.kept(engine, GRADIENTS, texts, settings, too_long=policy())
    if cached is not None:
        return cached
    if inference.is_loaded(engine) and inference.checkpoint(engine).head != "masked token":
        st.info(wording.NO_LANGUAGE_MODEL)
        return None
    question = (engine, settings, texts)
    if st.session_state.get(REQUESTED) == question:
        return ask(visit, GRADIENTS, texts)
    st.button(
        wording.COMPUTE,
        icon=":material/calculate:",
        help=wording.COMPUTE_HELP,
        on_click=lambda: st.session_state.update({REQUESTED: question}),
    )
    return None
