"""Heads as parsers: how often the word a head attends to most is the right head, or dependent, of a word.

From predictions (what a pass found) and relations (a parser's or gold) to accuracies; no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from core.case_tests import beats_by_chance, best_head, best_on_halves, wilson
from core.offset_baselines import AUTHORS_OFFSETS, OFFSETS, Baseline, best_offset, is_at_offset
from core.parses import ROOT, Dependencies
from core.parsing_cases import NO_RELATION, Cases, cases_of
from core.roles import RELATIONS, Overlap, overlap

Direction = Literal["dependent-to-head", "head-to-dependent"]
DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""dependent-to-head: the word that a dependent attends to most is its head (A). head-to-dependent: the word that
attends most to a dependent is its head (A transposed)."""
Reading = Literal["column", "row"]
"""How head-to-dependent is read: as DIRECTIONS says (Clark's code), or: the word that a head attends to most is its
dependent (Voita), of which a head with several dependents can get one right at most."""
Margin = Literal["points", "relative"]
NO_CASE: Final = "No word of these texts has a relation to another one, punct left out. Give texts with sentences."
"""What there is to say where `relation_accuracies` finds none for whatever number of cases."""
ALL: Final = "all"
"""Every relation but punct and root together; those, too, if the settings say so."""


@dataclass(frozen=True, kw_only=True)
class ParsingSettings:
    """How predictions are read and counted; by default as the papers define it."""

    reading: Reading = "column"
    """Of the second direction."""
    at_clitic: bool = False
    """Read the prediction of a possessor at the 's that follows it, as in the authors' table."""
    every_word: bool = False
    """Whether ALL counts punct and root. No head is right for a root; an offset is where it leads out before the first
    word."""
    offsets: tuple[int, ...] = OFFSETS
    """That the baseline chooses from."""


AS_IN_PAPER: Final = ParsingSettings()
AS_IN_CODE: Final = ParsingSettings(at_clitic=True, every_word=True, offsets=AUTHORS_OFFSETS)
"""Clark's code, which also lets a word attend by its first piece (`core.parsing_observer`)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordPredictions:
    """What a pass found of the words of one text."""

    predicted: Int[np.ndarray, "direction layer head word"]
    """Place of the predicted head of each word, which is never the word itself. -1 for a word without tokens, and where
    a word attends to, or is attended from, no other word, as the first one of a causal model, or the only one."""
    has_tokens: Bool[np.ndarray, " word"]
    """As in core.words.WordMap: a word beyond a cut has none, nor has one of no character that the tokenizer knows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextPredictions(WordPredictions):
    """The same with the text's relations."""

    dependencies: Dependencies

    @classmethod
    def of(cls, dependencies: Dependencies, found: WordPredictions) -> "TextPredictions":
        """What was found of the words of a tree."""
        return cls(dependencies=dependencies, predicted=found.predicted, has_tokens=found.has_tokens)


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationAccuracy:
    """How well every head predicts one relation."""

    relation: str
    n_cases: int
    """Dependents that have the relation, and tokens, as their heads have."""
    n_left_out: int
    """Dependents without tokens, or whose head has none: cut off, or of no token that the checkpoint knows."""
    baseline: Baseline
    """Of the same cases."""
    accuracy: Float[np.ndarray, "direction layer head"]
    """Share of the cases, 0 to 1."""
    low: Float[np.ndarray, "direction layer head"]
    high: Float[np.ndarray, "direction layer head"]
    """Wilson interval."""
    p_values: Float[np.ndarray, "direction layer head"]
    """Of beating the baseline by chance, corrected for all heads and directions."""
    best: tuple[Direction, int, int]
    """Direction, layer and head that are best on all cases."""
    best_of_halves: tuple[tuple[Direction, int, int], ...]
    """Those best on every second text from the first, and from the second; empty where a half has no case."""
    best_accuracy: float
    """Of each of these on the half it was not chosen on: the share of all cases that are right. NaN where a half has no
    case. An honest figure for "the best head", as `accuracy` at `best` is not: the best of many is partly luck."""
    best_low: float
    best_high: float
    """Its Wilson interval."""
    best_cases: int
    """All cases, or 0 where a half has none."""
    p_value: float
    """That of `best`."""


def relation_accuracies(
    texts: Sequence[TextPredictions],
    settings: ParsingSettings = AS_IN_PAPER,
    *,
    least_cases: int = 1,
    alpha: float = 0.05,
) -> list[RelationAccuracy]:
    """Accuracies of every relation with enough cases, most cases first; ALL is the first. None for punct and root.

    A case is a dependent whose own tokens and whose head's were passed. Words of a text that has two segments compete
    with each other; a head that attends to no other word is wrong.

    Whether a head beats the baseline is tested on the same cases by McNemar's exact test, one-sided: of the cases that
    only one of the two gets right, each would get half by chance. As all heads are searched in both directions,
    p-values are multiplied by the number of these tests (Bonferroni): valid however heads depend on each other, and for
    whichever of them is looked at, such as the best, whose p-value need not be the smallest. Relations are not
    corrected for, cases of one text count as independent, and the baseline's offset is chosen on the very cases, in its
    favour.

    Args:
        texts: predictions under one checkpoint.
        settings: how they are read and counted.
        least_cases: of a relation; the authors' table asks for 100.
        alpha: Wilson intervals cover 1 - alpha.

    Source: Clark et al. 2019, section 4.2 and table 1, where the best head is chosen and reported on the same
        sentences, without a test. By default as the paper says; AS_IN_CODE counts as their code does, but for the
        clitic, which it knows by its form, 's or s', where by a slip in operator precedence s' counts after any
        relation, and looks one word past the sentence's end; here it is what follows and depends on the possessor as
        `possessive` or `case`.
    """
    if not texts:
        return []
    cases = cases_of(
        [text.dependencies for text in texts],
        [text.predicted for text in texts],
        [text.has_tokens for text in texts],
        settings.at_clitic,
    )
    right = _right(cases, settings.reading)
    relations = _relations(cases, least_cases, settings.every_word)
    found = [_accuracy(name, chosen, cases, right, alpha, settings.offsets) for name, chosen in relations]
    return sorted(found, key=lambda one: (one.relation != ALL, -one.n_cases))


