"""Attention of some heads in one text, as the page and the file of arcs draw it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.figures.text.sides import Side


@dataclass(frozen=True)
class Signs:
    """What the two colours of a difference mean, which is the compared attention minus the reference."""

    more: str = "more attention"
    less: str = "less attention"


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionMaps:
    """Attention of some heads in one text, or the difference of two maps of one head.

    Raises: ValueError for inconsistent shapes, or a difference of several heads.
    """

    queries: Side
    """The tokens that attend: those of a text, or of a window into it."""
    keys: Side
    """The tokens attended to; the same object where these are the queries."""
    attention: Float[np.ndarray, "chosen query key"]
    """Rows sum to 1, or to less where the keys are part of a text; those without a query or a head are 0. Of a
    difference, between -1 and 1; rows sum to 0, unless the keys are part of a text."""
    heads: Sequence[Head]
    """In the order of their colours."""
    causal: bool = False
    """Whether a query sees only itself and the tokens before it."""
    signs: Signs | None = None
    """Of a difference; None for attention."""
    label: str
    """What they show, for screen readers."""

    def __post_init__(self) -> None:
        n_heads, n_queries, n_keys = shape = (len(self.heads), len(self.queries.tokens), len(self.keys.tokens))
        if self.attention.shape != shape:
            raise ValueError(
                f"{n_heads} heads, {n_queries} queries and {n_keys} keys need attention of shape {shape}, "
                f"got {self.attention.shape}."
            )
        if self.signs is not None and n_heads > 1:
            raise ValueError(f"A difference of attention is drawn for one head at a time, got {n_heads}.")
