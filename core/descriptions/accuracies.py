"""Facts about heads as numbers, and how often heads are right at relations and at mentions, selected on some texts and
evaluated on others.

A head that looks at one distance is right about a relation as often as its words are that far apart, and texts of one
kind may be alike in this. So a head is also evaluated on the cases in which the best simple guess, such as a fixed
distance, is wrong, and what counts are the lower ends of intervals, on the cases of the selection and on those of the
evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.coreference.accuracy import MentionChoices, joined_of, right_choices
from attention_sieve.core.coreference.accuracy import cases_of as mention_cases
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.relations.cases import (
    NO_RELATION,
    RelationCases,
    TextPredictions,
    best_offset,
    cases_of,
    is_at_offset,
)
from attention_sieve.core.relations.settings import DIRECTIONS, Direction
from attention_sieve.core.statistics.cases import N_HALVES, HeadCases, KeyMatched, judge, key_matched
from attention_sieve.core.statistics.means import document_means, document_sums, lower_end, share_interval

Target = Literal["self", "previous", "next", "cls", "sep", "punctuation", "first"]
"""Key attended to: at an offset from the query, or of a kind of token."""
RESTS: Final[tuple[Target, ...]] = ("cls", "sep", "punctuation", "first", "self")
"""Targets that links between words cannot show, and on which attention rests whatever the token that looks."""


MOSTLY: Final = 0.5
"""Share of a head's attention, or of the cases of a relation, above which a head mostly does this."""
MARGIN: Final = 0.1
"""How far the accuracy at a relation, or at mentions, has to lie above that of every simple guess."""

Sight = Literal["around", "back", "across"]
"""Tokens that a token can attend to: on both sides, only itself and earlier ones, or those of another text."""


@dataclass(frozen=True, kw_only=True)
class ShareFact:
    """The share of a head's attention on one target."""

    target: Target
    share: float
    """Mean over the texts, or over their shorter or longer half if that is less, 0 to 1; for the first token of a
    causal model, the share above chance."""
    low: float
    high: float
    """Interval of the mean; NaN for fewer than 2 texts."""
    even: float
    """Share of uniform attention, mean over the same texts; NaN if not known; 0 for the first token, whose share is
    already above chance."""
    corrected_low: float = float("nan")
    """Lower end of the interval, with equal texts counted once, corrected for the number of heads and of targets
    (Bonferroni); NaN for fewer than 2 different texts."""


@dataclass(frozen=True, kw_only=True)
class KeyControl:
    """The attention of a head to the right word, compared with the attention from other words to the same word, on the
    same cases."""

    to_right: float
    """Mean from the word that should look at it, 0 to 1; NaN where no case can be compared."""
    from_others: float
    """Mean from the text's other words."""
    p_value: float
    """For "the first is not above the second": one-sided, times the number of heads; NaN for one text or document."""
    beats: bool
    from_everywhere: bool
    """As in attention_sieve.core.statistics.cases.KeyMatched; both are False where there are too few cases to
    decide."""

    @classmethod
    def of(cls, control: KeyMatched, head: tuple[int, ...]) -> "KeyControl":
        """The control of one of many heads, by its index."""
        return cls(
            to_right=float(control.to_right[head]),
            from_others=float(control.from_others[head]),
            p_value=float(control.p_values[head]),
            beats=bool(control.beats[head]),
            from_everywhere=bool(control.from_everywhere[head]),
        )


@dataclass(frozen=True, kw_only=True)
class RelationFact:
    """The relation in which a head is furthest above any fixed offset, selected on one half of the texts, or on all of
    them where it is evaluated on others."""

    relation: str
    direction: Direction
    accuracy: float
    """Share of the cases that it was not selected on, 0 to 1."""
    low: float
    high: float
    """Its interval."""
    baseline: float
    """Accuracy on the same cases of the offset that is best on them."""
    offset: int
    """In words, from the dependent to its head."""
    where_wrong: float
    """Accuracy in the cases in which that offset is wrong; NaN if it never is."""
    surplus: float
    """As of `surpluses`, on the cases of the selection or on these, whichever is less."""
    n_cases: int
    """Number of these cases."""
    p_value: float
    """For "the head is no better than the offset that is best on the cases of the selection": one-sided, times the
    number of heads."""
    control: KeyControl
    on_others: bool = False
    """Whether the cases are from other texts, and not from the other half of the texts."""


