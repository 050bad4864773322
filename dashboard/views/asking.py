"""Answers of forward passes for a page, computed with a progress bar if they are not in the store yet."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from attention_sieve.cache.answers import Answers, CorpusFinding, FindingRequest
from attention_sieve.cache.serving.requests import Report
from attention_sieve.cache.trees import NotKept
from attention_sieve.core.answering import Analysis, Finding, Item, Question, Result, Settings
from attention_sieve.core.errors import EveryTextTooLong
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.frame import Visit

Found = TypeVar("Found")
POLICIES: dict[str, TooLong] = {wording.LEAVE_OUT: "skip", wording.CUT: "truncate"}


@in_its_place
def find(
    visit: Visit,
    analysis: Analysis[Any, Item, Result, Settings, Finding],
    settings: Settings,
    inputs: tuple[Any, ...] | None = None,
    too_long: TooLong | None = None,
    doing: str = wording.SCORING,
) -> CorpusFinding[Finding] | None:
    """What an analysis finds; None where the reader has to do something first, which the page says.

    Args:
        inputs: what the analysis takes; None for the texts of the corpus.
        too_long: what happens to inputs that are too long; None where the analysis or else the reader says.

    Raises: AnalysisError of any stage.
    """
    request = _request(visit, analysis, settings, inputs, too_long)
    return _answered(
        request,
        lambda: visit.inference.kept_finding(request),
        lambda report: visit.inference.find(request, report),
        doing,
    )


def _request(
    visit: Visit,
    analysis: Analysis[Any, Item, Result, Settings, Finding],
    settings: Settings,
    inputs: tuple[Any, ...] | None,
    too_long: TooLong | None,
) -> FindingRequest[Any, Item, Result, Settings, Finding]:
    read, what_becomes = visit.texts if inputs is None else inputs, too_long or analysis.too_long or policy()
    return FindingRequest(visit.engine, analysis, read, settings, visit.settings, what_becomes)


@in_its_place
def ask(visit: Visit, question: Question[Item, Result], items: Sequence[Item]) -> Answers[Result] | None:
    """Answer a question about each item; None where the reader has to do something first, which the page says.

    Raises: AnalysisError of any stage.
    """
    request, too_long = (visit.engine, question, tuple(items), visit.settings), policy()
    return _answered(
        (request, too_long),
        lambda: visit.inference.kept(*request, too_long=too_long),
        lambda report: visit.inference.ask(*request, too_long=too_long, report=report),
    )


def _answered(
    request: object,
    kept: Callable[[], Found | None],
    compute: Callable[[Report], Found],
    doing: str = wording.SCORING,
) -> Found | None:
    """What is kept, or else computed under a progress bar; None if the reader stops it, or every text is too long."""
    try:
        return kept() or with_progress(request, compute, doing)
    except EveryTextTooLong as error:
        show_error(error)
        ask_about_long_texts(error.texts)
        return None


@in_its_place
def trees_of(visit: Visit, texts: tuple[Text, ...]) -> list[Dependencies] | None:
    """The tree of each text, parsed if it is not kept; None if the reader stops the parsing."""
    try:
        return list(visit.inference.trees.kept(texts))
    except NotKept:
        return with_progress(
            ("trees", texts), lambda report: list(visit.inference.trees.of(texts, report)), wording.PARSING
        )


def kept_finding(
    visit: Visit,
    analysis: Analysis[Any, Item, Result, Settings, Finding],
    settings: Settings,
    inputs: tuple[Any, ...] | None = None,
    too_long: TooLong | None = None,
) -> CorpusFinding[Finding] | None:
    """Like `find`, but None where a text has to be parsed or passed, or the reader has to do something first."""
    try:
        return visit.inference.kept_finding(_request(visit, analysis, settings, inputs, too_long))
    except EveryTextTooLong:
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
