"""Question: the vectors of heads and layers for each text."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.knowledge.vectors import Pooling, TextVectors
from attention_sieve.core.passes.question import Arrays, Question, text_alone, text_itself
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text


@cache
def vectors_question(pooling: Pooling) -> Question[Text, TextVectors]:
    """Question: the vectors of each text that probes read."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, TextVectors]]]:
        from attention_sieve.core.knowledge.observer import text_vectors

        return text_vectors(checkpoint, prepared, settings, pooling)

    return Question(
        name=f"vectors of heads and layers, {pooling}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=_pack,
        unpack=_unpack,
    )


def _pack(result: TextVectors) -> Arrays:
    return {"heads": result.heads.astype(np.float32), "layers": result.layers.astype(np.float32)}


def _unpack(arrays: Arrays) -> TextVectors:
    return TextVectors(heads=arrays["heads"], layers=arrays["layers"])
