"""Heads and coreference: how often the word a mention attends to most is one that refers to the same; no torch.

From gold mentions (`core.mentions`) and what a pass found of them (`core.coreference_observer`) to accuracies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from core.case_tests import beats_by_chance, best_head, best_on_halves, wilson
from core.errors import AnalysisError
from core.hypotheses import ratio
from core.mentions import TYPES, MentionText

Candidates = Literal["mentions", "words"]
NO_CHOICE: Final = -1
BASELINES: Final = ("nearest mention", "same head word")
ALL: Final = "all"
GROUPS: Final = (ALL, *TYPES)


@dataclass(frozen=True, eq=False, kw_only=True)
class MentionChoices:
    """What a pass found of one text: words, or NO_CHOICE where none can be attended to or none is."""

    mentions: Int[np.ndarray, "layer head mention"]
    """The head word of an earlier mention that each mention's head word attends to most."""
    words: Int[np.ndarray, "layer head mention"]
    """The word other than itself that it attends to most; no special token."""
    is_read: Bool[np.ndarray, " mention"]
    """Whether its head word has a token: one beyond a cut has none, nor has the rest of a token that begins before."""

    def of(self, candidates: Candidates) -> Int[np.ndarray, "layer head mention"]:
        """The choice among some candidates."""
        return self.mentions if candidates == "mentions" else self.words


@dataclass(frozen=True, eq=False, kw_only=True)
class Cases:
    """The mentions that have an antecedent: an earlier mention of the same entity in their text."""

    text: Int[np.ndarray, " case"]
    """Place of its text."""
    document: Int[np.ndarray, " case"]
    """Number of its text's document, in their order."""
    mention: Int[np.ndarray, " case"]
    """Its place among the mentions of the text."""
    groups: Bool[np.ndarray, "group case"]
    """Whether it belongs to each of GROUPS."""
    baselines: Bool[np.ndarray, "baseline case"]
    """Whether each of BASELINES is right."""
    chance: Float[np.ndarray, " case"]
    """Share of the earlier mentions that are antecedents: how often one taken at random is right."""
    n_unread: int
    """Mentions with an antecedent that were left out, because their head word has no token."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """A head chosen on one half of the documents, and how it does on the other; both ways round together.

    The parts of a document stand in one half: what they tell of each other is not held out.
    """

    chosen: tuple[tuple[int, int], tuple[int, int]]
    """Layer and head that are best on the documents with even numbers, and on those with odd ones."""
    accuracy: Float[np.ndarray, " group"]
    """Of the first on the odd ones and of the second on the even ones, over all cases; NaN without cases."""
    low: Float[np.ndarray, " group"]
    high: Float[np.ndarray, " group"]
    p_value: Float[np.ndarray, "baseline group"]
    """As CoreferenceScores.p_value; not corrected, since the head was not chosen on the cases that it is tested on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreferenceScores:
    """How well every head points from mentions to their antecedents."""

    candidates: Candidates
    n_cases: Int[np.ndarray, " group"]
    accuracy: Float[np.ndarray, "group layer head"]
    """Share of the cases in which the choice is the head word of an antecedent; NaN without cases."""
    low: Float[np.ndarray, "group layer head"]
    high: Float[np.ndarray, "group layer head"]
    """Wilson interval."""
    baselines: Float[np.ndarray, "baseline group"]
    """Share of the cases that each of BASELINES gets right."""
    chance: Float[np.ndarray, " group"]
    """The same of an earlier mention at random."""
    p_value: Float[np.ndarray, "baseline group layer head"]
    """One-sided exact McNemar test of "right where the baseline is wrong more often than the other way round", times
    the number of heads, so that it may be read at the best of them. Cases of one text are not independent, which it
    takes them to be."""
    best: tuple[int, int]
    """Layer and head with the highest accuracy over all cases."""
    held_out: HeldOut | None
    """None where one half of the documents has no case."""
    n_unread: int


def cases_of(texts: Sequence[MentionText], are_read: Sequence[Bool[np.ndarray, "_"]]) -> Cases:
    """The mentions that have an antecedent, and what the baselines say of them.

    The nearest mention is the last whose head word comes before; the same head word (but for capitals) is that of the
    nearest such mention. Where there is none, it is the nearest mention: a choice of this project.
    Source: Clark et al. 2019, table 2, which names both baselines.
    """
    rows = []
    n_unread = 0
    for place, (text, is_read) in enumerate(zip(texts, are_read, strict=True)):
        shown = text.shown
        words = [shown[mention.head].lower() for mention in text.mentions]
        for number, antecedents in enumerate(text.antecedents):
            if antecedents and is_read[number]:
                same = [before for before in range(number) if words[before] == words[number]]
                right = (number - 1 in antecedents, (same[-1] if same else number - 1) in antecedents)
                group = TYPES.index(text.mentions[number].type)
                rows.append((place, number, group, *right, len(antecedents) / number))
            n_unread += bool(antecedents) and not is_read[number]
    columns = np.array(rows).reshape(-1, 6).T
    places, numbers, of_type = columns[:3].astype(int)
    groups = np.vstack([np.ones(len(rows), bool), of_type == np.arange(len(TYPES))[:, None]])
    return Cases(
        text=places,
        document=_documents(texts)[places],
        mention=numbers,
        groups=groups,
        baselines=columns[3:5].astype(bool),
        chance=columns[5].astype(float),
        n_unread=n_unread,
    )


