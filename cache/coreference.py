"""Coreference as a question: which words the mentions of a text attend to most."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from cache.keys import text_ingredients
from cache.packing import Arrays
from cache.questions import Answers, Question
from core.checkpoints import Checkpoint
from core.coreference import MentionChoices
from core.mentions import MentionText
from core.passes import PassSettings, PassText


def _answer(
    checkpoint: Checkpoint, items: Sequence[MentionText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Arrays]]]:
    from core.coreference_observer import mention_choices

    for batch in mention_choices(checkpoint, items, prepared, settings):
        yield [(place, _packed(found)) for place, found in batch]


def _ingredients(item: MentionText) -> Mapping[str, object]:
    """What the choices depend on: neither who corefers with whom nor the types."""
    return {
        "text": text_ingredients(item.text),
        "spans": item.spans,
        "mentions": [mention.head for mention in item.mentions],
    }


COREFERENCE: Final[Question[MentionText]] = Question(
    kind="coreference", text_of=lambda item: item.text, ingredients=_ingredients, answer=_answer
)
"""The choices of the mentions of each of many texts."""


def _packed(found: MentionChoices) -> Arrays:
    return {
        "mentions": found.mentions.astype(np.int32),
        "words": found.words.astype(np.int32),
        "is_read": found.is_read,
    }


def found_choices(answers: Answers) -> list[MentionChoices]:
    """The answers of many texts as the scores take them."""
    return [
        MentionChoices(mentions=one["mentions"], words=one["words"], is_read=one["is_read"]) for one in answers.results
    ]
