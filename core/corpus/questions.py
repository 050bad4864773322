"""The questions that can be asked about a corpus, and the series of numbers to which the answers are reduced."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.corpus.settings import CorpusSettings, QuestionName
from attention_sieve.core.corpus.statistics import TAUS, Series
from attention_sieve.core.passes.prepare import trees
from attention_sieve.core.passes.question import Question
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.relations.accuracy import WordPredictions
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.offsets import OFFSETS
from attention_sieve.core.relations.question import ParsedText
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.roles.hypotheses import clearly_above
from attention_sieve.core.roles.measures import TextMeasures, role_scores
from attention_sieve.core.roles.question import SCORES, SCORES_WITHOUT_PARSER
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.statistics.histogram import SCORE_BINS, SHARE_BINS
from attention_sieve.core.surface.frequencies import FrequencyList, english_frequencies
from attention_sieve.core.surface.key_kinds import USUAL_ROWS
from attention_sieve.core.surface.labels import NEAR, RARE, offset_counts, rare_chance, rare_values
from attention_sieve.core.surface.labels import OFFSETS as NEAR_OFFSETS
from attention_sieve.core.surface.per_text import SHARES, SPREAD, TextSurface
from attention_sieve.core.surface.question import surface_question
from attention_sieve.core.surface.statistics import text_values
from attention_sieve.core.texts.relations import RELATIONS, ROOT, UNIVERSAL
from attention_sieve.core.texts.text import Text

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
"""Arrays "text *cell" of some texts by name of the series; NaN for missing numbers."""


def cells_of(n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    """Axes of the numbers of one text, by name of the series, for a checkpoint with these numbers of layers and
    heads."""
    heads, n_roles, n_relations = (n_layers, n_heads), len(ROLES), len(RELATION_NAMES)
    n_near = len(NEAR_OFFSETS) + 1
    return {
        ROLE_SCORES: (n_roles, *heads),
        ABOVE_UNIFORM: (n_roles, *heads),
        UNIFORM: (n_roles, n_layers),
        GREATEST: (n_roles, n_layers),
        OUT_OF_REACH: (len(TAUS), n_roles),
        SURFACE: (len(SURFACE_NAMES), *heads),
        SURFACE_LAYERS: (len(LAYER_NAMES), n_layers),
        OFFSETS_AT: (n_near, *heads),
        OFFSETS_OF: (n_near,),
        RARE_CHANCE: (),
        RELATION_CASES: (n_relations,),
        RELATION_RIGHT: (n_relations, len(DIRECTIONS), *heads),
        OFFSET_RIGHT: (n_relations, len(OFFSETS)),
        TOKENS: (),
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusQuestion:
    """A question, and the reduction of its answers to series of numbers."""

    question: Question[Any, Any]
    values: Callable[[Sequence[Any], Sequence[Any]], Values]
    """Maps the items of some texts and their answers to their numbers."""
    series: Callable[[Values], Mapping[str, Series]]
    """Maps the numbers of all texts to series, which define the statistics to keep."""
    columns: Mapping[str, tuple[str, ...]]
    """Series that are written text by text -> names along the second axis; layers and heads follow."""
    items: Callable[[Sequence[PassText], Sequence[Text]], Sequence[Any]] = lambda _, texts: texts
    """Maps some texts, prepared and as they are, to the items of the question."""


def corpus_questions(settings: CorpusSettings) -> list[CorpusQuestion]:
    """The questions of a corpus, in order."""
    builders: dict[QuestionName, Callable[[CorpusSettings], CorpusQuestion]] = {
        "roles": _roles,
        "surface": _surface,
        "relations": _relations,
    }
    return [build(settings) for name, build in builders.items() if name in settings.questions]


def _roles(settings: CorpusSettings) -> CorpusQuestion:
    """Sieve bias scores, their references, and the number of texts on which no attention reaches a threshold."""

    def values(_: Sequence[Text], texts: Sequence[TextMeasures]) -> Values:
        scored = role_scores(texts, settings.of_scores)
        return {ROLE_SCORES: scored.scores, UNIFORM: scored.uniform, GREATEST: scored.greatest}

    def series(values: Values) -> Mapping[str, Series]:
        scores, uniform, greatest = values[ROLE_SCORES], values[UNIFORM], values[GREATEST]
        is_score = settings.scale == "score"
        out_of_reach = np.stack([(greatest < tau).all(axis=2) for tau in TAUS], axis=1).astype(float)
        return {
            ROLE_SCORES: Series(
                values=scores, bins=SCORE_BINS if is_score else SHARE_BINS, uniform=uniform if is_score else None
            ),
            ABOVE_UNIFORM: Series(values=scores - clearly_above(uniform)),
            UNIFORM: Series(values=uniform),
            GREATEST: Series(values=greatest),
            OUT_OF_REACH: Series(values=out_of_reach),
        }

    question = SCORES if settings.parses else SCORES_WITHOUT_PARSER
    columns = {ROLE_SCORES: ROLES, UNIFORM: ROLES}
    return CorpusQuestion(question=question, values=values, series=series, columns=columns)


def _surface(_: CorpusSettings) -> CorpusQuestion:
    """Surface statistics, and counts of the offsets of the most attended keys; rare words are those of English."""

    def series(values: Values) -> Mapping[str, Series]:
        bins = {SURFACE: SCORE_BINS}
        return {name: Series(values=array, bins=bins.get(name)) for name, array in values.items()}

    return CorpusQuestion(
        question=surface_question(USUAL_ROWS),
        values=lambda _, texts: _surface_values(texts, _english()),
        series=series,
        columns={SURFACE: SURFACE_NAMES},
    )


@cache
def _english() -> FrequencyList:
    return english_frequencies()


def _surface_values(texts: Sequence[TextSurface], frequencies: FrequencyList) -> Values:
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    of_heads = [
        text_values(text) | rare_values(text, text_ranks) for text, text_ranks in zip(texts, ranks, strict=True)
    ]
    offsets = [offset_counts(text) for text in texts]
    return {
        SURFACE: np.stack([np.stack([values[name] for name in SURFACE_NAMES]) for values in of_heads]).astype(
            np.float32
        ),
        SURFACE_LAYERS: np.stack([_layer_values(text) for text in texts]),
        OFFSETS_AT: np.stack([at for at, _ in offsets]).astype(float),
        OFFSETS_OF: np.stack([statistics for _, statistics in offsets]).astype(float),
        RARE_CHANCE: np.array([rare_chance(text_ranks) for text_ranks in ranks]),
    }


def _layer_values(text: TextSurface) -> Float[np.ndarray, "statistic layer"]:
    return np.stack([text.agreement, text.output_agreement, text.uniform_entropy, text.cls_uniform_entropy])


def _relations(_: CorpusSettings) -> CorpusQuestion:
    """Number of words for which each head, and each fixed offset, predicts the syntactic head."""
    return CorpusQuestion(
        question=RELATION_ANALYSIS.question(RELATION_ANALYSIS.settings),
        values=_relation_values,
        series=lambda values: {name: Series(values=array) for name, array in values.items()},
        columns={},
        items=_parsed_texts,
    )


def _parsed_texts(prepared: Sequence[PassText], texts: Sequence[Text]) -> Sequence[ParsedText]:
    """Texts with the trees of what is read of them; of a text that is cut, the rest is not parsed."""
    parsed = zip(texts, trees(prepared, texts), strict=True)
    return [ParsedText.of(text, text_and_tree[1]) for text, text_and_tree in parsed if text_and_tree is not None]


def _relation_values(texts: Sequence[ParsedText], predictions: Sequence[WordPredictions]) -> Values:
    counts = [_of_text(text, predicted) for text, predicted in zip(texts, predictions, strict=True)]
    cases, right, at_offset = (np.stack(arrays).astype(float) for arrays in zip(*counts, strict=True))
    return {RELATION_CASES: cases, RELATION_RIGHT: right, OFFSET_RIGHT: at_offset}


def _of_text(text: ParsedText, predictions: WordPredictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases "relation", right ones "relation direction layer head", and those at an offset "relation offset"."""
    tree = text.tree
    is_of = _of_relations(tree.relations)
    has_head = tree.heads != ROOT
    has_tokens, predicted = predictions.has_tokens, predictions.predicted
    is_case = is_of & has_head & has_tokens & has_tokens[np.where(has_head, tree.heads, 0)]
    right = (predicted == tree.heads).reshape(len(DIRECTIONS), -1, len(tree.heads))
    distance = tree.heads - np.arange(len(tree.heads))
    at_offset = distance == np.array(OFFSETS)[:, None]
    weights = is_case.astype(float)
    n_right = np.einsum("rw,dhw->rdh", weights, right.astype(float))
    shape = (len(is_case), *predicted.shape[:-1])
    return weights.sum(axis=1), n_right.reshape(shape), weights @ at_offset.T


def _of_relations(relations: Sequence[str]) -> Bool[np.ndarray, "relation word"]:
    """Whether each word is counted for each of RELATION_NAMES."""
    names = [UNIVERSAL.get(relation, relation) for relation in relations]
    counts = np.array([name not in ("punct", "root") for name in names], bool)
    by_relation = [np.array([name == target for name in names], bool) for target in RELATIONS]
    return np.stack([counts, *by_relation])
