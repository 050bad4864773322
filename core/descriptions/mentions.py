"""Heads that attend from a mention to an earlier coreferent one: selected on one half of the documents, evaluated on
the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.coreference.accuracy import MentionChoices, cases_of, joined_of, right_choices
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.descriptions.facts import KeyControl, MentionFact
from attention_sieve.core.statistics.cases import N_HALVES, HeadCases, judge

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
    cases = cases_of(mentions.texts, [choices.is_read for choices in mentions.choices])
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
    return {
        (layer, head): MentionFact(
            of=mentions.name,
            accuracy=float(judgement.accuracy[0, layer, head]),
            low=float(judgement.low[0, layer, head]),
            high=float(judgement.high[0, layer, head]),
            nearest=nearest,
            same_word=same_word,
            n_cases=len(second_half),
            n_documents=len(np.unique(cases.document[second_half])),
            p_value=float(judgement.p_values[:, 0, layer, head].max()),
            control=KeyControl.of(judgement.key_matched[0], (layer, head)),
        )
        for layer, head in np.argwhere(is_better).tolist()
    }
