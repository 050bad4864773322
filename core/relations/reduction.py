"""Predictions of syntactic heads in many texts as series of numbers, for corpora of any size."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.answering import Reduction
from attention_sieve.core.relations.cases import WordPredictions
from attention_sieve.core.relations.question import ParsedText
from attention_sieve.core.relations.settings import DIRECTIONS, OFFSETS, RelationSettings
from attention_sieve.core.statistics.series import Series, Values
from attention_sieve.core.texts.relations import RELATIONS, ROOT, UNIVERSAL

RELATION_CASES: Final = "relations cases"
RELATION_RIGHT: Final = "relations right"
OFFSET_RIGHT: Final = "relations offset right"
RELATION_NAMES: Final = ("all", *RELATIONS)
"""Relations whose words are counted; "all" is without punct and root."""


def _values(texts: Sequence[ParsedText], predictions: Sequence[WordPredictions], _: RelationSettings) -> Values:
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


def _series(values: Values, _: Any) -> Mapping[str, Series]:
    return {name: Series(values=array) for name, array in values.items()}


def _cells(_: Any, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    n_relations = len(RELATION_NAMES)
    return {
        RELATION_CASES: (n_relations,),
        RELATION_RIGHT: (n_relations, len(DIRECTIONS), n_layers, n_heads),
        OFFSET_RIGHT: (n_relations, len(OFFSETS)),
    }


RELATION_REDUCTION: Final = Reduction(values=_values, series=_series, cells=_cells, columns=lambda _: {})
"""Number of words for which each head, and each fixed offset, predicts the syntactic head."""
