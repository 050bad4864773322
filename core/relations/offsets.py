"""Baseline parsers: the head of every word is at a fixed distance, or one of the words that are some word's head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.texts.relations import ROOT

OFFSETS: Final = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Offsets in words from a dependent to its predicted head. A wider range than the authors', so the baseline is at least
as strong."""

NOWHERE: Final = -2
"""Stands for a word that no word's head is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Accuracy, 0 to 1."""
    shares: dict[int, float]
    """Accuracy of each offset."""


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offsets: Sequence[int] = OFFSETS
) -> Baseline:
    """The offset with the highest accuracy; ties are resolved in favour of the smaller, then the positive offset.

    Args:
        distances: from each dependent to its head, in words; the head of a root counts as before the first word.
        rooms: number of words before and after each dependent in its segment.
        offsets: the candidates.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    candidates = (*offsets, 0) if (distances == 0).any() else offsets  # in pairs that join two segments
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in candidates}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return Baseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset predicts correctly; it is clipped to the last word, and means root before the first."""
    before, after = rooms
    return np.clip(offset, -before - 1, after) == distances


def among_right_words(
    words: Int[np.ndarray, " case"], heads: Int[np.ndarray, " word"], text: Int[np.ndarray, " word"]
) -> tuple[float, float]:
    """Accuracies of two baselines that know which words of a text are the head of one of these words.

    Args:
        words: one or more cases of a relation, in their order.
        heads: head of every word, numbered through all texts; ROOT for none, where no baseline is right.
        text: number of the text of every word, in order.

    Returns: the share in which the nearest of these heads before the word is right, or the nearest after it, whichever
        is greater; and the expected share of a random one, the word itself excepted.
    """
    right, of_text = heads[words], text[words]
    known = np.unique(right[right != ROOT])
    before, after = np.searchsorted(known, words), np.searchsorted(known, words, side="right")
    padded = np.concatenate([[NOWHERE], known, [NOWHERE]])
    nearest = max(float((padded[before] == right).mean()), float((padded[after + 1] == right).mean()))
    texts = text[known]
    n_choices = np.searchsorted(texts, of_text, side="right") - np.searchsorted(texts, of_text) - (after - before)
    return nearest, float(np.where(right == ROOT, 0, 1 / np.maximum(n_choices, 1)).mean())
