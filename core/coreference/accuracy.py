"""Accuracy of heads at antecedent selection; does not import torch.

Compares the choices of each head (`attention_sieve.core.coreference.observer`) with gold mentions
(`attention_sieve.core.coreference.mentions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.coreference.mentions import TYPES, MentionText
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.question import REMOVED
from attention_sieve.core.statistics.cases import HeadCases, Joined, Judgement, judge
from attention_sieve.core.statistics.means import ratio

Candidates = Literal["mentions", "words"]
NO_CHOICE: Final = -1
BASELINES: Final = ("nearest mention", "same head word")
ALL: Final = "all"
GROUPS: Final = (ALL, *TYPES)


@dataclass(frozen=True, eq=False, kw_only=True)
class MentionChoices:
    """The choices of every head for one text, as words; NO_CHOICE if there is no candidate or no attention to one,
    REMOVED for a head that was removed from the checkpoint."""

    mentions: Int[np.ndarray, "layer head mention"]
    """The head word of an earlier mention that each mention's head word attends to most."""
    words: Int[np.ndarray, "layer head mention"]
    """The word other than itself that it attends to most; no special token."""
    is_read: Bool[np.ndarray, " mention"]
    """Whether its head word has a token; it has none if truncated, or if it is part of a token that starts earlier."""
    to_antecedents: Float[np.ndarray, "layer head mention"]
    """Attention from each mention's head word to the head words of its antecedents, summed over them, 0 to 1; NaN
    without an antecedent, or where it or the words below cannot look at any."""
    from_others: Float[np.ndarray, "layer head mention"]
    """The same sum of the mean attention that other words give to the head word of an antecedent: the words that come
    after it, as the mention does, and are in no mention of the same entity. Special tokens are not words."""

    def of(self, candidates: Candidates) -> Int[np.ndarray, "layer head mention"]:
        """The choice among some candidates."""
        return self.mentions if candidates == "mentions" else self.words


