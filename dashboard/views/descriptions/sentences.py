"""What each head does over the corpus, as facts and as sentences: from stored answers, or on request from passes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.answers import Answers, CorpusFinding
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS, CoreferenceFinding
from attention_sieve.core.descriptions.accuracies import HeadDescription, ReadMentions
from attention_sieve.core.descriptions.describe import Known, describe_heads, with_roles
from attention_sieve.core.passes.texts import queries_text
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import TextPredictions
from attention_sieve.core.roles.hypotheses import HeadTests, tests_of
from attention_sieve.core.roles.measures import USUAL, TextMeasures
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.roles import coarse_roles
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS, SurfaceFinding
from attention_sieve.core.surface.per_text import TextSurface
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.controls import SAMPLES, memory
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample
from attention_sieve.dashboard.views.asking import ask, find, kept, kept_finding
from attention_sieve.dashboard.views.corpus import kept_corpus
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.own_mentions import kept_own_mentions
from attention_sieve.dashboard.views.frame import Visit, can_read

if TYPE_CHECKING:
    import pandas as pd

Sentences = Sequence[Sequence[str]]
"""By layer and head."""
MOSTLY: Final = "mostly"
"""Column name in tables."""
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


_with_roles: Final[WeakKeyDictionary[HeadTests, tuple[Described, Described]]] = WeakKeyDictionary()
"""By tests: the descriptions without and with roles."""
_written: Final[WeakKeyDictionary[Described, Sentences]] = WeakKeyDictionary()
"""Sentences by description, needed again on every run of a page."""


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
    return visit.settings.kind in RELATION_ANALYSIS.question(RELATION_ANALYSIS.settings).kinds


def request_descriptions(visit: Visit) -> None:
    """Remember that the reader has requested descriptions over this corpus."""
    _requested().add((visit.engine, visit.settings, visit.texts))


def _requested() -> set[Hashable]:
    return st.session_state.setdefault(REQUESTED, set())


def _described(visit: Visit, tests: HeadTests, *, may_ask: bool) -> Described | None:
    find_or_read = find if may_ask else kept_finding
    surface = find_or_read(visit, SURFACE_ANALYSIS, SURFACE_ANALYSIS.settings)
    if surface is None:
        return None
    found = find_or_read(visit, RELATION_ANALYSIS, RELATION_ANALYSIS.settings) if can_parse(visit) else None
    mentions = known_mentions(visit, may_ask=may_ask)
    others = _others(visit, may_ask=may_ask)
    alpha = tests.settings.alpha
    finding = None if found is None else found.finding
    predictions = None if finding is None else finding.predictions
    described = memory().get_or_put(
        "described",
        (surface.finding, finding, mentions, others, alpha),
        lambda: _describe(visit, surface, predictions, mentions, others, alpha),
    )
    base, complete = _with_roles.get(tests, (None, None))
    if base is not described or complete is None:
        coarse = tests_of(tests, coarse_roles(tests.roles))
        complete = replace(described, heads=with_roles(described.heads, coarse.holds, coarse.roles))
        _with_roles[tests] = (described, complete)
    return complete


def passes_needed(visit: Visit) -> tuple[int, tuple[Text, ...]]:
    """Number of passes of single texts that descriptions take at most, and the texts."""
    of_each = 2 if can_parse(visit) else 1  # surface and relations
    mentions = (
        mention_sample()
        if visit.settings.kind in COREFERENCE_ANALYSIS.question(COREFERENCE_ANALYSIS.settings).kinds
        else ()
    )
    texts = (*visit.texts, *_other_texts(visit))
    return of_each * len(texts) + len(mentions), texts


def _other_texts(visit: Visit) -> tuple[Text, ...]:
    """The varied samples, for samples with single texts: these are too much alike to say what a head does elsewhere."""
    texts = read_sample(VARIED)
    is_single = SAMPLES.get(visit.choice.corpus) in ("both", "texts") and can_read(visit.settings.kind, texts[0])
    return texts if is_single else ()


def _others(visit: Visit, *, may_ask: bool) -> Known | None:
    """What is known of the heads on other texts. None without any, and where a pass is needed but not allowed or
    stopped."""
    texts = _other_texts(visit)
    if not texts:
        return None
    find_or_read = find if may_ask else kept_finding
    surface = find_or_read(visit, SURFACE_ANALYSIS, SURFACE_ANALYSIS.settings, texts)
    if surface is None:
        return None
    found = find_or_read(visit, RELATION_ANALYSIS, RELATION_ANALYSIS.settings, texts) if can_parse(visit) else None
    scores = (ask if may_ask else kept)(visit, SCORES, texts) if visit.engine.files.is_decoder else None
    return memory().get_or_put(
        "others",
        (surface.finding, found and found.finding, None if scores is None else scores.number),
        lambda: Known(
            surface=surface.finding.texts,
            predictions=None if found is None else found.finding.predictions,
            first_token=None if scores is None else _first_token(scores),
        ),
    )


def _describe(
    visit: Visit,
    surface: CorpusFinding[SurfaceFinding],
    predictions: tuple[TextPredictions, ...] | None,
    found_mentions: tuple[str, CoreferenceFinding] | None,
    others: Known | None,
    alpha: float,
) -> Described:
    """The descriptions without roles, which depend on tau."""
    mentions = None
    if found_mentions is not None:
        name, finding = found_mentions
        mentions = ReadMentions(name=name, texts=finding.texts, choices=finding.choices)
    scores = kept(visit, SCORES, visit.texts)
    whole = tuple(visit.texts[position] for position in surface.positions)
    facts = Known(
        surface=surface.finding.texts,
        predictions=predictions,
        mentions=mentions,
        first_token=None if scores is None else _first_token(scores),
        others=others,
    )
    return Described(
        heads=describe_heads(facts, alpha),
        texts=tuple(queries_text(text, visit.settings.kind) for text in whole),
        whole=whole,
        surface=surface.finding.texts,
        predictions=predictions,
        mentions=mentions,
        first_token=facts.first_token,
    )


def _first_token(scores: Answers[TextMeasures]) -> Float[np.ndarray, "text layer head"]:
    return np.stack([measures.shares[USUAL.shares.index("sink")] for measures in scores.results])


def known_mentions(visit: Visit, *, may_ask: bool) -> tuple[str, CoreferenceFinding] | None:
    """Name and finding of the reader's texts of the page Grammar if that is kept; else of the example texts.

    Args:
        may_ask: whether to run a pass over the example texts if needed.

    Returns: None if a pass is needed but not allowed or stopped, and for attention between two texts.
    """
    settings = COREFERENCE_ANALYSIS.settings
    if visit.settings.kind not in COREFERENCE_ANALYSIS.question(settings).kinds:
        return None
    if (own_mentions := kept_own_mentions(visit)) is not None:
        return own_mentions
    find_or_read = find if may_ask else kept_finding
    found = find_or_read(visit, COREFERENCE_ANALYSIS, settings, mention_sample())
    return None if found is None else (wording.EXAMPLE_TEXTS, found.finding)


def kept_sentences(visit: Visit, tests: HeadTests | None = None) -> Sentences | None:
    """The sentence of every head; None if that needs a pass or there are no texts.

    Args:
        tests: of the roles; by default those over the corpus.
    """
    if tests is None:
        tested = kept_corpus(visit) if visit.texts else None
        if tested is None:
            return None
        tests = tested.tests
    described = kept_descriptions(visit, tests)
    if described is None:
        return None
    if described not in _written:
        by_layer: dict[int, list[str]] = {}
        for (layer, _), description in described.heads.items():
            by_layer.setdefault(layer, []).append(wording.tip(description))
        _written[described] = list(by_layer.values())
    return _written[described]


def with_sentences(table: "pd.DataFrame", sentences: Sentences | None, column: str = MOSTLY) -> "pd.DataFrame":
    """Add the sentence of each head as the last column of a table; without sentences the table is unchanged.

    Args:
        table: with columns "layer" and "head", or head names in "head".
        column: name of the new column.
    """
    if sentences is None:
        return table
    by_name = {
        head_name(layer, head): sentence
        for layer, layer_sentences in enumerate(sentences)
        for head, sentence in enumerate(layer_sentences)
    }
    if "layer" in table:
        names = [head_name(layer, head) for layer, head in zip(table["layer"], table["head"])]
    else:
        names = table["head"].tolist()
    return table.assign(**{column: [by_name[name] for name in names]})
