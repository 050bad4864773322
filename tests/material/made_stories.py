"""Texts with mentions, and what heads choose for them, made by hand: 2 layers, 3 heads."""

import numpy as np
from made_attention import to_no_antecedent
from made_heads import FINDER, SHAPE

from attention_sieve.core.coreference.accuracy import MentionChoices
from attention_sieve.core.coreference.mentions import Mention, MentionText
from attention_sieve.core.descriptions.accuracies import LEAST_MENTIONS, ReadMentions
from attention_sieve.core.texts.text import Text

WORDS = ("Ann", "saw", "Bo", "and", "she", "left")
N_TEXTS = 6 * LEAST_MENTIONS
NEAREST, LUCKY = (1, 2), (1, 0)
"""Heads that choose the nearest mention, and that are right on the documents only on which heads are chosen."""


def story(place, document=None):
    """ "She" is Ann, but in every fourth text Bo, who stands nearer."""
    spans = tuple((3 * number, 3 * number + 2) for number in range(len(WORDS)))
    of_she = "b" if place % 4 == 3 else "a"
    mentions = (
        Mention(0, 1, 0, "proper", "a"),
        Mention(2, 3, 2, "proper", "b"),
        Mention(4, 5, 4, "pronoun", of_she),
    )
    text = Text((" ".join(word[:2].ljust(2) for word in WORDS),))
    return MentionText(document or str(place), text, spans, mentions, (len(WORDS),))


def chosen(place, by_head):
    """The word that each head chooses for "she"; other heads choose nothing."""
    choices = np.full((*SHAPE, 3), -1)
    for head, word in by_head.items():
        choices[(*head, 2)] = word
    return MentionChoices(mentions=choices, words=choices, is_read=np.ones(3, bool), **to_no_antecedent(choices))


def antecedent(place):
    return 2 if place % 4 == 3 else 0


def made(n_texts=N_TEXTS, document=lambda place: None):
    """FINDER is right but in every tenth text."""
    choices = [
        chosen(
            place,
            {
                FINDER: 2 - antecedent(place) if place % 10 == 9 else antecedent(place),
                NEAREST: 2,
                LUCKY: 2 if place % 2 else 0,
            },
        )
        for place in range(n_texts)
    ]
    return ReadMentions(
        name="stories", texts=[story(place, document(place)) for place in range(n_texts)], choices=choices
    )
