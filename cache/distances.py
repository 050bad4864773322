"""The divergences between heads as a question: what is kept of each text, and what a page gets of many."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from cache.keys import text_ingredients
from cache.packing import Arrays
from cache.questions import Answers, Question
from core.checkpoints import Checkpoint
from core.passes import PassSettings, PassText
from core.similar_heads import DistanceSettings, HeadDistances, TextDistances, head_distances
from core.texts import Text


@cache
def distance_question(how: DistanceSettings) -> Question[Text]:
    """What divides the heads of a checkpoint on each of many texts."""

    def answer(
        checkpoint: Checkpoint, items: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Arrays]]]:
        from core.head_distances import text_distances

        for batch in text_distances(checkpoint, prepared, settings, how):
            yield [(place, _packed(found)) for place, found in batch]

    return Question(
        kind=f"head distances, {'smoothed' if how.smoothed else 'as they are'}, {how.rows} rows",
        text_of=lambda text: text,
        ingredients=lambda text: {"text": text_ingredients(text)},
        answer=answer,
    )


def _packed(found: TextDistances) -> Arrays:
    """The upper triangle alone, in single precision: 40 kB of a text for 144 heads."""
    return {
        "pairs": found.pairs.astype(np.float32),
        "relative": found.relative.astype(np.float32),
        "n_queries": np.array(found.n_queries),
    }


def found_distances(answers: Answers) -> HeadDistances:
    """The answers of many texts as one."""
    return head_distances(
        [
            TextDistances(pairs=one["pairs"], relative=one["relative"], n_queries=int(one["n_queries"]))
            for one in answers.results
        ]
    )
