"""Sentences of a text with their tree, and the predictions of an attention head."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.texts.relations import ROOT, Dependencies

NOWHERE: Final = int(np.iinfo(np.int64).min)
"""Stands for no prediction."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedSentence:
    words: tuple[str, ...]
    heads: Int[np.ndarray, " word"]
    """Index of each word's head in the sentence; ROOT for a root."""
    relations: tuple[str, ...]
    predicted: Int[np.ndarray, " word"]
    """Index of the predicted head of each word in the sentence; out of range for one outside the sentence, and NOWHERE
    for a word without a prediction."""
    judged: Bool[np.ndarray, " word"]
    """Words whose prediction is drawn."""
    is_paired: bool = False
    """Whether its relations are pairs that a file marks, each from its first word to its second, and no tree."""

    @property
    def right(self) -> Bool[np.ndarray, " word"]:
        return self.judged & (self.predicted == self.heads)


def sentence(
    words: Sequence[str],
    dependencies: Dependencies,
    predicted: Int[np.ndarray, " word"],
    judged: Bool[np.ndarray, " word"],
    span: tuple[int, int],
    is_paired: bool = False,
) -> PredictedSentence:
    """Extract a sentence from a text.

    Args:
        predicted: head of each word as predicted by an attention head; below 0 for none.
        judged: words whose prediction is drawn.
        span: first and one-past-last word of the sentence.
    """
    start, stop = span
    heads, sentence_predictions = dependencies.heads[start:stop], predicted[start:stop]
    return PredictedSentence(
        words=tuple(words[start:stop]),
        heads=np.where(heads == ROOT, ROOT, heads - start),
        relations=dependencies.relations[start:stop],
        predicted=np.where(sentence_predictions < 0, NOWHERE, sentence_predictions - start),
        judged=judged[start:stop],
        is_paired=is_paired,
    )


def sentences(heads: Int[np.ndarray, " word"]) -> list[tuple[int, int]]:
    """First and one-past-last word of each sentence of a text: sentences end where no arc of the trees crosses."""
    n_words = len(heads)
    words = np.arange(n_words)
    ends = np.where(heads == ROOT, words, heads)
    across = np.zeros(n_words + 1, int)
    np.add.at(across, np.minimum(words, ends) + 1, 1)
    np.add.at(across, np.maximum(words, ends) + 1, -1)
    cuts = np.flatnonzero(np.cumsum(across)[: n_words + 1] == 0).tolist()
    return list(pairwise(cuts))
