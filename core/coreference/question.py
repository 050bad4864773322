"""Coreference as a question: which words the mentions of a text attend to most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.coreference.accuracy import MentionChoices
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.passes.question import Arrays, Question, text_alone
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FromWord

STORED: Final = tuple(field.name for field in fields(MentionChoices))
"""Arrays of an answer, which are part of its key."""


@cache
def choice_question(from_word: FromWord) -> Question[MentionText, MentionChoices]:
    """The choices of every head for the mentions of each text; `from_word` says which pieces of a word attend."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[MentionText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, MentionChoices]]]:
        from attention_sieve.core.coreference.observer import mention_choices

        return mention_choices(checkpoint, texts, prepared, settings, from_word)

    def depends_on(text: MentionText) -> Mapping[str, object]:
        """Types of mentions and names of entities are not included. The mean over pieces adds no entry; the stored
        arrays are named because older entries had fewer."""
        entities = {name: number for number, name in enumerate(dict.fromkeys(each.entity for each in text.mentions))}
        mentions = {
            "spans": text.spans,
            "mentions": [(each.start, each.end, each.head, entities[each.entity]) for each in text.mentions],
            "kept": STORED,
        }
        pieces = {} if from_word == "mean" else {"from word": from_word}
        return {**text_alone(text.text), **mentions, **pieces}

    return Question(
        name="coreference",
        text_of=lambda text: text.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: MentionChoices(**{name: arrays[name] for name in STORED}),
        kinds=(*ONE_STACK, "encoder"),
        why_not="Mentions are in one text, but decoder and cross-attention need two. Choose encoder attention.",
    )


def _pack(result: MentionChoices) -> Arrays:
    arrays = {name: getattr(result, name) for name in STORED}
    return arrays | {"mentions": result.mentions.astype(np.int32), "words": result.words.astype(np.int32)}
