"""Tokenized texts and relations made by hand."""

import numpy as np

from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.tokens import TokenizedText


def text(n_first, n_second=0, *, marks=True):
    """[CLS] first [SEP] second [SEP], or the same without marks."""
    cls, sep = ("[CLS]",) * marks, ("[SEP]",) * marks
    tokens = cls + ("a",) * n_first + sep + (("b",) * n_second + sep if n_second else ())
    segments = np.array([{"a": 0, "b": 1}.get(token, -1) for token in tokens])
    n_tokens = len(tokens)
    return TokenizedText(
        ids=np.arange(n_tokens),
        type_ids=np.zeros(n_tokens, dtype=int),
        tokens=tokens,
        spans=np.zeros((n_tokens, 2), dtype=int),
        segments=segments,
        words=np.arange(n_tokens),
        is_cls=np.array([token == "[CLS]" for token in tokens]),
        is_sep=np.array([token == "[SEP]" for token in tokens]),
        n_cut=0,
    )


def pair(name, dependent, head):
    return TokenPair(name, np.array(dependent), np.array(head))
