"""The analysis of similarity: how differently any two heads attend, as one value."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Question, as_fields, in_single_precision, text_alone, text_itself
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.similarity.distances import (
    USUAL_DISTANCES,
    DistanceSettings,
    HeadDistances,
    TextDistances,
    head_distances,
)
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import Example, Usage

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = {
    "layer_a": "layer of a head",
    "head_a": "its index",
    "layer_b": "layer of a later head",
    "head_b": "its index",
    "divergence": "Jensen-Shannon divergence in nats, 0 to ln 2; mean over the rows of a text, then over texts",
    "sum": "Jensen-Shannon divergence summed over all rows of all texts; of smoothed rows, what the authors report",
    "relative_a_b": "Kullback-Leibler divergence in nats of a from b; empty for heads of different layers",
    "relative_b_a": "the same of b from a",
}


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
        pack=in_single_precision,  # 40 kB of a text for 144 heads
        unpack=lambda arrays: TextDistances(**as_fields(arrays)),
    )


def distance_table(distances: HeadDistances) -> "pd.DataFrame":
    """Every pair of different heads once, within and across layers, with COLUMNS."""
    import pandas as pd  # which the first page does without

    n_layers, n_heads = distances.shape
    a, b = np.triu_indices(n_layers * n_heads, k=1)
    (layer_a, head_a), (layer_b, head_b) = divmod(a, n_heads), divmod(b, n_heads)
    same = layer_a == layer_b
    return pd.DataFrame(
        {
            "layer_a": layer_a,
            "head_a": head_a,
            "layer_b": layer_b,
            "head_b": head_b,
            "divergence": distances.mean[layer_a, head_a, layer_b, head_b],
            "sum": distances.sum[layer_a, head_a, layer_b, head_b],
            "relative_a_b": np.where(same, distances.relative[layer_a, head_a, head_b], np.nan),
            "relative_b_a": np.where(same, distances.relative[layer_a, head_b, head_a], np.nan),
        }
    )


SIMILARITY_ANALYSIS: Final[Analysis[Text, Text, TextDistances, DistanceSettings, HeadDistances]] = Analysis(
    name="similarity",
    sentence="Measure how differently each pair of heads attends; a row per pair of heads, within and across layers.",
    settings=USUAL_DISTANCES,
    text_of=text_itself,
    question=distance_question,
    judge=lambda _, answers, __: head_distances(answers),
    table=distance_table,
    columns=COLUMNS,
    facts=lambda _, settings: settings.facts,
    usage=Usage(example=Example(keywords="rows=16")),
)
"""How differently any two heads attend: Jensen-Shannon divergences of their rows.

Source: Clark et al. 2019, section 6.
"""
