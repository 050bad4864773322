"""What a head mostly does in one text, if that is as simple as looking at the previous word."""

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

SimplePattern = Literal["previous word", "next word", "same word", "rests"]
MOSTLY: Final = 0.5
"""Share of a head's attention above which it mostly does something."""


def simple_pattern(text_attention: TextAttention, head: Head) -> tuple[SimplePattern, float] | None:
    """The pattern that more than MOSTLY of a head's attention follows, and that share.

    Returns: None if there is no such pattern. The share is a mean over the queries that have such a link.
    """
    attention = text_attention.attention[head]
    links = {
        pattern: np.tril(of_pattern) if text_attention.causal else of_pattern
        for pattern, of_pattern in simple_links(text_attention.text.queries).items()
    }
    shares = {
        pattern: float((attention * of_pattern)[of_pattern.any(axis=1)].sum(axis=-1).mean())
        for pattern, of_pattern in links.items()
        if of_pattern.any()
    }
    pattern = max(shares, key=lambda each: shares[each])  # every token has a link to its own word
    return (pattern, shares[pattern]) if shares[pattern] > MOSTLY else None


def resting_places(text: TokenizedText) -> Bool[np.ndarray, " token"]:
    """The special tokens, or the first token where the tokenizer adds none."""
    special = text.segments == SPECIAL
    return special if special.any() else np.arange(len(text.ids)) == 0


def simple_links(text: TokenizedText) -> dict[SimplePattern, Bool[np.ndarray, "query key"]]:
    """The links of each pattern, in both directions of the text."""
    words, special, resting = text.words, text.segments == SPECIAL, resting_places(text)
    joins = ~special[:, None] & ~special
    return {
        "previous word": joins & (words[:, None] - 1 == words),
        "next word": joins & (words[:, None] + 1 == words),
        "same word": joins & (words[:, None] == words),
        "rests": ~resting[:, None] & resting,
    }
