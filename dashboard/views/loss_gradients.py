"""How much the masked-language-model loss depends on attention, by layer and kind of key: computed when asked for."""

from typing import Final

import streamlit as st

from cache.inference import Answers
from cache.surface import GRADIENTS, found_gradients
from core.errors import AnalysisError
from core.surface_statistics import gradient_statistics
from dashboard import surface_wording as wording
from dashboard.figures.gradient_lines import gradient_lines
from dashboard.plain import show_error
from dashboard.views.asking import asked
from dashboard.views.charts import chart
from dashboard.views.corpus import policy
from dashboard.views.surface_focus import Surface

ASKED: Final = "gradients asked for"
"""Key of what a session has asked the gradients of."""


def gradients(surface: Surface) -> None:
    """Lines by layer, a button where they have yet to be computed, or why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        answers = _answers(surface)
    except AnalysisError as error:
        show_error(error)
        return
    if answers is None:
        return
    found = found_gradients(answers)
    statistics = gradient_statistics(found, surface.chosen.criterion.alpha)
    named = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(found), sum(of_text.n_masked for of_text in found)))
    chart("gradients", gradient_lines(named), surface.facts, wording.CLARK_3)


def _answers(surface: Surface) -> Answers | None:
    """Gradients that are kept, or that the reader asks for now; None while there are none."""
    inference, engine, texts = surface.inference, surface.engine, surface.texts
    settings = surface.chosen.pass_settings(engine)
    kept = inference.kept_answers(engine, GRADIENTS, texts, settings, too_long=policy())
    if kept is not None:
        return kept
    if inference.is_loaded(engine) and inference.checkpoint(engine).head != "masked token":
        st.info(wording.NO_LANGUAGE_MODEL)
        return None
    question = (engine, settings, texts)
    if st.session_state.get(ASKED) == question:
        return asked(inference, engine, surface.chosen, GRADIENTS, texts)
    st.button(
        wording.COMPUTE,
        icon=":material/calculate:",
        help=wording.COMPUTE_HELP,
        on_click=lambda: st.session_state.update({ASKED: question}),
    )
    return None
