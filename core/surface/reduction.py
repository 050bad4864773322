"""Surface statistics of many texts as series of numbers, for corpora of any size; rare words are those of English."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import Reduction
from attention_sieve.core.statistics.series import SCORE_BINS, Series, Values
from attention_sieve.core.surface.finding import SurfaceSettings
from attention_sieve.core.surface.frequencies import FrequencyList, english_frequencies
from attention_sieve.core.surface.labels import NEAR, OFFSETS, RARE, offset_counts, rare_chance, rare_values
from attention_sieve.core.surface.per_text import SHARES, SPREAD, TextSurface
from attention_sieve.core.surface.statistics import text_values
from attention_sieve.core.texts.text import Text

SURFACE: Final = "surface"
SURFACE_NAMES: Final = (*(share for share in SHARES if share != "first"), *SPREAD, *NEAR.values(), *RARE)
"""Without the share on the first token, which folders of corpora hold as the role `sink`."""
SURFACE_LAYERS: Final = "surface layers"
LAYER_NAMES: Final = ("agreement", "output agreement", "uniform entropy", "cls uniform entropy")
OFFSETS_AT: Final = "surface offsets"
OFFSETS_OF: Final = "surface offsets possible"
RARE_CHANCE: Final = "surface rare chance"


@cache
def _english() -> FrequencyList:
    return english_frequencies()


def _values(_: Sequence[Text], texts: Sequence[TextSurface], settings: SurfaceSettings) -> Values:
    frequencies = settings.frequencies or _english()
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    of_heads = [
        text_values(text) | rare_values(text, text_ranks) for text, text_ranks in zip(texts, ranks, strict=True)
    ]
    offsets = [offset_counts(text) for text in texts]
    return {
        SURFACE: np.stack([np.stack([values[name] for name in SURFACE_NAMES]) for values in of_heads]).astype(
            np.float32
        ),
        SURFACE_LAYERS: np.stack([_layer_values(text) for text in texts]),
        OFFSETS_AT: np.stack([at for at, _ in offsets]).astype(float),
        OFFSETS_OF: np.stack([statistics for _, statistics in offsets]).astype(float),
        RARE_CHANCE: np.array([rare_chance(text_ranks) for text_ranks in ranks]),
    }


def _layer_values(text: TextSurface) -> Float[np.ndarray, "statistic layer"]:
    return np.stack([text.agreement, text.output_agreement, text.uniform_entropy, text.cls_uniform_entropy])


def _series(values: Values, _: Any) -> Mapping[str, Series]:
    bins = {SURFACE: SCORE_BINS}
    return {name: Series(values=array, bins=bins.get(name)) for name, array in values.items()}


def _cells(_: Any, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    n_near = len(OFFSETS) + 1
    return {
        SURFACE: (len(SURFACE_NAMES), n_layers, n_heads),
        SURFACE_LAYERS: (len(LAYER_NAMES), n_layers),
        OFFSETS_AT: (n_near, n_layers, n_heads),
        OFFSETS_OF: (n_near,),
        RARE_CHANCE: (),
    }


SURFACE_REDUCTION: Final = Reduction(
    values=_values, series=_series, cells=_cells, columns=lambda _: {SURFACE: SURFACE_NAMES}
)
"""Statistics by head and by layer, and counts of the offsets of the most attended keys."""