@dataclass(frozen=True, kw_only=True)
class MentionFact:
    """How often a head selects a coreferent mention among the earlier ones, on texts with gold mentions."""

    source: str
    """Name of these texts."""
    accuracy: float
    """Share of the mentions that refer back in the documents on which the head was not selected, 0 to 1."""
    low: float
    high: float
    """Its interval, with documents as units."""
    nearest: float
    """Accuracy of always choosing the nearest mention, on the same cases."""
    same_word: float
    """Accuracy of choosing the nearest mention with the same head word, or else the nearest."""
    where_wrong: float
    """Accuracy in the cases in which the better of the two is wrong; NaN if it never is."""
    surplus: float
    """As of `surpluses`, on the cases of the selection or on these, whichever is less."""
    n_cases: int
    n_documents: int
    """Documents on which the head was not selected."""
    p_value: float
    """For "the head is no better than the better of the two": one-sided, times the number of heads; NaN for one
    document."""
    control: KeyControl


@dataclass(frozen=True, kw_only=True)
class SpreadFact:
    """How evenly a head spreads its attention."""

    ratio: float
    """Mean entropy as a share of that of uniform attention, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class RoleFact:
    """A role that a head holds."""

    role: str


Fact = ShareFact | RelationFact | MentionFact | SpreadFact | RoleFact


@dataclass(frozen=True, kw_only=True)
class HeadDescription:
    """What a head mostly does over some texts."""

    head: Head
    n_texts: int
    facts: tuple[Fact, ...]
    """What it mostly does, then what else it does; empty if no pattern stands out."""
    n_others: int = 0
    """Number of other texts that the numbers are from; 0 for those of the texts."""
    sight: Sight = "around"


Halves = tuple[Int[np.ndarray, " _"], Int[np.ndarray, " _"]]
"""Indices of the cases on which a relation is selected, and of those on which it is evaluated."""
LEAST_CASES: Final = 20
"""Minimum number of cases of a relation in each half of the texts for heads to be evaluated on it."""
LEAST_MENTIONS: Final = 20
"""Minimum number of mentions that refer back in each half of the documents for heads to be evaluated on them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadMentions:
    """Texts with gold mentions, and the mention that every head selects for each."""

    name: str
    """Name of the texts, for display."""
    texts: Sequence[MentionText]
    choices: Sequence[MentionChoices]
    """Of each text, under one checkpoint."""


def best_relations(
    texts: Sequence[TextPredictions], alpha: float = 0.05, others: Sequence[TextPredictions] = ()
) -> dict[Head, RelationFact]:
    """The relation that each head predicts best, among those with at least LEAST_CASES cases in each half of the texts.

    The relation and direction in which the head has the greatest surplus over the best fixed offset (`surpluses`) are
    selected on the first, third, ... text (or document, where known), among those in which it beats the key-matched
    control there, if there are any. The head is evaluated on the other half, against the offset that was best on the
    first, and beside the one that is best there. Where there are `others`, all texts are the first half, and the others
    are the second. p-values are multiplied by the number of heads (Bonferroni).

    Args:
        texts: one or more, under one checkpoint.
        alpha: the intervals cover 1 - alpha.
        others: of another kind, under the same checkpoint, with documents if the texts have some.

    Returns: facts by head, without removed heads; empty if every relation has too few cases in one half.
    """
    cases = cases_of((*texts, *others))
    half = (cases.text >= len(texts)).astype(int) if others else cases.joined.unit % N_HALVES
    relations = _relations(cases, half)
    facts: dict[Head, RelationFact] = {}
    for (index, direction), heads in _heads_by_relation(cases, relations, alpha).items():
        facts |= _facts(cases, *relations[index], direction, heads, alpha)
    return {head: replace(fact, on_others=bool(others)) for head, fact in facts.items()}


