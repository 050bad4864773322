"""Attention of some heads in one text, as the page and the file of arcs draw it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.record import of_template
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

CROSS: Final = ("target", "source")
"""Names of queries and keys in cross-attention."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """The tokens on one side of the view: those that attend, or those attended to."""

    tokens: Sequence[str]
    """Tokens as shown; may contain any text."""
    special: Bool[np.ndarray, " token"]
    """True for tokens that the tokenizer, or a chat template, added."""
    segments: Int[np.ndarray, " token"]
    """0 or 1; -1 for special tokens."""
    words: Int[np.ndarray, " token"]
    """Number of the token's word in the whole text; -1 for special tokens."""
    name: str = ""
    """Name of the text, such as `source`, if queries and keys are of two texts."""
    start: int = 0
    """Position of the first of these tokens in the whole text."""
    n_whole: int | None = None
    """Number of tokens of the whole text; None if these are all."""

    def __post_init__(self) -> None:
        n_tokens = len(self.tokens)
        if not n_tokens:
            raise ValueError("Arcs need at least one token on each side, got none.")
        for field in ("special", "segments", "words"):
            if (shape := getattr(self, field).shape) != (n_tokens,):
                raise ValueError(f"{field} needs one value for each of {n_tokens} tokens, got shape {shape}.")
        if not 0 <= self.start <= self.length - n_tokens:
            raise ValueError(f"{n_tokens} tokens from {self.start} on do not lie in a text of {self.length}.")

    @classmethod
    def of(cls, text: TokenizedText, name: str = "") -> "Side":
        special = (text.segments == SPECIAL) | of_template(text)
        return cls(tokens=text.tokens, special=special, segments=text.segments, words=text.words, name=name)

    @property
    def length(self) -> int:
        return len(self.tokens) if self.n_whole is None else self.n_whole

    @property
    def is_part(self) -> bool:
        return self.length > len(self.tokens)

    def part(self, start: int, stop: int) -> "Side":
        """The tokens at positions `start` to `stop - 1` of the whole text; a window's side of the view."""
        if not self.start <= start < stop <= self.start + len(self.tokens):
            raise ValueError(
                f"Tokens {start} to {stop - 1} are not among {self.start} to {self.start + len(self.tokens) - 1}."
            )
        selection = slice(start - self.start, stop - self.start)
        return replace(
            self,
            tokens=self.tokens[selection],
            special=self.special[selection],
            segments=self.segments[selection],
            words=self.words[selection],
            start=start,
            n_whole=self.length,
        )


def sides(text_attention: TextAttention) -> tuple[Side, Side]:
    """The window's queries and keys; the same object twice where they are the same tokens."""
    text, window = text_attention.text, text_attention.window
    if text.queries is text.keys:
        queries = Side.of(text.queries).part(*window.queries)
        return queries, queries if window.keys == window.queries else Side.of(text.keys).part(*window.keys)
    target, source = CROSS
    return Side.of(text.queries, target).part(*window.queries), Side.of(text.keys, source).part(*window.keys)


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
