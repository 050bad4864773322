"""Texts with gold mentions: read, cut to windows, run through the checkpoint, and scored."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import streamlit as st

from attention_sieve.cache.answers import Answers
from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.cache.store.recent import Recent
from attention_sieve.core.coreference.accuracy import Candidates, CoreferenceScores, MentionChoices, coreference_scores
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import MentionText, Windows, windows
from attention_sieve.core.coreference.question import choice_question
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.words import FromWord
from attention_sieve.dashboard import public, samples
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.parsers.coreference import wording

EXAMPLE: Final = wording.EXAMPLE.capitalize()
"""Name of the example texts."""
RECENT: Final = 32
"""Number of results that stay in memory."""
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


_golds: Final[Recent[str, Gold]] = Recent(RECENT)
_cut: Final[Recent[Hashable, Windows]] = Recent(RECENT)
_results: Final[Recent[Hashable, CoreferenceResults]] = Recent(RECENT)


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

    gold = _golds.get(file_id) or with_progress(("mentions", file_id), read, shared_wording.PARSING)
    if gold is not None:
        _golds.put(file_id, gold)
    return gold


@in_its_place
def coreference_results(visit: Visit, gold: Gold, settings: CoreferenceSettings) -> CoreferenceResults | None:
    """What every head chooses and how often that is right; None where the reader has stopped the work.

    Raises: AnalysisError of any stage.
    """
    alpha = visit.chosen.criterion.alpha
    key = (visit.engine, visit.settings, gold.sha256, settings, alpha)
    st.session_state[_OWN] = None if gold.name == EXAMPLE else (gold.name, gold.sha256, settings)
    results = _results.get(key)
    if results is not None:
        return results
    cut = _windows(visit, gold, settings.window)
    if cut is None:
        return None
    answers = _answers(visit, gold, cut, settings)
    if answers is None:
        return None
    others = next(candidates for candidates in get_args(Candidates) if candidates != settings.candidates)
    scores, among_others = (
        coreference_scores(cut.texts, answers.results, candidates, alpha)
        for candidates in (settings.candidates, others)
    )
    results = CoreferenceResults(windows=cut, choices=answers.results, scores=scores, among_others=among_others)
    _results.put(key, results)
    return results


def kept_own_mentions(visit: Visit) -> tuple[str, Sequence[MentionText], Answers[MentionChoices]] | None:
    """Name and windows of the reader's own file, and what every head chooses; None where there is none or that needs a
    pass.
    """
    own: tuple[str, str, CoreferenceSettings] | None = st.session_state.get(_OWN)
    if own is None:
        return None
    name, sha256, settings = own
    cut = _cut.get(("windows", visit.engine, sha256, settings.window))
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
    key = ("windows", visit.engine, gold.sha256, window)
    cut = _cut.get(key)
    if cut is None:
        cut = with_progress(
            key,
            lambda report: visit.inference.run(
                visit.engine, lambda checkpoint: windows(checkpoint, gold.texts, window), report
            ),
        )
        if cut is not None:
            _cut.put(key, cut)
    return cut
