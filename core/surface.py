"""What a pass found of each text: shares of attention by kind of key, entropy, confidence, most attended keys.

No torch; `core.surface_statistics` and `core.surface_labels` go from many texts to every head.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

SHARES: Final = ("self", "previous", "next", "cls", "sep", "punctuation", "other", "sep from sep", "sep from others")
"""Parts of a row that are added up; KEY_KINDS are a partition of the keys."""
KEY_KINDS: Final = ("cls", "sep", "punctuation", "other")
"""The partition; the last holds special tokens of further kinds too."""
SPREAD: Final = ("entropy", "cls entropy", "confidence", "distance")
"""Statistics beside the shares that a pass gives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextSurface:
    """What a pass found of one text."""

    shares: Float[np.ndarray, "share layer head"]
    """By SHARES, mean over the queries that can have it, 0 to 1; NaN where a text has no such query or key."""
    entropy: Float[np.ndarray, "layer head"]
    """Mean over the queries, in nats."""
    cls_entropy: Float[np.ndarray, "layer head"]
    """Of the [CLS] query alone; NaN without one."""
    uniform_entropy: Float[np.ndarray, " layer"]
    """What `entropy` of uniform attention would be: the mean of ln(keys that a query sees), less in a layer with a
    window."""
    cls_uniform_entropy: Float[np.ndarray, " layer"]
    """The same of `cls_entropy`."""
    confidence: Float[np.ndarray, "layer head"]
    """Largest weight on a key that is no special token, mean over the queries that are none."""
    distance: Float[np.ndarray, "layer head"]
    """Tokens between a query and its most attended key of all, mean; NaN where the keys are another text's."""
    top_key: Int[np.ndarray, "layer head query"]
    """Most attended key that is no special token, for each query that is none; -1 for the others."""
    top_column: Int[np.ndarray, "layer head"]
    """Key, no special token, that gets most attention of all such queries together."""
    agreement: Float[np.ndarray, " layer"]
    """Within a layer: mean over all pairs of heads, and the queries, of the product of their rows."""
    output_agreement: Float[np.ndarray, " layer"]
    """The same of the cosine of their outputs; NaN where outputs of single heads cannot be seen."""
    key_words: tuple[str, ...] = ()
    """Word that each key is part of, in lower case; empty for a special token. For core.frequencies."""

    @property
    def has_offsets(self) -> bool:
        """Whether queries and keys are tokens of one text."""
        return not np.isnan(self.distance).all()


@dataclass(frozen=True, eq=False, kw_only=True)
class TextGradients:
    """How much the loss of a masked-language model would change with the attention of one text."""

    importance: Float[np.ndarray, "kind layer"]
    """By KEY_KINDS: mean of |gradient of the loss by a weight| over heads, queries and keys of the kind, masked ones
    being "other"; NaN where the text has no such key."""
    n_masked: int
    """Tokens that were masked and are guessed."""
