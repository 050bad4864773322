"""The strongest link of one head between two words of the text on screen."""

import numpy as np

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.core.word_links.on_text import TextWord, words_on


def strongest_link(text_attention: TextAttention, head: Head) -> tuple[TextWord, TextWord, float] | None:
    """The two different words between which a head gives the largest share of a word's attention, and that share.

    The share is summed over the tokens of the key and averaged over those of the query. None for a text without two
    words, for part of a long text, and for a head that was removed from the checkpoint.
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
    return queries[query], keys[key], float(shares[query, key])