@dataclass(frozen=True, eq=False, kw_only=True)
class MentionCases:
    """The mentions that have an antecedent: an earlier mention of the same entity in their text."""

    text: Int[np.ndarray, " case"]
    """Position of its text."""
    document: Int[np.ndarray, " case"]
    """Number of its text's document, in their order."""
    mention: Int[np.ndarray, " case"]
    """Its position among the mentions of the text."""
    groups: Bool[np.ndarray, "group case"]
    """Whether it belongs to each of GROUPS."""
    baselines: Bool[np.ndarray, "baseline case"]
    """Whether each of BASELINES is right."""
    chance: Float[np.ndarray, " case"]
    """Share of the earlier mentions that are antecedents: the accuracy of a random choice."""
    n_unread: int
    """Number of mentions with an antecedent that are excluded because their head word has no token."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreferenceScores:
    """Accuracy of every head at antecedent selection."""

    candidates: Candidates
    judgement: Judgement
    """By GROUPS, against BASELINES and the key-matched control; a head is right where its choice is the head word of an
    antecedent. Documents are the units of halves, intervals and tests, since cases of one text are not independent."""
    chance: Float[np.ndarray, " group"]
    """Share of the cases that a random earlier mention gets right."""
    n_unread: int
    n_documents: Int[np.ndarray, " group"]
    """Documents with cases; a text without a name is a document of its own."""

    @property
    def best(self) -> Head:
        """The head with the highest accuracy over all cases, among those that beat the key-matched control."""
        layer, head = self.judgement.best
        return layer, head

    @property
    def best_accuracy(self) -> float:
        """Over all cases, of the heads that are best on each half; with a single document, of the best head."""
        judged = self.judgement
        return float(judged.accuracy[0, *self.best] if judged.held_out is None else judged.held_out.accuracy[0])


@dataclass(frozen=True)
class _Case:
    """One mention that has an antecedent."""

    text: int
    """Position of its text."""
    mention: int
    """Its position among the mentions of the text."""
    type: str
    """One of TYPES."""
    baselines: tuple[bool, ...]
    """Whether each of BASELINES is right."""
    chance: float
    """Share of the earlier mentions that are antecedents."""


def cases_of(texts: Sequence[MentionText], are_read: Sequence[Bool[np.ndarray, "_"]]) -> MentionCases:
    """The mentions that have an antecedent, and whether the baselines are right.

    Nearest mention: the last mention whose head word comes before. Same head word: the nearest earlier mention with the
    same head word, ignoring case; if there is none, the nearest mention (a choice of this project).
    Source: Clark et al. 2019, table 2, which names both baselines.
    """
    cases = [
        case
        for position, (text, is_read) in enumerate(zip(texts, are_read, strict=True))
        for case in _cases_of_text(position, text, is_read)
    ]
    n_with_antecedent = sum(bool(antecedents) for text in texts for antecedents in text.antecedents)
    of_type = np.array([[case.type == name for case in cases] for name in TYPES], bool)
    text_of_case = np.array([case.text for case in cases], int)
    return MentionCases(
        text=text_of_case,
        document=_documents(texts)[text_of_case],
        mention=np.array([case.mention for case in cases], int),
        groups=np.vstack([np.ones(len(cases), bool), of_type]),
        baselines=np.array([case.baselines for case in cases], bool).reshape(-1, len(BASELINES)).T,
        chance=np.array([case.chance for case in cases], float),
        n_unread=n_with_antecedent - len(cases),
    )


def _cases_of_text(position: int, text: MentionText, is_read: Bool[np.ndarray, " mention"]) -> list[_Case]:
    """The mentions of one text that have an antecedent and whose head word has a token."""
    shown = text.shown
    words = [shown[mention.head].lower() for mention in text.mentions]
    cases = []
    for number, antecedents in enumerate(text.antecedents):
        if not antecedents or not is_read[number]:
            continue
        nearest = number - 1
        same_word = max((before for before in range(number) if words[before] == words[number]), default=nearest)
        cases.append(
            _Case(
                text=position,
                mention=number,
                type=text.mentions[number].type,
                baselines=(nearest in antecedents, same_word in antecedents),
                chance=len(antecedents) / number,
            )
        )
    return cases


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
    """Accuracy of every head at antecedent selection, compared with the baselines.

    Args:
        texts: with their mentions.
        choices: choices of every head for each text.
        candidates: a choice among the head words of earlier mentions, or among all words; the baselines choose among
            mentions either way.
        alpha: intervals cover 1 - alpha; level of the key-matched control.

    Raises: AnalysisError where no mention with an antecedent was read.
    Source: Clark et al. 2019, section 4.3: "what percent of the time does the head word of a coreferent mention most
        attend to the head of one of that mention's antecedents". Among which words they looked is not stated.
    """
    cases = cases_of(texts, [choice.is_read for choice in choices])
    if not len(cases.text):
        raise AnalysisError(
            f"All {cases.n_unread:,} mentions that refer back have a head word without a token of its own: it is "
            "beyond the checkpoint's maximum length, or only part of a token. Give shorter texts, or mark whole words."
        )
    right = right_choices(texts, choices, candidates, cases)
    absent = np.any([(choice.of(candidates) == REMOVED).any(axis=-1) for choice in choices], axis=0)
    joined = joined_of(choices, cases)
    head_cases = HeadCases(right, cases.baselines, cases.document, by_document=True, absent=absent, joined=joined)
    return CoreferenceScores(
        candidates=candidates,
        judgement=judge(head_cases, alpha, cases.groups),
        chance=ratio(cases.groups @ cases.chance, cases.groups.sum(axis=1)),
        n_unread=cases.n_unread,
        n_documents=np.array([len(np.unique(cases.document[own])) for own in cases.groups]),
    )


def joined_of(choices: Sequence[MentionChoices], cases: MentionCases) -> Joined:
    """Attention of every head to the antecedents of each case, and what other words give to them.

    Args:
        choices: as for `coreference_scores`.
        cases: result of `cases_of` for these texts, at least one.
    """
    places = list(zip(cases.text.tolist(), cases.mention.tolist()))
    return Joined(
        to_right=np.stack([choices[text].to_antecedents[..., mention] for text, mention in places], axis=-1),
        from_others=np.stack([choices[text].from_others[..., mention] for text, mention in places], axis=-1),
        unit=cases.document,
    )


def right_choices(
    texts: Sequence[MentionText], choices: Sequence[MentionChoices], candidates: Candidates, cases: MentionCases
) -> Bool[np.ndarray, "layer head case"]:
    """Whether every head chose the head word of an antecedent.

    Args:
        texts, choices, candidates: as for `coreference_scores`.
        cases: result of `cases_of` for these texts, at least one.
    """
    right = []
    for position, number in zip(cases.text.tolist(), cases.mention.tolist()):
        text, choice = texts[position], choices[position].of(candidates)
        antecedents = [text.mentions[before].head for before in text.antecedents[number]]
        right.append(np.isin(choice[:, :, number], antecedents))
    return np.stack(right, axis=-1)
