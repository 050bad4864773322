"""Heads as parsers: accuracy of every head at predicting the syntactic head of a word, parsed or gold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.relations.cases import NO_RELATION, RelationCases, TextPredictions, cases_of
from attention_sieve.core.relations.settings import (
    AS_IN_PAPER,
    DIRECTIONS,
    OFFSETS,
    VOITA_MARGIN,
    Direction,
    Margin,
    RelationSettings,
)
from attention_sieve.core.statistics.cases import HeadCases, KeyMatched, judge
from attention_sieve.core.texts.relations import ROOT

NAN: Final = float("nan")
ALL: Final = "all"
"""All relations together, by default without punct and root."""
NOWHERE: Final = -2
"""Stands for a word that no word's head is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OffsetBaseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Accuracy, 0 to 1."""
    shares: dict[int, float]
    """Accuracy of each offset."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationAccuracy:
    """Accuracy of every attention head at one relation."""

    relation: str
    n_cases: int
    """Dependents with this relation; both dependent and head have tokens."""
    n_left_out: int
    """Dependents that are excluded because they or their heads have no tokens (truncated or unknown)."""
    baseline: OffsetBaseline
    """Baseline on the same cases."""
    nearest: float
    """Accuracy of a baseline that knows which words are right in some case of its text, see `among_right_words`."""
    random_choice: float
    """Accuracy of a random choice among these words."""
    accuracy: Float[np.ndarray, "direction layer head"]
    """Share of the cases, 0 to 1; NaN for a head that was removed."""
    n_documents: int | None
    """Documents with cases; None if no document is known, so that cases count as independent."""
    low: Float[np.ndarray, "direction layer head"]
    high: Float[np.ndarray, "direction layer head"]
    """Interval by document, or Wilson's if none is known."""
    design_effect: Float[np.ndarray, "direction layer head"]
    """As in attention_sieve.core.statistics.cases.Judgement: of the variance of `accuracy`."""
    p_values: Float[np.ndarray, "direction layer head"]
    """p-values against the baseline, corrected for the number of heads and directions."""
    key_matched: KeyMatched
    """Attention to the right word against what other words give to the same word, by direction, layer and head. In both
    directions the right word is the one looked at: the syntactic head, then the dependent."""
    best: tuple[Direction, int, int]
    """Direction, layer and head with the highest accuracy on all cases, among those that beat this control on them, if
    any does."""
    best_of_halves: tuple[tuple[Direction, int, int], ...]
    """The best on the first, third, ... document, and on the second, fourth, ...; of texts if no document is known;
    empty if a half has no cases."""
    best_accuracy: float
    """Held-out accuracy: each of these evaluated on the half that it was not selected on, pooled; NaN if a half has no
    cases. Unlike `accuracy` at `best`, it is an unbiased accuracy of "the best head"."""
    best_low: float
    best_high: float
    """Its interval, as of `accuracy`."""
    best_design_effect: float
    """Of its variance."""
    p_value: float
    """p-value of `best`."""
    best_key_matched: KeyMatched
    """Of the heads of `best_of_halves` on the half that each was not selected on, as `key_matched` but uncorrected; of
    `best` if a half has no cases."""


def relation_accuracies(
    texts: Sequence[TextPredictions], settings: RelationSettings = AS_IN_PAPER
) -> list[RelationAccuracy]:
    """Accuracies of every relation with a case, most cases first, after ALL. Without punct and root.

    A case is a dependent with tokens whose head has tokens, too. Words of a text that has two segments compete
    with each other; a head that attends to no other word is wrong.

    Whether a head beats the baseline is tested on the same cases, one-sided. If documents are known, these are the
    units of tests and intervals (`attention_sieve.core.statistics.documents`), and halves are drawn by document; a text
    without one counts as a document of its own. If none is known, cases count as independent: intervals are Wilson's,
    and the test is McNemar's exact one, by which half of the cases that only one of the two gets right are expected to
    be the head's by chance. p-values are multiplied by the number of heads and directions (Bonferroni): valid for any
    dependence between heads, and for any head selected afterwards, such as the best, whose p-value need not be the
    smallest. There is no correction for the number of relations, and the baseline's offset is chosen on the same cases,
    in its favour.

    The best head is named among those that also beat a second control (`attention_sieve.core.statistics.cases`):
    they give the right word more attention from the word that the relation joins to it than the text's other words give
    it. Its units are documents, or texts if no document is known. A case read at a clitic is not compared.

    Args:
        texts: predictions under one checkpoint.
        settings: how they are evaluated; alpha is also the level of the second control.

    Source: Clark et al. 2019, section 4.2 and table 1, where the best head is chosen and reported on the same
        sentences, without a test. The default follows the paper; AS_IN_CODE counts as their code does, except for the
        clitic. Their code recognises it by its form, 's or s', where a slip in operator precedence lets s' count after
        any relation, and it looks one word past the end of the sentence; here the clitic is the next word, if it
        depends on the possessor as `possessive` or `case`.
    """
    if not texts:
        return []
    cases = cases_of(texts, at_clitic=settings.at_clitic, reading=settings.reading)
    accuracies = [_accuracy(name, mask, cases, settings) for name, mask in _relations(cases, settings.every_word)]
    return sorted(accuracies, key=lambda accuracy: (accuracy.relation != ALL, -accuracy.n_cases))


