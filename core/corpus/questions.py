"""The questions that a corpus can be asked, and the series of numbers to which the answers reduce."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from core.corpus.settings import CorpusSettings, QuestionName
from core.corpus.statistics import TAUS, Series
from core.passes.question import Question
from core.relations.accuracy import DIRECTIONS, TextPredictions
from core.relations.offsets import OFFSETS
from core.relations.question import PARSED_PREDICTIONS
from core.roles.hypotheses import clearly_above
from core.roles.measures import TextMeasures, role_scores
from core.roles.question import SCORES, SCORES_WITHOUT_PARSER
from core.roles.roles import ROLES
from core.statistics.histogram import SCORE_BINS, SHARE_BINS
from core.surface.frequencies import FrequencyList, english_frequencies
from core.surface.key_kinds import USUAL_SURFACE
from core.surface.labels import NEAR, RARE, offset_counts, rare_chance, rare_values
from core.surface.per_text import SHARES, SPREAD, TextSurface
from core.surface.question import surface_question
from core.surface.statistics import text_values
from core.texts.relations import RELATIONS, ROOT, UNIVERSAL
from core.texts.text import Text

ROLE_SCORES: Final = "roles"
ABOVE_UNIFORM: Final = "roles above uniform"
UNIFORM: Final = "roles uniform"
GREATEST: Final = "roles greatest"
OUT_OF_REACH: Final = "roles out of reach"
SURFACE: Final = "surface"
SURFACE_NAMES: Final = (*SHARES, *SPREAD, *NEAR.values(), *RARE)
SURFACE_LAYERS: Final = "surface layers"
LAYER_NAMES: Final = ("agreement", "output agreement", "uniform entropy", "cls uniform entropy")
OFFSETS_AT: Final = "surface offsets"
OFFSETS_OF: Final = "surface offsets possible"
RARE_CHANCE: Final = "surface rare chance"
RELATION_CASES: Final = "relations cases"
RELATION_RIGHT: Final = "relations right"
OFFSET_RIGHT: Final = "relations offset right"
RELATION_NAMES: Final = ("all", *RELATIONS)
"""Relations whose words are counted; "all" is without punct and root."""
TOKENS: Final = "tokens"
Values = Mapping[str, np.ndarray]
"""Numbers of some texts, "text *cell", by the name of their series; NaN where there is none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusQuestion:
    """A question, and what is kept of its answers."""

    question: Question[Text, Any]
    values: Callable[[Sequence[Any]], Values]
    """The numbers of some texts, from their answers."""
    series: Callable[[Values], Mapping[str, Series]]
    """The numbers of all texts with what is kept of each series."""
    columns: Mapping[str, tuple[str, ...]]
    """Series that are written text by text -> names along their first axis after that of texts; layers and heads
    follow."""


def corpus_questions(settings: CorpusSettings) -> list[CorpusQuestion]:
    """What a corpus is asked, in order."""
    makers: dict[QuestionName, Callable[[CorpusSettings], CorpusQuestion]] = {
        "roles": _roles,
        "surface": _surface,
        "relations": _relations,
    }
    return [make(settings) for name, make in makers.items() if name in settings.questions]


def _roles(settings: CorpusSettings) -> CorpusQuestion:
    """Sieve bias scores, their references, and on how many texts no attention reaches a threshold."""

    def values(texts: Sequence[TextMeasures]) -> Values:
        scored = role_scores(texts, settings.of_scores)
        return {ROLE_SCORES: scored.scores, UNIFORM: scored.uniform, GREATEST: scored.greatest}

    def series(values: Values) -> Mapping[str, Series]:
        scores, uniform, greatest = values[ROLE_SCORES], values[UNIFORM], values[GREATEST]
        is_score = settings.scale == "score"
        short = np.stack([(greatest < tau).all(axis=2) for tau in TAUS], axis=1).astype(float)
        return {
            ROLE_SCORES: Series(
                values=scores, bins=SCORE_BINS if is_score else SHARE_BINS, uniform=uniform if is_score else None
            ),
            ABOVE_UNIFORM: Series(values=scores - clearly_above(uniform)),
            UNIFORM: Series(values=uniform),
            GREATEST: Series(values=greatest),
            OUT_OF_REACH: Series(values=short),
        }

    question = SCORES if settings.parses else SCORES_WITHOUT_PARSER
    columns = {ROLE_SCORES: ROLES, UNIFORM: ROLES}
    return CorpusQuestion(question=question, values=values, series=series, columns=columns)


