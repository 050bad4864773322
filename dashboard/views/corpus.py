"""The corpus as the pages need it: measured, tested, and said what was left out."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import CorpusMeasures, Engine, Inference
from core.errors import EveryTextTooLong
from core.hypotheses import HeadTests, role_tests
from core.measures import role_scores
from core.roles import ROLES
from core.texts import Text
from core.tokens import TooLong
from dashboard import controls, wording
from dashboard.plain import plain, show_error
from dashboard.progress import with_progress
from dashboard.state import Choice

POLICIES: dict[str, TooLong] = {wording.LEAVE_OUT: "skip", wording.CUT: "truncate"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Scores and tests of the chosen texts."""

    scores: Float[np.ndarray, "text role layer head"]
    tests: HeadTests
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""


def corpus(inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...]) -> Corpus | None:
    """Measure what is missing under a progress bar, then test; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    too_long, settings = policy(), chosen.pass_settings(engine)
    try:
        measured = inference.kept_measures(engine, texts, settings, too_long=too_long) or with_progress(
            (engine, texts, settings, too_long),
            lambda report: inference.measures(engine, texts, settings, too_long=too_long, report=report),
        )
    except EveryTextTooLong as error:
        show_error(error)
        ask_about_long_texts(error.texts)
        return None
    return None if measured is None else _tested(measured, chosen)


def kept_corpus(inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...]) -> Corpus | None:
    """The same where no pass is needed and nothing has to be said, else None."""
    try:
        measured = inference.kept_measures(engine, texts, chosen.pass_settings(engine), too_long=policy())
    except EveryTextTooLong:
        return None
    return None if measured is None else _tested(measured, chosen)


def readable(chosen: Choice, engine: Engine, texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """Texts that the chosen attention can read; says so where some have no target for a decoder."""
    if chosen.pass_settings(engine).kind not in ("decoder", "cross"):
        return texts
    pairs = tuple(text for text in texts if len(text.segments) == 2)
    if len(pairs) < len(texts):
        st.info(wording.without_target(len(texts) - len(pairs), len(texts)))
    return pairs


def ask_for_texts(chosen: Choice, given: tuple[Text, ...]) -> None:
    """Say how to give texts, where the reader has given none; if none could be read, that has been said."""
    if not given:
        st.info(wording.WAIT_UPLOAD if chosen.corpus == controls.UPLOAD else wording.WAIT_TYPED)


def ask_about_long_texts(texts: tuple[tuple[int, int], ...], guilty: str = "") -> None:
    """Say which texts are too long, if any, and let the reader leave them out or have them cut.

    Args:
        texts: place and number of tokens of each.
        guilty: the checkpoints that take less, where several read the texts.
    """
    if not texts:
        return
    st.warning(wording.too_long(texts, plain(guilty)), icon=":material/content_cut:")
    st.segmented_control(
        wording.TOO_LONG,
        tuple(POLICIES),
        default=wording.LEAVE_OUT,
        key="long_texts",
        required=True,
        bind="query-params",
        persist_state="session",
    )


def policy() -> TooLong:
    """What happens to texts that are too long."""
    return POLICIES[st.session_state.get("long_texts") or wording.LEAVE_OUT]


def _tested(measured: CorpusMeasures, chosen: Choice) -> Corpus:
    scores = role_scores(measured.measures, chosen.score_settings)
    tests = role_tests(scores, ROLES, chosen.criterion)
    return Corpus(scores=scores, tests=tests, too_long=measured.too_long)
