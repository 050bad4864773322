"""The head to show first for a text: the one that attends most specifically to related words."""

import numpy as np

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.texts.tokens import SPECIAL


def telling_head(text_attention: TextAttention) -> Head:
    """The head that attends to related words most, beyond what it gives to other words at the same distance.

    Each word counts with the related word for which a head's attention, less its mean attention between words at the
    same distance, is greatest; the head with the greatest sum is chosen, the first in case of a tie. A head that always
    looks one word back, or that spreads its attention evenly, has a sum of 0. In a text without relations all words
    count as related.
    """
    text, window, attention = text_attention.text, text_attention.window, text_attention.attention
    is_query = text.queries.segments[slice(*window.queries)] != SPECIAL
    is_key = text.keys.segments[slice(*window.keys)] != SPECIAL
    queries, keys = np.nonzero(is_query[:, None] & is_key)
    related = sieve_cells("syntactic", text, text_attention.causal, DIRECTIONS, window)[queries, keys]
    if not related.any():
        related = np.ones(len(queries), dtype=bool)
    best = np.full(attention.shape[:3], -np.inf)
    for distance in sorted(set((keys - queries)[related].tolist())):  # np.unique would import numpy.ma
        is_at_distance = keys - queries == distance
        at_distance = attention[:, :, queries[is_at_distance], keys[is_at_distance]]
        gains = (at_distance - at_distance.mean(axis=-1, keepdims=True))[..., related[is_at_distance]]
        rows = queries[is_at_distance & related]  # no query has two keys at one distance
        best[:, :, rows] = np.maximum(best[:, :, rows], gains)
    sums = np.where(np.isfinite(best), best, 0).sum(axis=-1)
    sums[np.isnan(attention).any(axis=(2, 3))] = -np.inf  # removed from the checkpoint
    return highest_head(sums)
