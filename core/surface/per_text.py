"""Surface statistics of single texts: shares of attention by kind of key, entropy, confidence, most attended keys;
the kind of each key, and the weights with which rows of attention are averaged.

Does not import torch. `attention_sieve.core.surface.statistics` aggregates them over texts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import live_keys
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

SHARES: Final = (
    "self", "previous", "next", "cls", "sep", "punctuation", "other", "sep from sep", "sep from others", "first",
)  # fmt: skip
"""Shares of a row of attention. KEY_KINDS partition the keys; "first" is the first token, where that is no [CLS]."""
KEY_KINDS: Final = ("cls", "sep", "punctuation", "other")
"""The partition; "other" includes other special tokens."""
SPREAD: Final = ("entropy", "cls entropy", "confidence", "distance")
"""The other statistics of a pass."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextSurface:
    """Surface statistics of one text."""

    shares: Float[np.ndarray, "share layer head"]
    """By SHARES, mean over the queries for which it is defined, 0 to 1; NaN if a text has no such query or key."""
    entropy: Float[np.ndarray, "layer head"]
    """Mean over the queries, in nats; NaN, as all floating-point fields, for a head that was removed."""
    cls_entropy: Float[np.ndarray, "layer head"]
    """Of the [CLS] query alone; NaN without one."""
    uniform_entropy: Float[np.ndarray, " layer"]
    """`entropy` of uniform attention: the mean of ln(number of keys that a query can attend to), which is smaller in a
    layer with a window."""
    cls_uniform_entropy: Float[np.ndarray, " layer"]
    """The same of `cls_entropy`."""
    confidence: Float[np.ndarray, "layer head"]
    """Largest attention to a non-special key, mean over the non-special queries."""
    distance: Float[np.ndarray, "layer head"]
    """Tokens between a query and its most attended key of all, mean; NaN in cross-attention."""
    top_key: Int[np.ndarray, "layer head query"]
    """Most attended non-special key of each non-special query; -1 for special queries."""
    top_column: Int[np.ndarray, "layer head"]
    """Non-special key that receives the most attention from all non-special queries."""
    agreement: Float[np.ndarray, " layer"]
    """Within a layer: mean over all pairs of heads, and the queries, of the product of their rows."""
    output_agreement: Float[np.ndarray, " layer"]
    """The same of the cosine of their outputs; NaN if outputs of single heads cannot be observed."""
    key_words: tuple[str, ...] = ()
    """Word that each key is part of, in lower case; empty for a special token. For
    attention_sieve.core.surface.frequencies."""

    @property
    def has_offsets(self) -> bool:
        """Whether queries and keys are tokens of one text."""
        return not np.isnan(self.distance).all()


@dataclass(frozen=True, eq=False, kw_only=True)
class TextGradients:
    """Gradient of a masked-language-model loss with respect to the attention of one text."""

    importance: Float[np.ndarray, "kind layer"]
    """By KEY_KINDS: mean of |gradient of the loss with respect to a weight| over heads, queries and keys of the kind,
    masked ones being "other"; NaN where the text has no such key."""
    n_masked: int
    """Number of masked tokens."""


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
