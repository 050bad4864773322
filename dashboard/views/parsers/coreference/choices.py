"""Texts with gold mentions: read, cut to windows, run through the checkpoint, and scored."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import streamlit as st

from attention_sieve.cache.answers import Answers
from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.coreference.accuracy import Candidates, CoreferenceScores, MentionChoices, coreference_scores
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import MentionText, Windows, windows
from attention_sieve.core.coreference.question import choice_question
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.words import FromWord
from attention_sieve.dashboard import public, samples
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.parsers.coreference import wording

EXAMPLE: Final = wording.EXAMPLE.capitalize()
"""Name of the example texts."""
_OWN: Final = "own texts with mentions"
"""Session key of the name and digest of the reader's file as last read, with the settings."""


@dataclass(frozen=True, eq=False)
class Gold:
    """Texts with gold mentions, as read from a file."""

    name: str
    sha256: str
    texts: tuple[MentionText, ...]


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """Settings of the section, besides those that pages share."""

    candidates: Candidates
    from_word: FromWord
    """Which pieces of a mention's head word attend."""
    window: int
    """Maximum tokens of a window that longer texts are cut to."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreferenceResults:
    """What every head chooses, and how often that is right."""

    windows: Windows
    choices: tuple[MentionChoices, ...]
    scores: CoreferenceScores
    """Among the candidates of the settings."""
    among_others: CoreferenceScores
    """Among the other candidates."""


def gold_mentions(*, is_example: bool) -> Gold | None:
    """The example texts, or those of the reader's file; None while there is none, or where reading was stopped.

    Raises: TextError.
    """
    if is_example:
        return _read(samples.MENTIONS.name, EXAMPLE, samples.MENTIONS.read_bytes)
    uploaded = st.file_uploader(
        wording.UPLOAD_LABEL,
        type=["json", "jsonl", "tsv", "txt"],
        key="gold mentions",
        max_upload_size=public.upload_megabytes(),
    )
    st.markdown(wording.upload_limits(public.upload_megabytes()))
    st.download_button(
        wording.TEMPLATE,
        samples.MENTIONS.read_bytes,
        file_name=samples.MENTIONS.name,
        mime="application/jsonl",
        key="download mentions example",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
    if uploaded is None:
        st.info(wording.WAIT)
        return None
    return _read(uploaded.file_id, uploaded.name, uploaded.getvalue)


@in_its_place
def _read(file_id: str, name: str, content: Callable[[], bytes]) -> Gold | None:
    """Read once per file; None where the reader has stopped that."""

    def read(report: Report) -> Gold:
        def counted(trees: Iterable[Dependencies], n_texts: int) -> Iterator[Dependencies]:
            for n_done, tree in enumerate(trees, start=1):
                report(Status(done=n_done, total=n_texts, seconds_left=None, n_waiting_before=0))
                yield tree

        file_bytes = content()
        return Gold(name, hashlib.sha256(file_bytes).hexdigest(), read_mentions(file_bytes, counted))

    return memory().get_or_put(
        "mentions", file_id, lambda: with_progress(("mentions", file_id), read, shared_wording.PARSING)
    )


@in_its_place
def coreference_results(visit: Visit, gold: Gold, settings: CoreferenceSettings) -> CoreferenceResults | None:
    """What every head chooses and how often that is right; None where the reader has stopped the work.

    Raises: AnalysisError of any stage.
    """
    key = (visit.engine, visit.settings, gold.sha256, settings, visit.chosen.criterion.alpha)
    st.session_state[_OWN] = None if gold.name == EXAMPLE else (gold.name, gold.sha256, settings)
    return memory().get_or_put("coreference", key, lambda: _computed(visit, gold, settings))


def _computed(visit: Visit, gold: Gold, settings: CoreferenceSettings) -> CoreferenceResults | None:
    cut = _windows(visit, gold, settings.window)
    if cut is None:
        return None
    answers = _answers(visit, gold, cut, settings)
    if answers is None:
        return None
    others = next(candidates for candidates in get_args(Candidates) if candidates != settings.candidates)
    scores, among_others = (
        coreference_scores(cut.texts, answers.results, candidates, visit.chosen.criterion.alpha)
        for candidates in (settings.candidates, others)
    )
    return CoreferenceResults(windows=cut, choices=answers.results, scores=scores, among_others=among_others)


def kept_own_mentions(visit: Visit) -> tuple[str, Sequence[MentionText], Answers[MentionChoices]] | None:
    """Name and windows of the reader's own file, and what every head chooses; None where there is none or that needs a
    pass.
    """
    own: tuple[str, str, CoreferenceSettings] | None = st.session_state.get(_OWN)
    if own is None:
        return None
    name, sha256, settings = own
    cut: Windows | None = memory().get("windows", (visit.engine, sha256, settings.window))
    if cut is None:
        return None
    question = choice_question(settings.from_word)
    answers = visit.inference.kept(visit.engine, question, cut.texts, visit.settings, too_long="truncate")
    return None if answers is None else (name, cut.texts, answers)


def _answers(visit: Visit, gold: Gold, cut: Windows, settings: CoreferenceSettings) -> Answers[MentionChoices] | None:
    """What every head chooses in each window; windows that the checkpoint cannot take whole are cut."""
    inference, engine, question = visit.inference, visit.engine, choice_question(settings.from_word)
    return inference.kept(engine, question, cut.texts, visit.settings, too_long="truncate") or with_progress(
        ("coreference", engine, visit.settings, gold.sha256, settings.window, settings.from_word),
        lambda report: inference.ask(engine, question, cut.texts, visit.settings, too_long="truncate", report=report),
    )


def _windows(visit: Visit, gold: Gold, window: int) -> Windows | None:
    """The texts, cut with the checkpoint's tokenizer."""
    key = (visit.engine, gold.sha256, window)

    def cut(report: Report) -> Windows:
        return visit.inference.run(visit.engine, lambda checkpoint: windows(checkpoint, gold.texts, window), report)

    return memory().get_or_put("windows", key, lambda: with_progress(("windows", *key), cut))
