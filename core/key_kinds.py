"""Kinds of keys and queries on the surface of a text, and the weights with which rows of attention are added up."""

from collections.abc import Collection
from dataclasses import dataclass
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
CODE_SEPARATORS: Final = 2
"""Separators that a text has for Clark et al.'s code, whatever it has."""


@dataclass(frozen=True)
class SurfaceSettings:
    """How surface statistics are taken.

    Source: Clark et al. 2019, section 3. What they divide by, and that they smooth rows, is read off their code; the
        default differs from it by this project's choice.
    """

    punctuation: tuple[str, ...] = PUNCTUATION
    """Tokens that count as such."""
    as_in_code: bool = False
    """False: shares are means over the queries that can have them, and entropy is that of the row. True: as the
    authors' code computes them. Attention to the previous and the next token is divided by all queries; from separators
    to separators by 2, from the others by the queries less 2; and entropy is that of 0.9999 row + 0.0001 / keys. All
    else is the same in both."""


def key_kinds(tokens: TokenizedText, punctuation: Collection[str] = PUNCTUATION) -> Bool[np.ndarray, "key kind"]:
    """Which of KEY_KINDS each key is; a mark that begins some texts and ends others (XLM) is a separator at the end."""
    is_own = tokens.segments != SPECIAL
    is_punctuation = is_own & np.array([token in punctuation for token in tokens.tokens])
    is_cls = tokens.is_cls & ~tokens.is_sep
    return np.stack([is_cls, tokens.is_sep, is_punctuation, ~(is_cls | tokens.is_sep | is_punctuation)], axis=1)


def row_weights(
    text: PassText, kinds: Bool[np.ndarray, "key kind"], causal: bool, as_in_code: bool = False
) -> Float[np.ndarray, "query column measure"]:
    """Weights that make each of MEASURES the mean of a column over the queries that can have it; 0 where none can.

    Args:
        text: prepared.
        kinds: of its keys.
        causal: whether no query sees a later key.
        as_in_code: divide as SurfaceSettings says.
    """
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
    divided_by = {measure: chosen.sum() for (measure, _), chosen in taking_part.items()}
    if as_in_code:
        divided_by |= {"previous": n_queries, "next": n_queries}
        divided_by |= {"sep from sep": CODE_SEPARATORS, "sep from others": n_queries - CODE_SEPARATORS}
    weights = np.zeros((n_queries, len(COLUMNS), len(MEASURES)))
    for (measure, column), chosen in taking_part.items():
        weights[:, COLUMNS.index(column), MEASURES.index(measure)] = chosen / max(1, divided_by[measure])
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
