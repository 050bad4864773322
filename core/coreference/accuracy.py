"""Accuracy of heads at antecedent selection: the choices of each head, compared with gold mentions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import REMOVED
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.coreference.mentions import TYPES, MentionText
from attention_sieve.core.errors import AnalysisError
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


def cases_of(texts: Sequence[MentionText], are_read: Sequence[Bool[np.ndarray, "_"]]) -> MentionCases:
    """The mentions that have an antecedent, and whether the baselines are right.

    Nearest mention: the last mention whose head word comes before. Same head word: the nearest earlier mention with the
    same head word, ignoring case; if there is none, the nearest mention (a choice of this project).
    Source: Clark et al. 2019, table 2, which names both baselines.
    """
    numbers = {name: number for number, name in enumerate(dict.fromkeys(text.document for text in texts))}
    cases, types, baselines, chance, n_unread = list[tuple[int, int, int]](), [], [], [], 0
    for position, (text, is_read) in enumerate(zip(texts, are_read, strict=True)):
        for number, (antecedents, same_word) in enumerate(zip(text.antecedents, _same_words(text), strict=True)):
            if not antecedents:
                continue
            if not is_read[number]:
                n_unread += 1
                continue
            cases.append((position, numbers[text.document], number))
            types.append(text.mentions[number].type)
            baselines.append((number - 1 in antecedents, same_word in antecedents))
            chance.append(len(antecedents) / number)
    text_of_case, document, mention = np.array(cases, int).reshape(-1, 3).T
    type_masks = [[own == name for own in types] for name in TYPES]
    return MentionCases(
        text=text_of_case,
        document=document,
        mention=mention,
        groups=np.array([[True] * len(cases), *type_masks], bool),
        baselines=np.array(baselines, bool).reshape(-1, len(BASELINES)).T,
        chance=np.array(chance, float),
        n_unread=n_unread,
    )


def _same_words(text: MentionText) -> list[int]:
    """For each mention, the nearest earlier one with the same head word, or else the one before."""
    last, nearest = dict[str, int](), []
    for number, mention in enumerate(text.mentions):
        word = text.text.segments[0][slice(*text.spans[mention.head])].lower()
        nearest.append(last.get(word, number - 1))
        last[word] = number
    return nearest


def coreference_scores(
    texts: Sequence[MentionText],
    choices: Sequence[MentionChoices],
    candidates: Candidates = "mentions",
    alpha: float = 0.05,
) -> CoreferenceScores:
    """Accuracy of every head at antecedent selection, compared with the baselines.

    Args:
        texts, choices: texts, and the choices of every head for each.
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
    """Attention of every head to the antecedents of each of one or more cases, and what other words give to them."""
    places = list(zip(cases.text.tolist(), cases.mention.tolist()))
    return Joined(
        to_right=np.stack([choices[text].to_antecedents[..., mention] for text, mention in places], axis=-1),
        from_others=np.stack([choices[text].from_others[..., mention] for text, mention in places], axis=-1),
        unit=cases.document,
    )


def right_choices(
    texts: Sequence[MentionText], choices: Sequence[MentionChoices], candidates: Candidates, cases: MentionCases
) -> Bool[np.ndarray, "layer head case"]:
    """Whether every head chose the head word of an antecedent, in each of one or more cases."""
    right = []
    for position, number in zip(cases.text.tolist(), cases.mention.tolist()):
        text, choice = texts[position], choices[position].of(candidates)
        antecedents = [text.mentions[before].head for before in text.antecedents[number]]
        right.append(np.isin(choice[:, :, number], antecedents))
    return np.stack(right, axis=-1)
