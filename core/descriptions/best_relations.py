"""The relation that each head predicts best, selected on one half of the texts and evaluated on the other."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions.facts import KeyControl, RelationFact
from attention_sieve.core.relations.accuracy import TextPredictions, joined_of
from attention_sieve.core.relations.cases import NO_RELATION, RelationCases, cases_of
from attention_sieve.core.relations.offsets import best_offset, is_at_offset
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.statistics.cases import N_HALVES, judge
from attention_sieve.core.statistics.documents import document_numbers
from attention_sieve.core.statistics.key_matched import Joined, key_matched
from attention_sieve.core.texts.relations import ROOT

LEAST_CASES: Final = 20
"""Minimum number of cases of a relation in each half of the texts for heads to be evaluated on it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """Cases, and which heads predict them correctly."""

    cases: RelationCases
    joined: Joined
    """Its units are texts, or documents where known."""
    by_document: bool
    """Whether documents are known, so that they are the units of intervals and tests."""
    right: Bool[np.ndarray, "direction layer head case"]

    def of_half(self, mask: Bool[np.ndarray, " case"], half: int) -> Int[np.ndarray, " case_of_half"]:
        """Indices of the cases of a mask that belong to one half of the units."""
        return np.flatnonzero(mask & (self.joined.unit % N_HALVES == half))


def best_relations(texts: Sequence[TextPredictions], alpha: float = 0.05) -> dict[Head, RelationFact]:
    """The relation that each head predicts best, among those with at least LEAST_CASES cases in each half of the texts.

    The relation and direction in which the head is furthest above the best fixed offset are selected on the first,
    third, ... text (or document, where known), among those in which it beats the key-matched control there, if there
    are any. The head is evaluated on the other texts, against the offset that was
    best on the first half. p-values are multiplied by the number of heads (Bonferroni).

    Args:
        texts: one or more, under one checkpoint.
        alpha: the intervals cover 1 - alpha.

    Returns: facts by head, without removed heads; empty if every relation has too few cases in one half.
    """
    cases = cases_of(
        [text.dependencies for text in texts],
        [text.predicted for text in texts],
        [text.has_tokens for text in texts],
    )
    documents = document_numbers([text.document for text in texts])
    evaluated = _Judged(
        cases=cases,
        joined=joined_of(texts, cases, documents),
        by_document=documents is not None,
        right=(cases.predicted == cases.heads) & (cases.heads != ROOT),
    )
    relations = _relations(evaluated)
    facts: dict[Head, RelationFact] = {}
    for (index, direction), heads in _heads_by_relation(evaluated, relations, alpha).items():
        facts |= _facts(evaluated, *relations[index], direction, heads, alpha)
    return facts


def _relations(evaluated: _Judged) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with enough cases in each half."""
    names, codes = evaluated.cases.names, evaluated.cases.codes
    named = [
        (name, (codes == code) & evaluated.cases.is_known) for code, name in enumerate(names) if name not in NO_RELATION
    ]
    return [
        (name, mask)
        for name, mask in named
        if min(len(evaluated.of_half(mask, half)) for half in range(N_HALVES)) >= LEAST_CASES
    ]


def _heads_by_relation(
    evaluated: _Judged, relations: Sequence[tuple[str, Bool[np.ndarray, " case"]]], alpha: float
) -> dict[tuple[int, int], list[Head]]:
    """Heads by the indices of the relation and direction in which they are furthest above the best offset, among those
    that beat the key-matched control if any does."""
    is_there = ~evaluated.cases.absent
    heads_by_relation: defaultdict[tuple[int, int], list[Head]] = defaultdict(list)
    gains = []
    for _, mask in relations:
        first_half = evaluated.of_half(mask, 0)
        baseline = best_offset(evaluated.cases.distances[first_half], evaluated.cases.rooms[:, first_half])
        gain = evaluated.right[..., first_half].mean(axis=-1) - baseline.share
        control = key_matched(evaluated.joined.of(first_half), alpha, int(is_there.sum()))
        gains.append(gain - 2 * ~control.beats)  # a gain is above -1 and at most 1
    if gains:
        all_gains = np.concatenate(gains)
        for layer, head in zip(*np.nonzero(is_there.all(axis=0))):
            relation, direction = divmod(int(all_gains[:, layer, head].argmax()), len(DIRECTIONS))
            heads_by_relation[relation, direction].append((int(layer), int(head)))
    return heads_by_relation


def _facts(
    evaluated: _Judged,
    relation: str,
    mask: Bool[np.ndarray, " case"],
    direction: int,
    heads: Sequence[Head],
    alpha: float,
) -> dict[Head, RelationFact]:
    """Accuracies of heads at one relation on the second half."""
    distances, rooms = evaluated.cases.distances, evaluated.cases.rooms
    first_half, second_half = (evaluated.of_half(mask, half) for half in range(N_HALVES))
    offset = best_offset(distances[first_half], rooms[:, first_half]).offset
    baseline_right = is_at_offset(distances[second_half], rooms[:, second_half], offset)
    right = np.stack([evaluated.right[direction, layer, head, second_half] for layer, head in heads])
    joined = evaluated.joined.of(second_half)
    judgement = judge(right, baseline_right[None], joined.unit, alpha, by_document=evaluated.by_document)
    n_heads = int((~evaluated.cases.absent[direction]).sum())
    control = key_matched(joined, alpha, n_heads)
    correction = n_heads / len(heads)  # the p-values are already corrected for these heads
    return {
        head: RelationFact(
            relation=relation,
            direction=DIRECTIONS[direction],
            accuracy=float(judgement.accuracy[0, row]),
            low=float(judgement.low[0, row]),
            high=float(judgement.high[0, row]),
            baseline=float(judgement.baselines[0, 0]),
            offset=offset,
            n_cases=len(second_half),
            p_value=min(1.0, float(correction * judgement.p_values[0, 0, row])),
            control=KeyControl.of(control, (direction, *head)),
        )
        for row, head in enumerate(heads)
    }