def surpluses(
    right: Bool[np.ndarray, "*head case"],
    guess: Bool[np.ndarray, " case"],
    unit: Int[np.ndarray, " case"],
    alpha: float,
) -> Float[np.ndarray, "*head"]:
    """By how much heads do clearly better than a simple guess, and not only where it is right.

    Args:
        right: whether each head is right in each case.
        guess: whether the guess is.
        unit: number of the document, or text, of each case.
        alpha: the intervals cover 1 - alpha.

    Returns: the lesser of two numbers, which are both above 0 if the whole interval of how far the accuracy lies above
        that of the guess is above MARGIN, and that of the accuracy where the guess is wrong above MOSTLY; -inf where
        there are too few cases or units for an interval.
    """
    in_unit = np.unique(unit, return_counts=True)[1]
    above = document_means(document_sums(right, unit) - document_sums(guess, unit), in_unit)
    wrong = ~guess
    n_wrong = np.unique(unit[wrong], return_counts=True)[1]
    where_wrong, _ = share_interval(document_means(document_sums(right[..., wrong], unit[wrong]), n_wrong), alpha)
    least = np.minimum(lower_end(above, alpha) - MARGIN, where_wrong - MOSTLY)
    return np.where(np.isnan(least), -np.inf, least)


def _relations(cases: RelationCases, half: Int[np.ndarray, " case"]) -> list[tuple[str, Halves]]:
    """Names and cases of the relations with enough cases in each half."""
    named = [
        (name, (cases.codes == code) & cases.is_known)
        for code, name in enumerate(cases.names)
        if name not in NO_RELATION
    ]
    split = [(name, (np.flatnonzero(mask & (half == 0)), np.flatnonzero(mask & (half == 1)))) for name, mask in named]
    return [(name, halves) for name, halves in split if min(map(len, halves)) >= LEAST_CASES]


def _heads_by_relation(
    cases: RelationCases, relations: Sequence[tuple[str, Halves]], alpha: float
) -> dict[tuple[int, int], list[Head]]:
    """Heads by the indices of the relation and direction in which they have the greatest surplus, among those that beat
    the key-matched control if any does."""
    is_there = ~cases.absent
    heads_by_relation: defaultdict[tuple[int, int], list[Head]] = defaultdict(list)
    surplus = []
    for _, (first_half, _) in relations:
        head_surplus = _surpluses(cases.right[..., first_half], cases, first_half, alpha)
        control = key_matched(cases.joined.of(first_half), alpha, int(is_there.sum()))
        surplus.append(head_surplus - 4 * ~control.beats)  # a surplus is above -2 and below 1
    if surplus:
        relation_surplus = np.concatenate(surplus)
        for layer, head in zip(*np.nonzero(is_there.all(axis=0))):
            relation, direction = divmod(int(relation_surplus[:, layer, head].argmax()), len(DIRECTIONS))
            heads_by_relation[relation, direction].append((int(layer), int(head)))
    return heads_by_relation


def _surpluses(
    right: Bool[np.ndarray, "*head case"], cases: RelationCases, half: Int[np.ndarray, " case"], alpha: float
) -> Float[np.ndarray, "*head"]:
    """Surpluses over the offset that is best on one half, on its cases."""
    distances, rooms = cases.distances[half], cases.rooms[:, half]
    guess = is_at_offset(distances, rooms, best_offset(distances, rooms).offset)
    return surpluses(right, guess, cases.joined.unit[half], alpha)


