"""Heads as parsers: accuracy of every attention head at predicting the syntactic head of a word.

Compares predictions with relations, parsed or gold; does not import torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.relations.cases import NO_RELATION, RelationCases, cases_of
from attention_sieve.core.relations.offsets import Baseline, among_right_words, best_offset, is_at_offset
from attention_sieve.core.relations.settings import (
    AS_IN_PAPER,
    DIRECTIONS,
    VOITA_MARGIN,
    Direction,
    Margin,
    Reading,
    RelationSettings,
)
from attention_sieve.core.statistics.cases import judge
from attention_sieve.core.statistics.documents import document_numbers
from attention_sieve.core.statistics.key_matched import Joined, KeyMatched
from attention_sieve.core.texts.relations import ROOT, Dependencies

NAN: Final = float("nan")
ALL: Final = "all"
"""All relations together, by default without punct and root."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordPredictions:
    """Predictions of every head for the words of one text."""

    predicted: Int[np.ndarray, "direction layer head word"]
    """Index of the predicted head of each word, never the word itself. -1 for a word without tokens, or without
    attention to, or from, another word, such as the first word in a causal model or a single word. REMOVED for a head
    that was removed from the checkpoint."""
    has_tokens: Bool[np.ndarray, " word"]
    """As in attention_sieve.core.texts.words.WordMap: False for truncated words, and for words of characters unknown to
    the tokenizer."""
    to_head: Float[np.ndarray, "layer head word"]
    """Attention from each word to its syntactic head, 0 to 1; NaN for a root, where one of the two has no tokens, where
    the word cannot see its head, and for a head that was removed."""
    from_head: Float[np.ndarray, "layer head word"]
    """Attention to each word from its syntactic head; NaN as for `to_head`."""
    from_others: Float[np.ndarray, "layer head word"]
    """Mean attention to each word from the other words that can see it, punctuation included, except those that a
    relation joins to it (its dependents and its syntactic head); NaN where there are none. Special tokens are not
    words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextPredictions(WordPredictions):
    """Predictions together with the text's relations."""

    dependencies: Dependencies
    document: str | None = None
    """As in attention_sieve.core.texts.text.Text."""

    @classmethod
    def of(
        cls, dependencies: Dependencies, predictions: WordPredictions, document: str | None = None
    ) -> "TextPredictions":
        """Combine predictions with the tree of a text, and its document."""
        return cls(
            dependencies=dependencies,
            document=document,
            **{field.name: getattr(predictions, field.name) for field in fields(WordPredictions)},
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationAccuracy:
    """Accuracy of every attention head at one relation."""

    relation: str
    n_cases: int
    """Dependents with this relation; both dependent and head have tokens."""
    n_left_out: int
    """Dependents that are excluded because they or their heads have no tokens (truncated or unknown)."""
    baseline: Baseline
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
    best_cases: int
    """Number of these cases, or 0 if a half has none."""
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

    The best head is named among those that also beat a second control (`attention_sieve.core.statistics.key_matched`):
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
    cases = cases_of(
        [text.dependencies for text in texts],
        [text.predicted for text in texts],
        [text.has_tokens for text in texts],
        settings.at_clitic,
    )
    documents = document_numbers([text.document for text in texts])
    evaluated = _Evaluated(
        cases=cases,
        right=_right(cases, settings.reading),
        joined=joined_of(texts, cases, documents),
        by_document=documents is not None,
    )
    accuracies = [_accuracy(name, mask, evaluated, settings) for name, mask in _relations(cases, settings.every_word)]
    return sorted(accuracies, key=lambda accuracy: (accuracy.relation != ALL, -accuracy.n_cases))


def joined_of(
    texts: Sequence[TextPredictions], cases: RelationCases, documents: Int[np.ndarray, " text"] | None
) -> Joined:
    """Attention to the right word of every case, in both directions, and what other words give to the same word.

    Args:
        texts: predictions and trees.
        cases: result of `cases_of` for them.
        documents: number of each text's document; None where texts are the units.
    """
    to_right = np.concatenate([np.stack([text.to_head, text.from_head]) for text in texts], axis=-1)
    to_word = np.concatenate([text.from_others for text in texts], axis=-1)
    # A root has no right word (`to_right` is NaN), and its index, ROOT, reads any other word.
    return Joined(
        to_right=np.where(cases.is_at_clitic, NAN, to_right),
        from_others=np.stack([to_word[..., cases.heads], to_word]),
        unit=cases.text if documents is None else documents[cases.text],
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Evaluated:
    """Cases, and how heads do on them."""

    cases: RelationCases
    right: Bool[np.ndarray, "direction layer head case"]
    joined: Joined
    """Its units are also those of halves."""
    by_document: bool
    """Whether documents are known, so that they are the units of all tests and of intervals."""


def _right(cases: RelationCases, reading: Reading) -> Bool[np.ndarray, "direction layer head case"]:
    right = (cases.predicted == cases.heads) & (cases.heads != ROOT)
    if reading == "column":
        return right
    return np.stack([right[0], cases.predicted_from_heads == np.arange(len(cases.heads))])


def _relations(cases: RelationCases, every_word: bool) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with a case; ALL replaces a relation of that name in a file."""
    named = [(name, cases.codes == code) for code, name in enumerate(cases.names) if name not in NO_RELATION]
    codes_of_all = [code for code, name in enumerate(cases.names) if every_word or name not in NO_RELATION]
    relations = [(ALL, np.isin(cases.codes, codes_of_all)), *((name, mask) for name, mask in named if name != ALL)]
    return [(name, mask) for name, mask in relations if (mask & cases.is_known).any()]


def _accuracy(
    relation: str,
    mask: Bool[np.ndarray, " case"],
    evaluated: _Evaluated,
    settings: RelationSettings,
) -> RelationAccuracy:
    cases = evaluated.cases
    known = np.flatnonzero(mask & cases.is_known)
    distances, rooms = cases.distances[known], cases.rooms[:, known]
    baseline = best_offset(distances, rooms, settings.candidates)
    baseline_right = is_at_offset(distances, rooms, baseline.offset)
    nearest, random_choice = among_right_words(known, cases.heads, cases.text)
    joined = evaluated.joined.of(known)
    judgement = judge(
        evaluated.right[..., known],
        baseline_right[None],
        joined.unit,
        settings.alpha,
        by_document=evaluated.by_document,
        absent=cases.absent,
        joined=joined,
    )
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
        best_cases=0 if held_out is None else len(known),
        p_value=float(judgement.p_values[0, 0][judgement.best]),
        best_key_matched=judgement.best_key_matched,
    )


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