def _relations(cases: RelationCases, every_word: bool) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with a case; ALL replaces a relation of that name in a file."""
    named = [(name, cases.codes == code) for code, name in enumerate(cases.names) if name not in NO_RELATION]
    codes_of_all = [code for code, name in enumerate(cases.names) if every_word or name not in NO_RELATION]
    relations = [(ALL, np.isin(cases.codes, codes_of_all)), *((name, mask) for name, mask in named if name != ALL)]
    return [(name, mask) for name, mask in relations if (mask & cases.is_known).any()]


def _accuracy(
    relation: str,
    mask: Bool[np.ndarray, " case"],
    cases: RelationCases,
    settings: RelationSettings,
) -> RelationAccuracy:
    known = np.flatnonzero(mask & cases.is_known)
    distances, rooms = cases.distances[known], cases.rooms[:, known]
    baseline = best_offset(distances, rooms, settings.candidates)
    baseline_right = is_at_offset(distances, rooms, baseline.offset)
    nearest, random_choice = among_right_words(known, cases.heads, cases.text)
    joined = cases.joined.of(known)
    head_cases = HeadCases(
        cases.right[..., known],
        baseline_right[None],
        joined.unit,
        by_document=cases.by_document,
        absent=cases.absent,
        joined=joined,
    )
    judgement = judge(head_cases, settings.alpha)
    held_out = judgement.held_out
    return RelationAccuracy(
        relation=relation,
        n_cases=len(known),
        n_left_out=int(mask.sum()) - len(known),
        baseline=baseline,
        nearest=nearest,
        random_choice=random_choice,
        accuracy=judgement.accuracy[0],
        n_documents=None if judgement.n_documents is None else int(judgement.n_documents[0]),
        low=judgement.low[0],
        high=judgement.high[0],
        design_effect=judgement.design_effect[0],
        p_values=judgement.p_values[0, 0],
        key_matched=judgement.key_matched[0],
        best=_direction_and_head(judgement.best),
        best_of_halves=() if held_out is None else tuple(map(_direction_and_head, held_out.heads)),
        best_accuracy=NAN if held_out is None else float(held_out.accuracy[0]),
        best_low=NAN if held_out is None else float(held_out.low[0]),
        best_high=NAN if held_out is None else float(held_out.high[0]),
        best_design_effect=NAN if held_out is None else float(held_out.design_effect[0]),
        p_value=float(judgement.p_values[0, 0][judgement.best]),
        best_key_matched=judgement.best_key_matched,
    )


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offsets: Sequence[int] = OFFSETS
) -> OffsetBaseline:
    """The offset with the highest accuracy; ties are resolved in favour of the smaller, then the positive offset.

    Args:
        distances: from each dependent to its head, in words; the head of a root counts as before the first word.
        rooms: number of words before and after each dependent in its segment.
        offsets: the candidates.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    candidates = (*offsets, 0) if (distances == 0).any() else offsets  # in pairs that join two segments
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in candidates}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return OffsetBaseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset predicts correctly; it is clipped to the last word, and means root before the first."""
    before, after = rooms
    return np.clip(offset, -before - 1, after) == distances


def among_right_words(
    words: Int[np.ndarray, " case"], heads: Int[np.ndarray, " word"], text: Int[np.ndarray, " word"]
) -> tuple[float, float]:
    """Accuracies of two baselines that know which words of a text are the head of one of these words.

    Args:
        words: one or more cases of a relation, in their order.
        heads: head of every word, numbered through all texts; ROOT for none, where no baseline is right.
        text: number of the text of every word, in order.

    Returns: the share in which the nearest of these heads before the word is right, or the nearest after it, whichever
        is greater; and the expected share of a random one, the word itself excepted.
    """
    right, of_text = heads[words], text[words]
    known = np.unique(right[right != ROOT])
    before, after = np.searchsorted(known, words), np.searchsorted(known, words, side="right")
    padded = np.concatenate([[NOWHERE], known, [NOWHERE]])
    nearest = max(float((padded[before] == right).mean()), float((padded[after + 1] == right).mean()))
    texts = text[known]
    n_choices = np.searchsorted(texts, of_text, side="right") - np.searchsorted(texts, of_text) - (after - before)
    return nearest, float(np.where(right == ROOT, 0, 1 / np.maximum(n_choices, 1)).mean())


def _direction_and_head(index: tuple[int, ...]) -> tuple[Direction, int, int]:
    direction, layer, head = index
    return DIRECTIONS[direction], layer, head


def beats_baseline(
    accuracy: RelationAccuracy, *, by: float = VOITA_MARGIN, margin: Margin = "points"
) -> Bool[np.ndarray, "direction layer head"]:
    """Heads that beat the baseline by at least a margin: Voita's rule.

    Args:
        accuracy: of one relation; for the paper's other direction with the reading "row".
        by: the margin, as a share.
        margin: whether it is added to the baseline, or is a share of it.

    Source: Voita et al. 2019, section 5.2: "at least 10% higher than the baseline"; which of the two is not stated.
        Their baseline is the share of the most frequent distance; here offsets stop at the end of the segment, as in
        Clark's code.
    """
    share = accuracy.baseline.share
    least = share + by if margin == "points" else share * (1 + by)
    return accuracy.accuracy >= least - 1e-9  # 0.2 + 0.1 is a little more than 0.3