def _right(cases: Cases, reading: Reading) -> Bool[np.ndarray, "direction layer head case"]:
    of_dependents = (cases.predicted == cases.heads) & (cases.heads != ROOT)
    if reading == "column":
        return of_dependents
    return np.stack([of_dependents[0], cases.predicted_from_heads == np.arange(len(cases.heads))])


def _relations(cases: Cases, least_cases: int, every_word: bool) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with enough cases; a file may bring a relation that is named all, too."""
    named = [(name, cases.codes == code) for code, name in enumerate(cases.names) if name not in NO_RELATION]
    of_all = [code for code, name in enumerate(cases.names) if every_word or name not in NO_RELATION]
    found = [(ALL, np.isin(cases.codes, of_all)), *((name, chosen) for name, chosen in named if name != ALL)]
    return [(name, chosen) for name, chosen in found if (chosen & cases.is_known).sum() >= max(least_cases, 1)]


def _accuracy(
    relation: str,
    chosen: Bool[np.ndarray, " case"],
    cases: Cases,
    right_of_all: Bool[np.ndarray, "direction layer head case"],
    alpha: float,
    offsets: tuple[int, ...],
) -> RelationAccuracy:
    known = np.flatnonzero(chosen & cases.is_known)
    right, distances, rooms = right_of_all[..., known], cases.distances[known], cases.rooms[:, known]
    baseline = best_offset(distances, rooms, offsets)
    n_right = right.sum(axis=-1)
    low, high = wilson(n_right, len(known), alpha)
    p_values = np.minimum(1, n_right.size * beats_by_chance(right, is_at_offset(distances, rooms, baseline.offset)))
    best = best_head(right)
    of_halves, is_right = best_on_halves(right, cases.text[known]) or ([], np.empty(0, bool))
    best_low, best_high = wilson(is_right.sum(), len(is_right), alpha)
    return RelationAccuracy(
        relation=relation,
        n_cases=len(known),
        n_left_out=int(chosen.sum()) - len(known),
        baseline=baseline,
        accuracy=n_right / len(known),
        low=low,
        high=high,
        p_values=p_values,
        best=_named(best),
        best_of_halves=tuple(map(_named, of_halves)),
        best_accuracy=float(is_right.mean()) if of_halves else float("nan"),
        best_low=float(best_low),
        best_high=float(best_high),
        best_cases=len(is_right),
        p_value=float(p_values[best]),
    )


def _named(place: tuple[int, ...]) -> tuple[Direction, int, int]:
    direction, layer, head = place
    return DIRECTIONS[direction], layer, head


def beats_baseline(
    accuracy: RelationAccuracy, *, by: float = 0.1, margin: Margin = "points"
) -> Bool[np.ndarray, "direction layer head"]:
    """Heads whose accuracy is at least the baseline and a margin: Voita's rule.

    Args:
        accuracy: of one relation; for the paper's other direction with the reading "row".
        by: the margin, as a share.
        margin: whether it is added to the baseline, or is a share of it.

    Source: Voita et al. 2019, section 5.2: "at least 10 % higher than the baseline"; which of the two is not stated.
        Their baseline is the share of the most frequent distance; here offsets stop at the end of the segment, as in
        Clark's code.
    """
    share = accuracy.baseline.share
    least = share + by if margin == "points" else share * (1 + by)
    return accuracy.accuracy >= least - 1e-9  # 0.2 + 0.1 is a little more than 0.3


def syntactic_by_argmax(
    accuracies: Sequence[RelationAccuracy],
    *,
    relations: tuple[str, ...] = (*RELATIONS, "obj"),
    by: float = 0.1,
    margin: Margin = "points",
) -> Bool[np.ndarray, "layer head"] | None:
    """Heads that follow Voita's rule for any of some relations in any direction; None without such a relation.

    Source: Voita et al. 2019, section 5.2: nsubj, dobj, amod, advmod; Universal Dependencies call dobj obj.
    """
    found = [beats_baseline(one, by=by, margin=margin).any(axis=0) for one in accuracies if one.relation in relations]
    return np.any(found, axis=0) if found else None


def argmax_and_sieve(by_argmax: Bool[np.ndarray, "layer head"], by_sieve: Bool[np.ndarray, "layer head"]) -> Overlap:
    """How many heads are syntactic by argmax (first), by the sieve's test (second), and by both."""
    return overlap(np.stack([by_argmax, by_sieve]), ("argmax", "sieve"), "argmax", "sieve")
