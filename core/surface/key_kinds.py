"""Kinds of keys and queries, and the weights with which rows of attention are averaged."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import live_keys
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.surface.per_text import KEY_KINDS, SHARES, SPREAD
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

PUNCTUATION: Final = (".", ",")
"""Tokens that count as punctuation by default. Source: Clark et al. 2019, section 3.2."""
NEIGHBOURS: Final = {"previous": -1, "self": 0, "next": 1}
"""Offsets of neighbouring keys relative to the query."""
COLUMNS: Final = (*NEIGHBOURS, "first", *KEY_KINDS, "entropy", "confidence", "distance")
"""Quantities computed for each row of attention."""
MEASURES: Final = (*SHARES, *SPREAD)
"""Statistics of a text: weighted sums of COLUMNS over its queries."""
CODE_SEPARATORS: Final = 2
"""Number of separators that Clark et al.'s code assumes for every text."""
SMOOTHED: Final = 1e-4
"""Share of a row that Clark et al.'s code spreads evenly over all keys before it takes the entropy."""


@dataclass(frozen=True)
class RowSettings:
    """How the rows of attention of a text are averaged.

    Source: Clark et al. 2019, section 3. Their denominators and the smoothing of rows are documented in their code
        only; the default differs from it deliberately.
    """

    punctuation: tuple[str, ...] = PUNCTUATION
    """Tokens that count as punctuation."""
    as_in_code: bool = False
    """False: shares are means over the queries for which they are defined, and entropy is that of the row. True: as in
    the authors' code. Attention to the previous and the next token is divided by all queries; from separators
    to separators by 2, from the others by the queries less 2; and entropy is that of 0.9999 row + 0.0001 / keys. All
    else is the same in both."""


USUAL_ROWS: Final = RowSettings()


def key_kinds(tokens: TokenizedText, punctuation: Collection[str] = PUNCTUATION) -> Bool[np.ndarray, "key kind"]:
    """Which of KEY_KINDS each key is; a mark that begins some texts and ends others (XLM) is a separator at the end."""
    is_own = tokens.segments != SPECIAL
    is_punctuation = is_own & np.array([token in punctuation for token in tokens.tokens])
    is_cls = tokens.is_cls & ~tokens.is_sep
    return np.stack([is_cls, tokens.is_sep, is_punctuation, ~(is_cls | tokens.is_sep | is_punctuation)], axis=1)


def row_weights(
    text: PassText, kinds: Bool[np.ndarray, "key kind"], causal: bool, as_in_code: bool = False
) -> Float[np.ndarray, "query column measure"]:
    """Weights that make each of MEASURES the mean of a column over the queries for which it is defined.

    Queries of a causal model have no next token; `as_in_code` divides as RowSettings says.
    """
    queries, n_queries = text.queries, len(text.queries.ids)
    all_queries, position = np.ones(n_queries, dtype=bool), np.arange(n_queries)
    no_queries, has = ~all_queries, {kind: bool(is_kind.any()) for kind, is_kind in zip(KEY_KINDS, kinds.T)}
    same_text = text.queries is text.keys
    masks = {
        ("self", "self"): all_queries & same_text,
        ("previous", "previous"): (position > 0) & same_text,
        ("next", "next"): (position < n_queries - 1) & same_text & (not causal),
        ("first", "first"): (position > 0) & same_text & ~kinds[0, KEY_KINDS.index("cls")],
        **{(kind, kind): all_queries & has[kind] for kind in KEY_KINDS},
        ("sep from sep", "sep"): queries.is_sep if has["sep"] else no_queries,
        ("sep from others", "sep"): ~queries.is_sep if has["sep"] else no_queries,
        ("entropy", "entropy"): all_queries,
        ("cls entropy", "entropy"): queries.is_cls & ~queries.is_sep,
        ("confidence", "confidence"): queries.segments != SPECIAL,
        ("distance", "distance"): all_queries & same_text,
    }
    denominators = {measure: mask.sum() for (measure, _), mask in masks.items()}
    if as_in_code:
        denominators |= {"previous": n_queries, "next": n_queries}
        denominators |= {"sep from sep": CODE_SEPARATORS, "sep from others": n_queries - CODE_SEPARATORS}
    weights = np.zeros((n_queries, len(COLUMNS), len(MEASURES)))
    for (measure, column), mask in masks.items():
        weights[:, COLUMNS.index(column), MEASURES.index(measure)] = mask / max(1, denominators[measure])
    return weights


def uniform_entropies(
    text: PassText, attention: AttentionLayers
) -> tuple[Float[np.ndarray, " layer"], Float[np.ndarray, " layer"]]:
    """Entropy of uniform attention in nats: mean over all queries, and of the [CLS] query (NaN without one).

    It is the logarithm of the number of keys that a query can attend to, which a causal model or a window restricts.
    """
    queries, keys = text.queries, text.keys
    is_cls = queries.is_cls & ~queries.is_sep
    by_reach = {}
    for reach in {attention.reach(layer) for layer in range(attention.n_layers)}:
        start, end = live_keys(len(queries.ids), len(keys.ids), attention.causal, reach).T
        entropy = np.log(end - start)
        by_reach[reach] = entropy.mean(), entropy[is_cls].mean() if is_cls.any() else np.nan
    by_layer = np.array([by_reach[attention.reach(layer)] for layer in range(attention.n_layers)])
    return by_layer[:, 0], by_layer[:, 1]
