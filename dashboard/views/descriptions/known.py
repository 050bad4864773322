"""Descriptions of all heads over the corpus: from what is stored, or after a click from passes."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.answers import Answers
from cache.store.recent import Recent
from core.attention.settings import Head
from core.descriptions.describe import Known, describe_heads, with_roles
from core.descriptions.facts import HeadDescription
from core.descriptions.mentions import ReadMentions
from core.passes.prepare import queries_text
from core.relations.accuracy import TextPredictions
from core.relations.question import PARSED_PREDICTIONS
from core.roles.hypotheses import HeadTests
from core.roles.measures import SHARES, TextMeasures
from core.roles.question import SCORES
from core.roles.roles import COARSE_ROLES, ROLES
from core.surface.key_kinds import USUAL_SURFACE
from core.surface.per_text import TextSurface
from core.surface.question import surface_question
from core.texts.text import Text
from dashboard.progress import in_its_place
from dashboard.views.asking import ask, kept
from dashboard.views.descriptions.mentions import known_mentions
from dashboard.views.frame import Visit

Asking = Callable[..., Answers | None]
"""`ask` or `kept`."""
DESCRIBED_BYTES: Final = 64 * 2**20
"""Of the answers under the latest descriptions, for all readers."""
ASKED: Final = "descriptions asked for"
"""The corpora, each under a checkpoint, whose heads the reader wants described."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    """The heads over a corpus."""

    heads: dict[Head, HeadDescription]
    texts: tuple[Text, ...]
    """What the queries read, of each text."""
    whole: tuple[Text, ...]
    """The texts, with what the keys are of."""
    surface: tuple[TextSurface, ...]
    predictions: tuple[TextPredictions, ...] | None
    """None where they are not known."""
    mentions: ReadMentions | None
    """Texts with gold mentions, which are others; None where they are not read."""
    first_token: Float[np.ndarray, "text layer head"] | None
    """As in core.descriptions.describe.Known."""


_recent: Final[Recent[Hashable, Described]] = Recent(DESCRIBED_BYTES)
_with_roles: Final[WeakKeyDictionary[HeadTests, tuple[Described, Described]]] = WeakKeyDictionary()
"""Of the tests whose roles were told last: what was known of the heads, and the same with their roles."""


def kept_descriptions(visit: Visit, tests: HeadTests) -> Described | None:
    """The heads over the corpus, as far as no pass is needed; None where nothing is known without one."""
    return _described(visit, tests, may_ask=False)


@in_its_place
def asked_descriptions(visit: Visit, tests: HeadTests) -> Described | None:
    """The same with passes where the reader has asked for them; None where passes are needed and nobody has.

    Raises: AnalysisError of any stage.
    """
    return _described(visit, tests, may_ask=(visit.engine, visit.settings, visit.texts) in _asked())


def can_parse(visit: Visit) -> bool:
    """Whether the words that attend and those that are attended to are of one text, which a tree can join."""
    return visit.settings.kind in PARSED_PREDICTIONS.kinds


def ask_for_them(visit: Visit) -> None:
    """Remember that the reader wants the heads described over this corpus."""
    _asked().add((visit.engine, visit.settings, visit.texts))


def _asked() -> set[Hashable]:
    return st.session_state.setdefault(ASKED, set())


def _described(visit: Visit, tests: HeadTests, *, may_ask: bool) -> Described | None:
    asking: Asking = ask if may_ask else kept
    surface = asking(visit, surface_question(USUAL_SURFACE), visit.texts)
    if surface is None:
        return None
    predictions = asking(visit, PARSED_PREDICTIONS, visit.texts) if can_parse(visit) else None
    mentions = known_mentions(visit, may_ask=may_ask)
    alpha = tests.settings.alpha
    key = (surface, predictions, None if mentions is None else mentions.answers, alpha)
    known = _recent.get(key)
    if known is None:
        known = _describe(visit, surface, predictions, None if mentions is None else mentions.read, alpha)
        held = [surface, predictions, None if mentions is None else mentions.answers]  # by the key
        _recent.put(key, known, sum(answers.n_bytes for answers in held if answers is not None))
    before, told = _with_roles.get(tests, (None, None))
    if before is not known or told is None:
        coarse = [ROLES.index(role) for role in COARSE_ROLES]
        told = replace(known, heads=with_roles(known.heads, tests.holds[coarse]))
        _with_roles[tests] = (known, told)
    return told


def _describe(
    visit: Visit,
    surface: Answers[TextSurface],
    predictions: Answers[TextPredictions] | None,
    mentions: ReadMentions | None,
    alpha: float,
) -> Described:
    """Everything but the roles, which move with tau."""
    measured = kept(visit, SCORES, visit.texts)
    of_texts = None if predictions is None else _with_documents(visit, predictions)
    whole = tuple(visit.texts[place] for place in surface.positions)
    known = Known(
        surface=surface.results,
        predictions=of_texts,
        mentions=mentions,
        first_token=None if measured is None else _first_token(measured),
    )
    return Described(
        heads=describe_heads(known, alpha),
        texts=tuple(queries_text(text, visit.settings.kind) for text in whole),
        whole=whole,
        surface=surface.results,
        predictions=of_texts,
        mentions=mentions,
        first_token=known.first_token,
    )


def _with_documents(visit: Visit, predictions: Answers[TextPredictions]) -> tuple[TextPredictions, ...]:
    """The predictions of each text with the text's document, which no stored answer depends on."""
    documents = [visit.texts[place].document for place in predictions.positions]
    return tuple(
        of_text if document is None else replace(of_text, document=document)
        for of_text, document in zip(predictions.results, documents, strict=True)
    )


def _first_token(measured: Answers[TextMeasures]) -> Float[np.ndarray, "text layer head"]:
    return np.stack([of_text.shares[SHARES.index("sink")] for of_text in measured.results])
