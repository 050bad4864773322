"""The relation that each head predicts best, selected on some texts and evaluated on others."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    half: Int[np.ndarray, " case"]
    """0 for the cases on which a relation is selected, 1 for those on which it is evaluated."""
    right: Bool[np.ndarray, "direction layer head case"]

    def of_half(self, mask: Bool[np.ndarray, " case"], half: int) -> Int[np.ndarray, " case_of_half"]:
        """Indices of the cases of a mask that belong to one half."""
        return np.flatnonzero(mask & (self.half == half))


def best_relations(
    texts: Sequence[TextPredictions], alpha: float = 0.05, others: Sequence[TextPredictions] = ()
) -> dict[Head, RelationFact]:
    """The relation that each head predicts best, among those with at least LEAST_CASES cases in each half of the texts.

    The relation and direction in which the head is furthest above the best fixed offset are selected on the first,
    third, ... text (or document, where known), among those in which it beats the key-matched control there, if there
    are any. The head is evaluated on the other half, against the offset that was best on the first, and beside the one
    that is best there. Where there are `others`, all texts are the first half, and the others are the second. p-values
    are multiplied by the number of heads (Bonferroni).

    Args:
        texts: one or more, under one checkpoint.
        alpha: the intervals cover 1 - alpha.
        others: of another kind, under the same checkpoint, with documents if the texts have some.

    Returns: facts by head, without removed heads; empty if every relation has too few cases in one half.
    """
    every = (*texts, *others)
    cases = cases_of(
        [text.dependencies for text in every],
        [text.predicted for text in every],
        [text.has_tokens for text in every],
    )
    documents = document_numbers([text.document for text in every])
    joined = joined_of(every, cases, documents)
    evaluated = _Judged(
        cases=cases,
        joined=joined,
        half=(cases.text >= len(texts)).astype(int) if others else joined.unit % N_HALVES,
        by_document=documents is not None,
        right=(cases.predicted == cases.heads) & (cases.heads != ROOT),
    )
    relations = _relations(evaluated)
    facts: dict[Head, RelationFact] = {}
    for (index, direction), heads in _heads_by_relation(evaluated, relations, alpha).items():
        facts |= _facts(evaluated, *relations[index], direction, heads, alpha)
    return {head: replace(fact, on_others=bool(others)) for head, fact in facts.items()}


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
    halves = [evaluated.of_half(mask, half) for half in range(N_HALVES)]
    on_first, on_second = (best_offset(distances[half], rooms[:, half]) for half in halves)
    first_half, second_half = halves
    at_offset = is_at_offset(distances[second_half], rooms[:, second_half], on_first.offset)
    right = np.stack([evaluated.right[direction, layer, head] for layer, head in heads])
    joined = evaluated.joined.of(second_half)
    judgement = judge(right[:, second_half], at_offset[None], joined.unit, alpha, by_document=evaluated.by_document)
    n_heads = int((~evaluated.cases.absent[direction]).sum())
    control = key_matched(joined, alpha, n_heads)
    correction = n_heads / len(heads)  # the p-values are already corrected for these heads
    gains = right[:, first_half].mean(axis=1) - on_first.share
    return {
        head: RelationFact(
            relation=relation,
            direction=DIRECTIONS[direction],
            accuracy=float(judgement.accuracy[0, row]),
            low=float(judgement.low[0, row]),
            high=float(judgement.high[0, row]),
            baseline=on_second.share,
            offset=on_second.offset,
            least_gain=float(min(gains[row], judgement.accuracy[0, row] - on_second.share)),
            n_cases=len(second_half),
            p_value=float(min(1, correction * judgement.p_values[0, 0, row])),
            control=KeyControl.of(control, (direction, *head)),
        )
        for row, head in enumerate(heads)
    }
