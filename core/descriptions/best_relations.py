"""The relation that each head finds best, chosen on one half of the texts and judged on the other."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from core.attention.settings import Head
from core.descriptions.facts import RelationFact
from core.relations.accuracy import DIRECTIONS, TextPredictions
from core.relations.cases import NO_RELATION, Cases, cases_of
from core.relations.offsets import best_offset, is_at_offset
from core.statistics.cases import N_HALVES, judge
from core.statistics.documents import document_numbers
from core.texts.relations import ROOT

LEAST_CASES: Final = 20
"""Of a relation in each half of the texts, for heads to be judged by it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """Cases, and what the heads make of them."""

    cases: Cases
    unit: Int[np.ndarray, " case"]
    """Number of each case's text, or of its document."""
    by_document: bool
    """Whether documents are known, so that they are the units of intervals and tests."""
    right: Bool[np.ndarray, "direction layer head case"]

    def of_half(self, chosen: Bool[np.ndarray, " case"], half: int) -> Int[np.ndarray, " case_of_half"]:
        """Places of the chosen cases of one half of the units."""
        return np.flatnonzero(chosen & (self.unit % N_HALVES == half))


def best_relations(texts: Sequence[TextPredictions], alpha: float = 0.05) -> dict[Head, RelationFact]:
    """What each head finds best among the relations with at least LEAST_CASES cases in each half of the texts.

    On the first, third, ... text (or document, where these are known) the relation and direction are chosen in which
    the head is furthest above the best fixed offset. It is judged on the other texts, against the offset that was best
    on the first half. p-values are multiplied by the number of heads (Bonferroni).

    Args:
        texts: one or more, under one checkpoint.
        alpha: the intervals cover 1 - alpha.

    Returns: by head, removed ones left out; empty where every relation has too few cases in one half.
    """
    cases = cases_of(
        [text.dependencies for text in texts],
        [text.predicted for text in texts],
        [text.has_tokens for text in texts],
    )
    documents = document_numbers([text.document for text in texts])
    judged = _Judged(
        cases=cases,
        unit=cases.text if documents is None else documents[cases.text],
        by_document=documents is not None,
        right=(cases.predicted == cases.heads) & (cases.heads != ROOT),
    )
    relations = _relations(judged)
    facts: dict[Head, RelationFact] = {}
    for (place, direction), heads in _chosen(judged, relations).items():
        facts |= _facts(judged, *relations[place], direction, heads, alpha)
    return facts


def _relations(judged: _Judged) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with enough cases in each half."""
    names, codes = judged.cases.names, judged.cases.codes
    named = [
        (name, (codes == code) & judged.cases.is_known) for code, name in enumerate(names) if name not in NO_RELATION
    ]
    return [
        (name, chosen)
        for name, chosen in named
        if min(len(judged.of_half(chosen, half)) for half in range(N_HALVES)) >= LEAST_CASES
    ]


def _chosen(
    judged: _Judged, relations: Sequence[tuple[str, Bool[np.ndarray, " case"]]]
) -> dict[tuple[int, int], list[Head]]:
    """Heads by the place of the relation, and the direction, in which they are furthest above the best offset."""
    chosen: defaultdict[tuple[int, int], list[Head]] = defaultdict(list)
    gains = []
    for _, of_relation in relations:
        seen = judged.of_half(of_relation, 0)
        baseline = best_offset(judged.cases.distances[seen], judged.cases.rooms[:, seen])
        gains.append(judged.right[..., seen].mean(axis=-1) - baseline.share)
    if gains:
        by_choice = np.concatenate(gains)
        for layer, head in zip(*np.nonzero(~judged.cases.absent.any(axis=0))):
            place, direction = divmod(int(by_choice[:, layer, head].argmax()), len(DIRECTIONS))
            chosen[place, direction].append((int(layer), int(head)))
    return chosen


def _facts(
    judged: _Judged,
    relation: str,
    of_relation: Bool[np.ndarray, " case"],
    direction: int,
    heads: Sequence[Head],
    alpha: float,
) -> dict[Head, RelationFact]:
    """How heads do at one relation on the other half."""
    distances, rooms = judged.cases.distances, judged.cases.rooms
    seen, unseen = (judged.of_half(of_relation, half) for half in range(N_HALVES))
    offset = best_offset(distances[seen], rooms[:, seen]).offset
    by_offset = is_at_offset(distances[unseen], rooms[:, unseen], offset)
    right = np.stack([judged.right[direction, layer, head, unseen] for layer, head in heads])
    on_unseen = judge(right, by_offset[None], judged.unit[unseen], alpha, by_document=judged.by_document)
    # The p-values are corrected for these heads already.
    other_heads = (~judged.cases.absent[direction]).sum() / len(heads)
    return {
        head: RelationFact(
            relation=relation,
            direction=DIRECTIONS[direction],
            accuracy=float(on_unseen.accuracy[0, row]),
            low=float(on_unseen.low[0, row]),
            high=float(on_unseen.high[0, row]),
            baseline=float(on_unseen.baselines[0, 0]),
            offset=offset,
            n_cases=len(unseen),
            p_value=min(1.0, float(other_heads * on_unseen.p_values[0, 0, row])),
        )
        for row, head in enumerate(heads)
    }
