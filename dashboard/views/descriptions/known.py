"""Descriptions of all heads over the corpus: from stored answers, or on request from passes."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.answers import Answers
from attention_sieve.cache.store.recent import Recent
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions.describe import Known, describe_heads, with_roles
from attention_sieve.core.descriptions.facts import HeadDescription
from attention_sieve.core.descriptions.mentions import ReadMentions
from attention_sieve.core.passes.prepare import queries_text
from attention_sieve.core.relations.accuracy import TextPredictions
from attention_sieve.core.relations.question import PARSED_PREDICTIONS
from attention_sieve.core.roles.hypotheses import HeadTests, tests_of
from attention_sieve.core.roles.measures import USUAL, TextMeasures
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.roles import coarse_roles
from attention_sieve.core.surface.key_kinds import USUAL_SURFACE
from attention_sieve.core.surface.per_text import TextSurface
from attention_sieve.core.surface.question import surface_question
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.views.asking import ask, kept
from attention_sieve.dashboard.views.descriptions.mentions import known_mentions
from attention_sieve.dashboard.views.frame import Visit

AskFunction = Callable[..., Answers | None]
"""`ask` or `kept`."""
DESCRIBED_BYTES: Final = 64 * 2**20
"""Maximum size of the answers behind recent descriptions, for all sessions."""
REQUESTED: Final = "descriptions asked for"
"""Key of the checkpoints and corpora for which the reader has requested descriptions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    """Descriptions of the heads over a corpus, with the answers behind them."""

    heads: dict[Head, HeadDescription]
    texts: tuple[Text, ...]
    """The part of each text that the queries belong to."""
    whole: tuple[Text, ...]
    """The whole texts, including the keys."""
    surface: tuple[TextSurface, ...]
    predictions: tuple[TextPredictions, ...] | None
    """None if not computed."""
    mentions: ReadMentions | None
    """Other texts, with gold mentions; None if not computed."""
    first_token: Float[np.ndarray, "text layer head"] | None
    """As in attention_sieve.core.descriptions.describe.Known."""


_recent: Final[Recent[Hashable, Described]] = Recent(DESCRIBED_BYTES)
_with_roles: Final[WeakKeyDictionary[HeadTests, tuple[Described, Described]]] = WeakKeyDictionary()
"""By tests: the descriptions without and with roles."""


def kept_descriptions(visit: Visit, tests: HeadTests) -> Described | None:
    """Descriptions from stored answers; None if there are none."""
    return _described(visit, tests, may_ask=False)


@in_its_place
def requested_descriptions(visit: Visit, tests: HeadTests) -> Described | None:
    """Descriptions, with passes if the reader has requested them; None if passes are needed but not requested.

    Raises: AnalysisError of any stage.
    """
    return _described(visit, tests, may_ask=(visit.engine, visit.settings, visit.texts) in _requested())


def can_parse(visit: Visit) -> bool:
    """Whether queries and keys belong to the same text, so that a parse tree can join them."""
    return visit.settings.kind in PARSED_PREDICTIONS.kinds


def request_descriptions(visit: Visit) -> None:
    """Remember that the reader has requested descriptions over this corpus."""
    _requested().add((visit.engine, visit.settings, visit.texts))


def _requested() -> set[Hashable]:
    return st.session_state.setdefault(REQUESTED, set())


def _described(visit: Visit, tests: HeadTests, *, may_ask: bool) -> Described | None:
    ask_or_read: AskFunction = ask if may_ask else kept
    surface = ask_or_read(visit, surface_question(USUAL_SURFACE), visit.texts)
    if surface is None:
        return None
    predictions = ask_or_read(visit, PARSED_PREDICTIONS, visit.texts) if can_parse(visit) else None
    mentions = known_mentions(visit, may_ask=may_ask)
    alpha = tests.settings.alpha
    key = (surface, predictions, None if mentions is None else mentions.answers, alpha)
    described = _recent.get(key)
    if described is None:
        described = _describe(visit, surface, predictions, None if mentions is None else mentions.read_mentions, alpha)
        key_answers = [surface, predictions, None if mentions is None else mentions.answers]  # by the key
        _recent.put(key, described, sum(answers.n_bytes for answers in key_answers if answers is not None))
    base, complete = _with_roles.get(tests, (None, None))
    if base is not described or complete is None:
        coarse = tests_of(tests, coarse_roles(tests.roles))
        complete = replace(described, heads=with_roles(described.heads, coarse.holds, coarse.roles))
        _with_roles[tests] = (described, complete)
    return complete


def _describe(
    visit: Visit,
    surface: Answers[TextSurface],
    predictions: Answers[TextPredictions] | None,
    mentions: ReadMentions | None,
    alpha: float,
) -> Described:
    """The descriptions without roles, which depend on tau."""
    scores = kept(visit, SCORES, visit.texts)
    text_predictions = None if predictions is None else _with_documents(visit, predictions)
    whole = tuple(visit.texts[position] for position in surface.positions)
    facts = Known(
        surface=surface.results,
        predictions=text_predictions,
        mentions=mentions,
        first_token=None if scores is None else _first_token(scores),
    )
    return Described(
        heads=describe_heads(facts, alpha),
        texts=tuple(queries_text(text, visit.settings.kind) for text in whole),
        whole=whole,
        surface=surface.results,
        predictions=text_predictions,
        mentions=mentions,
        first_token=facts.first_token,
    )


def _with_documents(visit: Visit, predictions: Answers[TextPredictions]) -> tuple[TextPredictions, ...]:
    """Predictions of each text with its document, which is not part of stored answers."""
    documents = [visit.texts[position].document for position in predictions.positions]
    return tuple(
        text_predictions if document is None else replace(text_predictions, document=document)
        for text_predictions, document in zip(predictions.results, documents, strict=True)
    )


def _first_token(scores: Answers[TextMeasures]) -> Float[np.ndarray, "text layer head"]:
    return np.stack([measures.shares[USUAL.shares.index("sink")] for measures in scores.results])
