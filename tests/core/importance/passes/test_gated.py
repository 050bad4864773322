"""Vectors of texts under several gatings: they turn as far as in passes with the same heads off."""

import pytest
from passing import SELF
from sklearn.metrics.pairwise import cosine_similarity

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.importance.nearest import first_off
from attention_sieve.core.importance.passes.sweep import gated, mean_vectors
from attention_sieve.core.passes.outputs import output_change
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("the cat sat on the mat.",)), Text(("a dog ran.",)))


@pytest.mark.parametrize("name", ["masked", "causal", "classes"])
def test_vectors_turn_as_far_as_in_passes_with_these_heads_off(headed, name):
    checkpoint, heads = headed(name), [(1, 2), (0, 1)]
    prepared, _ = prepare_all(checkpoint, TEXTS, SELF, "error")
    gatings = first_off(heads, *(checkpoint.attentions["self"].n_layers, checkpoint.attentions["self"].n_heads))
    work = gated(checkpoint, list(prepared.values()), SELF, "output", gatings, mean_vectors)
    results = dict(one for batch in work for one in batch)
    for index, text in prepared.items():
        for n_off in range(len(heads) + 1):
            settings = PassSettings(off=tuple(sorted(heads[:n_off])))
            cosine = cosine_similarity(results[index][:1], results[index][n_off : n_off + 1]).item()
            assert cosine == pytest.approx(output_change(checkpoint, text, settings).cosine, rel=1e-6)