def _documents(texts: Sequence[MentionText]) -> Int[np.ndarray, " text"]:
    """Number of each text's document, in the order of their first texts."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(text.document for text in texts))}
    return np.array([numbers[text.document] for text in texts])


def coreference_scores(
    texts: Sequence[MentionText],
    choices: Sequence[MentionChoices],
    candidates: Candidates = "mentions",
    alpha: float = 0.05,
) -> CoreferenceScores:
    """Accuracy of every head at antecedent selection, beside the baselines.

    Args:
        texts: with their mentions.
        choices: what a pass found of each.
        candidates: a choice among the head words of earlier mentions, or among all words; the baselines choose among
            mentions either way.
        alpha: intervals cover 1 - alpha.

    Raises: AnalysisError where no mention with an antecedent was read.
    Source: Clark et al. 2019, section 4.3: "what percent of the time does the head word of a coreferent mention most
        attend to the head of one of that mention's antecedents". Among which words they looked is not stated.
    """
    cases = cases_of(texts, [choice.is_read for choice in choices])
    if not len(cases.text):
        raise AnalysisError(
            f"All {cases.n_unread:,} mentions that refer back have a head word without a token of its own: beyond what "
            "the checkpoint takes, or a part of a token. Give shorter texts, or mark whole words."
        )
    right = _right(texts, choices, candidates, cases)
    layer, head = best_head(right)
    n_cases, n_right = cases.groups.sum(axis=1), _counts(right, cases.groups)
    low, high = wilson(n_right, n_cases[:, None, None], alpha)
    p_value = np.stack([_by_group(right, baseline, cases.groups) for baseline in cases.baselines])
    return CoreferenceScores(
        candidates=candidates,
        n_cases=n_cases,
        accuracy=ratio(n_right, np.broadcast_to(n_cases[:, None, None], n_right.shape)),
        low=low,
        high=high,
        baselines=ratio(cases.baselines @ cases.groups.T.astype(float), np.tile(n_cases, (len(BASELINES), 1))),
        chance=ratio(cases.groups @ cases.chance, n_cases),
        p_value=np.minimum(1, right.shape[0] * right.shape[1] * p_value),
        best=(layer, head),
        held_out=_held_out(right, cases, alpha),
        n_unread=cases.n_unread,
    )


def _right(
    texts: Sequence[MentionText], choices: Sequence[MentionChoices], candidates: Candidates, cases: Cases
) -> Bool[np.ndarray, "layer head case"]:
    """Whether every head chose the head word of an antecedent."""
    right = []
    for place, number in zip(cases.text.tolist(), cases.mention.tolist()):
        text, choice = texts[place], choices[place].of(candidates)
        antecedents = [text.mentions[before].head for before in text.antecedents[number]]
        right.append(np.isin(choice[:, :, number], antecedents))
    return np.stack(right, axis=-1)


def _held_out(right: Bool[np.ndarray, "layer head case"], cases: Cases, alpha: float) -> HeldOut | None:
    found = best_on_halves(right, cases.document)
    if found is None:
        return None
    ((first_layer, first_head), (second_layer, second_head)), said = found
    n_cases, n_right = cases.groups.sum(axis=1), cases.groups @ said.astype(float)
    low, high = wilson(n_right, n_cases, alpha)
    return HeldOut(
        chosen=((first_layer, first_head), (second_layer, second_head)),
        accuracy=ratio(n_right, n_cases),
        low=low,
        high=high,
        p_value=np.stack([_by_group(said, baseline, cases.groups) for baseline in cases.baselines]),
    )


def _counts(
    found: Bool[np.ndarray, "layer head case"], groups: Bool[np.ndarray, "group case"]
) -> Float[np.ndarray, "group layer head"]:
    return np.einsum("lhc,gc->glh", found.astype(float), groups.astype(float))


def _by_group(
    right: Bool[np.ndarray, "*head case"], baseline: Bool[np.ndarray, " case"], groups: Bool[np.ndarray, "group case"]
) -> Float[np.ndarray, "group *head"]:
    return np.stack([beats_by_chance(right[..., group], baseline[group]) for group in groups])


def coreference_table(scores: CoreferenceScores) -> pd.DataFrame:
    """One row per group of mentions, layer and head.

    Columns: group (all, or a type of mention), layer, head, cases, accuracy, low, high, then of the baselines
    `nearest mention`, `same head word` and `random mention` the accuracy, and p_nearest, p_same_head (see
    CoreferenceScores.p_value).
    """
    n_groups, n_layers, n_heads = scores.accuracy.shape
    group, layer, head = (axis.ravel() for axis in np.indices((n_groups, n_layers, n_heads)))
    return pd.DataFrame(
        {
            "group": np.array(GROUPS)[group],
            "layer": layer,
            "head": head,
            "cases": scores.n_cases[group],
            "accuracy": scores.accuracy.ravel(),
            "low": scores.low.ravel(),
            "high": scores.high.ravel(),
            **{name: scores.baselines[place][group] for place, name in enumerate(BASELINES)},
            "random mention": scores.chance[group],
            "p_nearest": scores.p_value[0].ravel(),
            "p_same_head": scores.p_value[1].ravel(),
        }
    )
