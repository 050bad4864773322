"""Sentences of a text with their tree, and what a head of the checkpoint predicts of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from core.texts.relations import ROOT, Dependencies

NOWHERE: Final = int(np.iinfo(np.int64).min)
"""Prediction for a word that has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sentence:
    """What is drawn of one sentence."""

    words: tuple[str, ...]
    heads: Int[np.ndarray, " word"]
    """Place of each word's head in the sentence; ROOT where it has none."""
    relations: tuple[str, ...]
    predicted: Int[np.ndarray, " word"]
    """Place of the head that is predicted for each word; outside 0 to the last word where it is in no such place, and
    NOWHERE for a word without a prediction."""
    judged: Bool[np.ndarray, " word"]
    """Whose prediction is drawn."""

    @property
    def right(self) -> Bool[np.ndarray, " word"]:
        """Whose prediction is drawn and right."""
        return self.judged & (self.predicted == self.heads)


def sentence(
    words: Sequence[str],
    dependencies: Dependencies,
    predicted: Int[np.ndarray, " word"],
    judged: Bool[np.ndarray, " word"],
    stretch: tuple[int, int],
) -> Sentence:
    """A sentence out of a text.

    Args:
        words: of the whole text, as shown.
        dependencies: of the whole text.
        predicted: head of each word as a head of the checkpoint has it; below 0 where it has none.
        judged: words whose prediction is drawn.
        stretch: first and one-past-last word of the sentence.
    """
    start, stop = stretch
    heads, of_sentence = dependencies.heads[start:stop], predicted[start:stop]
    return Sentence(
        words=tuple(words[start:stop]),
        heads=np.where(heads == ROOT, ROOT, heads - start),
        relations=dependencies.relations[start:stop],
        predicted=np.where(of_sentence < 0, NOWHERE, of_sentence - start),
        judged=judged[start:stop],
    )


def sentences(heads: Int[np.ndarray, " word"]) -> list[tuple[int, int]]:
    """First and one-past-last word of each sentence of a text: where no arc of its trees leads across, one ends."""
    n_words = len(heads)
    own = np.arange(n_words)
    ends = np.where(heads == ROOT, own, heads)
    across = np.zeros(n_words + 1, int)
    np.add.at(across, np.minimum(own, ends) + 1, 1)
    np.add.at(across, np.maximum(own, ends) + 1, -1)
    cuts = np.flatnonzero(np.cumsum(across)[: n_words + 1] == 0).tolist()
    return list(pairwise(cuts))
