"""The distances between heads as a question."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.question import Arrays, Question, text_alone, text_itself
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.similarity.distances import DistanceSettings, TextDistances
from attention_sieve.core.texts.text import Text


@cache
def distance_question(settings: DistanceSettings) -> Question[Text, TextDistances]:
    """How differently any two heads of a checkpoint attend on each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], pass_settings: PassSettings
    ) -> Iterator[list[tuple[int, TextDistances]]]:
        from attention_sieve.core.similarity.observer import text_distances

        return text_distances(checkpoint, prepared, pass_settings, settings)

    return Question(
        name=f"head distances, {'smoothed' if settings.smoothed else 'as they are'}, {settings.rows} rows",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=_pack,
        unpack=_unpack,
    )


def _pack(result: TextDistances) -> Arrays:
    """The upper triangle alone, in single precision: 40 kB of a text for 144 heads."""
    return {
        "pairs": result.pairs.astype(np.float32),
        "relative": result.relative.astype(np.float32),
        "n_queries": np.array(result.n_queries),
    }


def _unpack(arrays: Arrays) -> TextDistances:
    return TextDistances(pairs=arrays["pairs"], relative=arrays["relative"], n_queries=int(arrays["n_queries"]))
