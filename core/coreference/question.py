"""Coreference as a question: which words the mentions of a text attend to most."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from core.attention.settings import ONE_STACK, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.coreference.accuracy import MentionChoices
from core.coreference.mentions import MentionText
from core.passes.arrays import Arrays
from core.passes.question import Question, text_alone
from core.passes.texts import PassText
from core.texts.words import FromWord


@cache
def choice_question(from_word: FromWord) -> Question[MentionText, MentionChoices]:
    """The choices of every head for the mentions of each text; `from_word` says which pieces of a word attend."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[MentionText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, MentionChoices]]]:
        from core.coreference.observer import mention_choices

        return mention_choices(checkpoint, texts, prepared, settings, from_word)

    def depends_on(text: MentionText) -> Mapping[str, object]:
        """Neither which mentions corefer nor their types. The mean over pieces has no entry of its own."""
        mentions = {"spans": text.spans, "mentions": [mention.head for mention in text.mentions]}
        pieces = {} if from_word == "mean" else {"from word": from_word}
        return {**text_alone(text.text), **mentions, **pieces}

    return Question(
        name="coreference",
        text_of=lambda text: text.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: MentionChoices(
            mentions=arrays["mentions"], words=arrays["words"], is_read=arrays["is_read"]
        ),
        kinds=(*ONE_STACK, "encoder"),
        why_not="Mentions are in one text, but decoder and cross-attention need two. Choose encoder attention.",
    )


def _pack(result: MentionChoices) -> Arrays:
    return {
        "mentions": result.mentions.astype(np.int32),
        "words": result.words.astype(np.int32),
        "is_read": result.is_read,
    }