def _surface(_: CorpusSettings) -> CorpusQuestion:
    """Surface statistics, and counts of the offsets of the most attended keys; rare words are those of English."""

    def series(values: Values) -> Mapping[str, Series]:
        bins = {SURFACE: SCORE_BINS}
        return {name: Series(values=each, bins=bins.get(name)) for name, each in values.items()}

    return CorpusQuestion(
        question=surface_question(USUAL_SURFACE),
        values=lambda texts: _surface_values(texts, _english()),
        series=series,
        columns={SURFACE: SURFACE_NAMES},
    )


@cache
def _english() -> FrequencyList:
    return english_frequencies()


def _surface_values(texts: Sequence[TextSurface], frequencies: FrequencyList) -> Values:
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    of_heads = [text_values(text) | rare_values(text, of_text) for text, of_text in zip(texts, ranks, strict=True)]
    offsets = [offset_counts(text) for text in texts]
    return {
        SURFACE: np.stack([np.stack([of[name] for name in SURFACE_NAMES]) for of in of_heads]).astype(np.float32),
        SURFACE_LAYERS: np.stack([_layer_values(text) for text in texts]),
        OFFSETS_AT: np.stack([at for at, _ in offsets]).astype(float),
        OFFSETS_OF: np.stack([of for _, of in offsets]).astype(float),
        RARE_CHANCE: np.array([rare_chance(of_text) for of_text in ranks]),
    }


def _layer_values(text: TextSurface) -> Float[np.ndarray, "statistic layer"]:
    return np.stack([text.agreement, text.output_agreement, text.uniform_entropy, text.cls_uniform_entropy])


def _relations(_: CorpusSettings) -> CorpusQuestion:
    """How many words each head leads to the word that they depend on, and each fixed offset."""
    return CorpusQuestion(
        question=PARSED_PREDICTIONS,
        values=_relation_values,
        series=lambda values: {name: Series(values=each) for name, each in values.items()},
        columns={},
    )


def _relation_values(texts: Sequence[TextPredictions]) -> Values:
    parts = [_of_text(text) for text in texts]
    cases, right, at_offset = (np.stack(each).astype(float) for each in zip(*parts, strict=True))
    return {RELATION_CASES: cases, RELATION_RIGHT: right, OFFSET_RIGHT: at_offset}


def _of_text(text: TextPredictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases "relation", right ones "relation direction layer head", and those at an offset "relation offset"."""
    tree = text.dependencies
    is_of = _of_relations(tree.relations)
    has_head = tree.heads != ROOT
    is_case = is_of & has_head & text.has_tokens & text.has_tokens[np.where(has_head, tree.heads, 0)]
    right = (text.predicted == tree.heads).reshape(len(DIRECTIONS), -1, len(tree.heads))
    distance = tree.heads - np.arange(len(tree.heads))
    at_offset = distance == np.array(OFFSETS)[:, None]
    weights = is_case.astype(float)
    counted = np.einsum("rw,dhw->rdh", weights, right.astype(float))
    shape = (len(is_case), *text.predicted.shape[:-1])
    return weights.sum(axis=1), counted.reshape(shape), weights @ at_offset.T


def _of_relations(relations: Sequence[str]) -> Bool[np.ndarray, "relation word"]:
    """Which words count for which of RELATION_NAMES."""
    names = [UNIVERSAL.get(relation, relation) for relation in relations]
    counts = np.array([name not in ("punct", "root") for name in names], bool)
    of_each = [np.array([name == each for name in names], bool) for each in RELATIONS]
    return np.stack([counts, *of_each])
