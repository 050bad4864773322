"""Kinds of keys and queries on the surface of a text, and the weights with which rows of attention are added up."""

from collections.abc import Collection
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from core.checkpoints import AttentionLayers
from core.passes import PassText
from core.sieves import live_keys
from core.surface import KEY_KINDS, SHARES, SPREAD
from core.tokens import SPECIAL, TokenizedText

PUNCTUATION: Final = (".", ",")
"""Tokens that count as punctuation unless others are named. Source: Clark et al. 2019, section 3.2."""
NEIGHBOURS: Final = {"previous": -1, "self": 0, "next": 1}
"""Keys by their place relative to the query."""
COLUMNS: Final = (*NEIGHBOURS, *KEY_KINDS, "entropy", "confidence", "distance")
"""What is known of each row of attention."""
MEASURES: Final = (*SHARES, *SPREAD)
"""Weighted sums of columns over the queries of a text."""


def key_kinds(tokens: TokenizedText, punctuation: Collection[str] = PUNCTUATION) -> Bool[np.ndarray, "key kind"]:
    """Which of KEY_KINDS each key is; a mark that begins some texts and ends others (XLM) is a separator at the end."""
    is_own = tokens.segments != SPECIAL
    is_punctuation = is_own & np.array([token in punctuation for token in tokens.tokens])
    is_cls = tokens.is_cls & ~tokens.is_sep
    return np.stack([is_cls, tokens.is_sep, is_punctuation, ~(is_cls | tokens.is_sep | is_punctuation)], axis=1)


def row_weights(
    text: PassText, kinds: Bool[np.ndarray, "key kind"], causal: bool
) -> Float[np.ndarray, "query column measure"]:
    """Weights that make each of MEASURES the mean of a column over the queries that can have it; 0 where none can."""
    queries, n_queries = text.queries, len(text.queries.ids)
    every, place = np.ones(n_queries, dtype=bool), np.arange(n_queries)
    none, has = ~every, {kind: bool(of_kind.any()) for kind, of_kind in zip(KEY_KINDS, kinds.T)}
    same_text = text.queries is text.keys
    taking_part = {
        ("self", "self"): every & same_text,
        ("previous", "previous"): (place > 0) & same_text,
        ("next", "next"): (place < n_queries - 1) & same_text & (not causal),
        **{(kind, kind): every & has[kind] for kind in KEY_KINDS},
        ("sep from sep", "sep"): queries.is_sep if has["sep"] else none,
        ("sep from others", "sep"): ~queries.is_sep if has["sep"] else none,
        ("entropy", "entropy"): every,
        ("cls entropy", "entropy"): queries.is_cls & ~queries.is_sep,
        ("confidence", "confidence"): queries.segments != SPECIAL,
        ("distance", "distance"): every & same_text,
    }
    weights = np.zeros((n_queries, len(COLUMNS), len(MEASURES)))
    for (measure, column), chosen in taking_part.items():
        weights[:, COLUMNS.index(column), MEASURES.index(measure)] = chosen / max(1, chosen.sum())
    return weights


def uniform_entropies(
    text: PassText, attention: AttentionLayers
) -> tuple[Float[np.ndarray, " layer"], Float[np.ndarray, " layer"]]:
    """Entropy that uniform attention would have, in nats: mean over all queries, and over the [CLS] query; NaN without.

    It is the logarithm of the number of keys that a query sees: of all before it in a causal model, of those in the
    window of a layer that has one.
    """
    queries, keys = text.queries, text.keys
    is_cls = queries.is_cls & ~queries.is_sep
    found = {}
    for reach in {attention.reach(layer) for layer in range(attention.n_layers)}:
        start, end = live_keys(len(queries.ids), len(keys.ids), attention.causal, reach).T
        entropy = np.log(end - start)
        found[reach] = entropy.mean(), entropy[is_cls].mean() if is_cls.any() else np.nan
    by_layer = np.array([found[attention.reach(layer)] for layer in range(attention.n_layers)])
    return by_layer[:, 0], by_layer[:, 1]
