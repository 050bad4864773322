"""What a head does in one text, as far as that is simple: one pattern, or its strongest link between two words."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText
from attention_sieve.core.word_links.on_text import TextWord, words_on

SimplePattern = Literal["previous word", "next word", "same word", "rests"]
MOSTLY: Final = 0.5
"""Share of a head's attention above which it mostly does something."""
LEAST_SHARE: Final = 0.3
"""Minimum share of a head's attention for a sentence to name a link, so that the arcs described are visible."""


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
        pattern: float(share_on(attention, of_pattern)) for pattern, of_pattern in links.items() if of_pattern.any()
    }
    pattern = max(shares, key=lambda each: shares[each])  # every token has a link to its own word
    return (pattern, shares[pattern]) if shares[pattern] > MOSTLY else None


def share_on(
    attention: Float[np.ndarray, "*heads query key"], links: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "*heads"]:
    """Share of attention on some links, mean over the queries that have one."""
    queries = np.flatnonzero(links.any(axis=1))
    return np.asarray((attention[..., queries, :] * links[queries]).sum(axis=-1).mean(axis=-1))


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


@dataclass(frozen=True, kw_only=True)
class WordLink:
    query: TextWord
    key: TextWord
    share: float
    """Of the attention of the query: sum over the tokens of the key, mean over those of the query."""
    from_others: float
    """Mean share that the other words give to the same key; 0 where there are none."""
    even: float
    """The share if all attention to tokens of the text were spread evenly."""

    @property
    def stands_out(self) -> bool:
        """Whether it is worth a sentence: a head that rests has a strongest link, too, which says nothing."""
        return self.share >= max(LEAST_SHARE, LEAST_TIMES * max(self.from_others, self.even))


def strongest_link(text_attention: TextAttention, head: Head) -> WordLink | None:
    """The two different words between which a head gives the largest share of a word's attention.

    None for a text without two words, for part of a long text, and for a head that was removed from the checkpoint.
    """
    if text_attention.overview is not None:
        return None
    queries, keys = (
        [word for word in words_on(side, (0, len(side.ids))) if word.segment != SPECIAL]
        for side in (text_attention.text.queries, text_attention.text.keys)
    )
    from_tokens, to_tokens = (
        np.array([np.isin(np.arange(n_tokens), word.tokens) for word in words]).reshape(-1, n_tokens)
        for words, n_tokens in zip((queries, keys), text_attention.attention.shape[-2:])
    )
    shares = (from_tokens / from_tokens.sum(axis=1, keepdims=True)) @ text_attention.attention[head] @ to_tokens.T
    if text_attention.text.queries is text_attention.text.keys:
        np.fill_diagonal(shares, 0)
    if not shares.size or not shares.max() > 0:  # NaN for a removed head
        return None
    query, key = np.unravel_index(shares.argmax(), shares.shape)
    share, others = float(shares[query, key]), np.delete(shares[:, key], query)
    if text_attention.text.queries is text_attention.text.keys:
        others = np.delete(others, key - (key > query))  # the key itself
    return WordLink(
        query=queries[query],
        key=keys[key],
        share=share,
        from_others=float(others.mean()) if others.size else 0,
        even=len(keys[key].tokens) / text_attention.attention.shape[-1],
    )
