"""Answers of forward passes for a page, computed with a progress bar if they are not in the store yet."""

from collections.abc import Sequence

import streamlit as st

from attention_sieve.cache.answers import Answers
from attention_sieve.core.errors import EveryTextTooLong
from attention_sieve.core.passes.question import Item, Question, Result
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.frame import Visit

POLICIES: dict[str, TooLong] = {wording.LEAVE_OUT: "skip", wording.CUT: "truncate"}


@in_its_place
def ask(visit: Visit, question: Question[Item, Result], items: Sequence[Item]) -> Answers[Result] | None:
    """Answer a question about each item; None where the reader has to do something first, which the page says.

    Args:
        visit: what the page works with.
        question: about each item.
        items: one or more.

    Raises: AnalysisError of any stage.
    """
    inference, engine, settings, too_long = visit.inference, visit.engine, visit.settings, policy()
    try:
        return inference.kept(engine, question, items, settings, too_long=too_long) or with_progress(
            (question, engine, tuple(items), settings, too_long),
            lambda report: inference.ask(engine, question, items, settings, too_long=too_long, report=report),
        )
    except EveryTextTooLong as error:
        show_error(error)
        ask_about_long_texts(error.texts)
        return None


def kept(visit: Visit, question: Question[Item, Result], items: Sequence[Item]) -> Answers[Result] | None:
    """Like `ask`, but None where a pass is needed or the reader has to do something first."""
    try:
        return visit.inference.kept(visit.engine, question, items, visit.settings, too_long=policy())
    except EveryTextTooLong:
        return None


def ask_about_long_texts(texts: tuple[tuple[int, int], ...], limiting: str = "") -> None:
    """Say which texts are too long, if any, and let the reader leave them out or have them cut.

    Args:
        texts: position and number of tokens of each text.
        limiting: names of the checkpoints with the smaller limit, where several read the texts.
    """
    if not texts:
        return
    st.warning(wording.too_long(texts, plain(limiting)), icon=":material/content_cut:")
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
