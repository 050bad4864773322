"""Attention between words once more, word by word from transformers' own eager maps in float64."""

from functools import lru_cache

import numpy as np
from naive import eager_maps


def eager(checkpoint, text, settings):
    """Attention [layer head query key] of one prepared text; rows sum to 1."""
    from attention_sieve.core.passes.batches import model_inputs

    # PyTorch has no grouped product of float64 matrices for the experts of gpt_oss.
    dtype = "float32" if checkpoint.files.model_type == "gpt_oss" else "float64"
    model, kind = eager_model(checkpoint.files.folder, dtype), settings.kind
    if kind == "encoder":
        model, kind = model.get_encoder(), "self"
    maps = eager_maps(model, model_inputs(checkpoint, [text]))[1][kind][:, 0].double().numpy()
    return maps / maps.sum(-1, keepdims=True)


@lru_cache(maxsize=4)
def eager_model(folder, dtype):
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=dtype)
    return model.to(getattr(torch, dtype)).eval()  # some parameters of XLNet are made in float32 whatever is asked for


def between_words(attention, of_token, n_words, from_word):
    """[layer head word word]: the sum over key pieces, the mean over query pieces or the first of them."""
    found = np.zeros((*attention.shape[:2], n_words, n_words))
    for query in range(n_words):
        rows = np.flatnonzero(of_token == query)
        for key in range(n_words):
            columns = np.flatnonzero(of_token == key)
            for row in rows if from_word == "mean" else rows[:1]:
                share = len(rows) if from_word == "mean" else 1
                found[:, :, query, key] += attention[:, :, row, columns].sum(-1) / share
    return found
