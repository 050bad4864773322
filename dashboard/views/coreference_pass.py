"""Gold mentions as the section Coreference needs them: read, cut to windows, passed and scored."""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from cache.coreference import COREFERENCE, MentionsAsked, found_choices
from cache.inference import Engine, Inference
from cache.recent import Recent
from core.coreference import Candidates, CoreferenceScores, MentionChoices, coreference_scores
from core.coreference_files import read_mentions
from core.mentions import MentionText, Windows, windows
from core.texts import MAX_BYTES
from core.words import FromWord
from dashboard import coreference_wording as wording
from dashboard import samples
from dashboard.progress import with_progress
from dashboard.state import Choice

RECENT: Final = 32
"""Results that stay in memory."""


@dataclass(frozen=True, eq=False)
class Gold:
    """Texts with mentions, as read."""

    name: str
    sha256: str
    texts: tuple[MentionText, ...]


@dataclass(frozen=True, kw_only=True)
class HowAsked:
    """What the reader asks of the texts."""

    candidates: Candidates
    from_word: FromWord
    """Which pieces of a mention's head word attend."""
    window: int
    """Tokens."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Coreference:
    """What passes found, and what it comes to."""

    windows: Windows
    choices: list[MentionChoices]
    scores: CoreferenceScores


def gold_mentions() -> Gold | None:
    """The texts that the reader chose; None while there is no file yet.

    Raises: TextError.
    """
    source = st.segmented_control(
        wording.SOURCE,
        (wording.EXAMPLE, wording.UPLOAD),
        default=wording.EXAMPLE,
        key="mentions from",
        required=True,
        bind="query-params",
        persist_state="session",
    )
    if source == wording.EXAMPLE:
        return _read(samples.MENTIONS.name, wording.EXAMPLE.capitalize(), samples.MENTIONS.read_bytes)
    uploaded = st.file_uploader(
        wording.UPLOAD_LABEL,
        type=["json", "jsonl", "tsv", "txt"],
        key="gold mentions",
        max_upload_size=MAX_BYTES // 10**6,
    )
    st.markdown(wording.UPLOAD_LIMITS)
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
    return None if uploaded is None else _read(uploaded.file_id, uploaded.name, uploaded.getvalue)


@st.cache_resource(max_entries=16, show_spinner=False)
def _read(file_id: str, name: str, _content: Callable[[], bytes]) -> Gold:
    """Read once per file."""
    content = _content()
    return Gold(name, hashlib.sha256(content).hexdigest(), read_mentions(content))


def coreference_of(
    inference: Inference, engine: Engine, chosen: Choice, gold: Gold, how: HowAsked
) -> Coreference | None:
    """What every head chooses and how often that is right; None where the reader has stopped it.

    Raises: AnalysisError of any stage.
    """
    settings, alpha = chosen.pass_settings(engine), chosen.criterion.alpha
    question = (engine, settings, gold.sha256, how, alpha)
    found = _results().get(question)
    if found is not None:
        return found
    cut = _windows(inference, engine, gold, how.window)
    if cut is None:
        return None
    items = [MentionsAsked(text, how.from_word) for text in cut.texts]
    answers = inference.kept_answers(engine, COREFERENCE, items, settings, too_long="truncate") or with_progress(
        ("coreference", engine, settings, gold.sha256, how.window, how.from_word),
        lambda report: inference.answers(engine, COREFERENCE, items, settings, too_long="truncate", report=report),
    )
    if answers is None:
        return None
    choices = found_choices(answers)
    scores = coreference_scores(cut.texts, choices, how.candidates, alpha)
    found = Coreference(windows=cut, choices=choices, scores=scores)
    _results().put(question, found, 1)
    return found


def _windows(inference: Inference, engine: Engine, gold: Gold, window: int) -> Windows | None:
    """The texts cut under the checkpoint's tokenizer."""
    question = ("windows", engine, gold.sha256, window)
    cut = _cut().get(question)
    if cut is None:
        cut = with_progress(
            question,
            lambda report: inference.run(engine, lambda checkpoint: windows(checkpoint, gold.texts, window), report),
        )
        if cut is not None:
            _cut().put(question, cut, 1)
    return cut


@st.cache_resource(show_spinner=False)
def _results() -> Recent[Hashable, Coreference]:
    return Recent(RECENT)


@st.cache_resource(show_spinner=False)
def _cut() -> Recent[Hashable, Windows]:
    return Recent(RECENT)
