"""Coreference as a question: which words the mentions of a text attend to most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cache.keys import text_ingredients
from cache.packing import Arrays
from cache.questions import Answers, Question
from core.checkpoints import Checkpoint
from core.coreference import MentionChoices
from core.mentions import MentionText
from core.passes import PassSettings, PassText
from core.words import FromWord


@dataclass(frozen=True)
class MentionsAsked:
    """A text with its mentions, and which pieces of their head words attend."""

    text: MentionText
    from_word: FromWord = "mean"


def _answer(
    checkpoint: Checkpoint, items: Sequence[MentionsAsked], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Arrays]]]:
    from core.coreference_observer import mention_choices

    for from_word in dict.fromkeys(item.from_word for item in items):
        places = [place for place, item in enumerate(items) if item.from_word == from_word]
        texts, passed = [items[place].text for place in places], [prepared[place] for place in places]
        for batch in mention_choices(checkpoint, texts, passed, settings, from_word):
            yield [(places[row], _packed(found)) for row, found in batch]


def _ingredients(item: MentionsAsked) -> Mapping[str, object]:
    """What the choices depend on: neither who corefers with whom nor the types. The mean has no entry of its own."""
    text = item.text
    return {
        "text": text_ingredients(text.text),
        "spans": text.spans,
        "mentions": [mention.head for mention in text.mentions],
        **({} if item.from_word == "mean" else {"from word": item.from_word}),
    }


COREFERENCE: Final[Question[MentionsAsked]] = Question(
    kind="coreference", text_of=lambda item: item.text.text, ingredients=_ingredients, answer=_answer
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
