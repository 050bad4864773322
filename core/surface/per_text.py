"""Surface statistics of single texts: shares of attention by kind of key, entropy, confidence, most attended keys.

Does not import torch. `attention_sieve.core.surface.statistics` and `attention_sieve.core.surface.labels` aggregate
them over texts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

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
