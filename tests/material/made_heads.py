"""Texts with trees, predictions and surface statistics made by hand: 2 layers, 3 heads."""

import numpy as np
from made_attention import along_no_tree

from attention_sieve.core.relations.cases import TextPredictions
from attention_sieve.core.surface.per_text import SHARES, TextSurface
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.tokens import Words

ROOT = -1
SHAPE = (2, 3)
FINDER, BACK, TURNED = (0, 1), (1, 2), (1, 0)
"""Heads that find subjects, look at the word before, and find the second half's subjects only."""


def predictions(heads, relations, dependent_to_head, head_to_dependent=None, document=None):
    """A text of one-letter words; predictions by head, other heads predict nothing."""
    n_words = len(heads)
    predicted = np.full((2, *SHAPE, n_words), -1)
    for direction, by_head in enumerate((dependent_to_head, head_to_dependent or {})):
        for head, of_words in by_head.items():
            predicted[direction][head] = of_words
    starts = 2 * np.arange(n_words)
    words = Words(segments=np.zeros(n_words, int), spans=np.stack([starts, starts + 1], axis=1))
    return TextPredictions(
        dependencies=Dependencies(words=words, heads=np.array(heads), relations=tuple(relations)),
        predicted=predicted,
        has_tokens=np.ones(n_words, bool),
        **along_no_tree(predicted),
        document=document,
    )


def surface(n_keys=10, entropy=0.5, **shares):
    """Statistics of one text: shares by name and head, 0.01 for those that are not given."""
    of_names = {name: np.full(SHAPE, 0.01) for name in SHARES}
    for name, by_head in shares.items():
        for head, share in by_head.items():
            of_names[name][head] = share
    none, uniform = np.full(SHAPE, np.nan), np.full(SHAPE[0], np.log(n_keys))
    return TextSurface(
        shares=np.stack([of_names[name] for name in SHARES]),
        entropy=np.full(SHAPE, entropy * np.log(n_keys)),
        cls_entropy=none,
        uniform_entropy=uniform,
        cls_uniform_entropy=uniform,
        confidence=none,
        distance=np.ones(SHAPE),
        top_key=np.full((*SHAPE, n_keys), -1),
        top_column=np.zeros(SHAPE, int),
        agreement=uniform,
        output_agreement=uniform,
        key_words=("a",) * n_keys,
    )


def text(place, document=None):
    """A subject whose verb stands 1 or 2 words on, by turns; the adverb is always right behind its verb."""
    far = place // 2 % 2
    heads = [1 + far, *([1 + far] * far), ROOT, 1 + far]
    relations = ["nsubj", *(["aux"] * far), "root", "advmod"]
    n_words, verb = len(heads), 1 + far
    found = np.full(n_words, -1)
    found[0] = verb
    back = np.arange(n_words) - 1
    turned = found if place % 2 else np.full(n_words, -1)
    return predictions(heads, relations, {FINDER: found, BACK: back}, {TURNED: turned}, document)
