"""A tokenized text with words, and attention that is spread evenly over it: 2 layers, 3 heads."""

import numpy as np

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

TOKENS = ("[CLS]", "the", "ba", "##ker", "saw", "the", "shop", "[SEP]")
WORDS = (SPECIAL, 0, 1, 1, 2, 3, 4, SPECIAL)


BROTHER_TOKENS = ("[CLS]", "my", "bro", "##ther", "broke", "his", "phone", ".", "[SEP]")
BROTHER_WORDS = (SPECIAL, 0, 1, 1, 2, 3, 4, 5, SPECIAL)


def tokenized(tokens=TOKENS, words=WORDS, spans=None):
    words, n_tokens = np.array(words), len(tokens)
    ends = np.cumsum([len(token) for token in tokens])
    spans = np.stack([ends - [len(token) for token in tokens], ends], axis=1) if spans is None else np.array(spans)
    return TokenizedText(
        ids=np.arange(n_tokens),
        type_ids=np.zeros(n_tokens, dtype=int),
        tokens=tokens,
        spans=np.where(words[:, None] == SPECIAL, 0, spans),
        segments=np.where(words == SPECIAL, SPECIAL, 0),
        words=words,
        is_cls=words == SPECIAL,
        is_sep=words == SPECIAL,
        n_cut=0,
    )


def even(n_layers=2, n_heads=3, n_queries=8, n_keys=8, *, causal=False):
    """Attention that is spread evenly."""
    live = np.tril(np.ones((n_queries, n_keys))) if causal else np.ones((n_queries, n_keys))
    return np.tile(live / live.sum(axis=1, keepdims=True), (n_layers, n_heads, 1, 1))


def looked(attention, *, text=None, causal=False, window=None, reaches=()):
    text = text or PassText(kind="self", source=tokenized())
    return TextAttention(
        text=text,
        causal=causal,
        window=window or Window((0, len(text.queries.ids)), (0, len(text.keys.ids))),
        attention=attention,
        block=0,
        overview=None,
        reaches=reaches,
    )
