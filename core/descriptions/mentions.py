"""Heads that look from a mention to an earlier one of the same thing: chosen on one half of the documents, judged on
the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.attention.settings import Head
from core.coreference.accuracy import MentionChoices, cases_of, right_choices
from core.coreference.mentions import MentionText
from core.descriptions.facts import MentionFact
from core.statistics.cases import N_HALVES, judge

LEAST_MENTIONS: Final = 20
"""That refer back, in each half of the documents, for heads to be judged by them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadMentions:
    """Texts with gold mentions, and what every head chooses for these."""

    name: str
    """What the texts are called where their numbers are told."""
    texts: Sequence[MentionText]
    choices: Sequence[MentionChoices]
    """Of each text, under one checkpoint."""


def followed_mentions(mentions: ReadMentions, alpha: float = 0.05) -> dict[Head, MentionFact]:
    """How often heads choose, of the earlier mentions, one of the same thing.

    Heads that are right more often than both baselines on the first, third, ... document are judged on the other
    documents, which are the units of intervals and tests. The p-value is the larger of those against the two baselines,
    times the number of all heads (Bonferroni).

    Args:
        mentions: of one or more texts.
        alpha: the intervals cover 1 - alpha.

    Returns: by head, of those that are judged; empty where one half has fewer than LEAST_MENTIONS cases.
    """
    cases = cases_of(mentions.texts, [of_text.is_read for of_text in mentions.choices])
    seen, unseen = (np.flatnonzero(cases.document % N_HALVES == half) for half in range(N_HALVES))
    if min(len(seen), len(unseen)) < LEAST_MENTIONS:
        return {}
    right = right_choices(mentions.texts, mentions.choices, "mentions", cases)
    judged = judge(right[..., unseen], cases.baselines[:, unseen], cases.document[unseen], alpha, by_document=True)
    beats = right[..., seen].mean(axis=-1) > cases.baselines[:, seen].mean(axis=-1).max()
    nearest, same_word = judged.baselines[:, 0].tolist()
    return {
        (layer, head): MentionFact(
            of=mentions.name,
            accuracy=float(judged.accuracy[0, layer, head]),
            low=float(judged.low[0, layer, head]),
            high=float(judged.high[0, layer, head]),
            nearest=nearest,
            same_word=same_word,
            n_cases=len(unseen),
            n_documents=len(np.unique(cases.document[unseen])),
            p_value=float(judged.p_values[:, 0, layer, head].max()),
        )
        for layer, head in np.argwhere(beats).tolist()
    }