def _facts(
    cases: RelationCases,
    relation: str,
    halves: Halves,
    direction: int,
    heads: Sequence[Head],
    alpha: float,
) -> dict[Head, RelationFact]:
    """Accuracies of heads at one relation on the second half."""
    distances, rooms = cases.distances, cases.rooms
    on_first, on_second = (best_offset(distances[half], rooms[:, half]) for half in halves)
    second_half = halves[1]
    at_offset = is_at_offset(distances[second_half], rooms[:, second_half], on_first.offset)
    right = np.stack([cases.right[direction, layer, head] for layer, head in heads])
    joined = cases.joined.of(second_half)
    head_cases = HeadCases(right[:, second_half], at_offset[None], joined.unit, by_document=cases.by_document)
    judgement = judge(head_cases, alpha)
    n_heads = int((~cases.absent[direction]).sum())
    control = key_matched(joined, alpha, n_heads)
    correction = n_heads / len(heads)  # the p-values are already corrected for these heads
    surplus = np.minimum(*(_surpluses(right[:, half], cases, half, alpha) for half in halves))
    is_wrong = ~is_at_offset(distances[second_half], rooms[:, second_half], on_second.offset)
    return {
        head: RelationFact(
            relation=relation,
            direction=DIRECTIONS[direction],
            accuracy=float(judgement.accuracy[0, row]),
            low=float(judgement.low[0, row]),
            high=float(judgement.high[0, row]),
            baseline=on_second.share,
            offset=on_second.offset,
            where_wrong=_share(right[row, second_half][is_wrong]),
            surplus=float(surplus[row]),
            n_cases=len(second_half),
            p_value=float(min(1, correction * judgement.p_values[0, 0, row])),
            control=KeyControl.of(control, (direction, *head)),
        )
        for row, head in enumerate(heads)
    }


def _share(right: Bool[np.ndarray, " case"]) -> float:
    """Share of cases that are right; NaN without any."""
    return float(right.mean()) if len(right) else float("nan")


def followed_mentions(mentions: ReadMentions, alpha: float = 0.05) -> dict[Head, MentionFact]:
    """How often heads select a coreferent mention among the earlier ones.

    Heads that are right more often than both baselines on the first, third, ... document are evaluated on the other
    documents, which are the units of intervals and tests. The p-value is the larger of those against the two baselines,
    times the number of all heads (Bonferroni).

    Args:
        mentions: of one or more texts.
        alpha: the intervals cover 1 - alpha.

    Returns: facts by head, of those that are evaluated; empty if one half has fewer than LEAST_MENTIONS cases.
    """
    cases = mention_cases(mentions.texts, [choices.is_read for choices in mentions.choices])
    first_half, second_half = (np.flatnonzero(cases.document % N_HALVES == half) for half in range(N_HALVES))
    if min(len(first_half), len(second_half)) < LEAST_MENTIONS:
        return {}
    right = right_choices(mentions.texts, mentions.choices, "mentions", cases)
    head_cases = HeadCases(
        right[..., second_half],
        cases.baselines[:, second_half],
        cases.document[second_half],
        by_document=True,
        joined=joined_of(mentions.choices, cases).of(second_half),
    )
    judgement = judge(head_cases, alpha)
    is_better = right[..., first_half].mean(axis=-1) > cases.baselines[:, first_half].mean(axis=-1).max()
    nearest, same_word = judgement.baselines[:, 0].tolist()
    guesses = [cases.baselines[cases.baselines[:, half].mean(axis=-1).argmax()] for half in (first_half, second_half)]
    surplus = np.minimum(
        *(
            surpluses(right[..., half], guess[half], cases.document[half], alpha)
            for half, guess in zip((first_half, second_half), guesses)
        )
    )
    unseen = right[..., second_half][..., ~guesses[1][second_half]]
    return {
        (layer, head): MentionFact(
            source=mentions.name,
            accuracy=float(judgement.accuracy[0, layer, head]),
            low=float(judgement.low[0, layer, head]),
            high=float(judgement.high[0, layer, head]),
            nearest=nearest,
            same_word=same_word,
            where_wrong=_share(unseen[layer, head]),
            surplus=float(surplus[layer, head]),
            n_cases=len(second_half),
            n_documents=len(np.unique(cases.document[second_half])),
            p_value=float(judgement.p_values[:, 0, layer, head].max()),
            control=KeyControl.of(judgement.key_matched[0], (layer, head)),
        )
        for layer, head in np.argwhere(is_better).tolist()
    }
