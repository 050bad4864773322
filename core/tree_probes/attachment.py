"""Unlabelled attachment score (UAS), and fixed-offset baselines.

A word's candidates are numbered: ROOT_CANDIDATE, then the words of the text from 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.settings import OFFSETS
from attention_sieve.core.texts.relations import ROOT, Dependencies

ROOT_CANDIDATE: Final = 0
"""Candidate for words without a head; word i of a text, counted from 0, is candidate i + 1."""
NO_CANDIDATE: Final = -1
"""Marks a candidate that is unknown, or that a probe cannot predict."""
PUNCTUATION: Final = "punct"
"""Relation that does not count in attachment scores."""
RIGHT_BRANCHING: Final = 1
"""Offset at which every word's head is the next word."""
LEAST_TEXTS: Final = 2
"""Minimum number of texts for an interval."""
N_RESAMPLES: Final = 1_000
LEVEL: Final = 0.95


@dataclass(frozen=True, eq=False, kw_only=True)
class AttachmentScore:
    """Share of words with the correct head, including ROOT and excluding punctuation: UAS."""

    share: float
    low: float
    high: float
    """Confidence interval at LEVEL."""
    n_words: int
    n_texts: int


def root_first(dependencies: Dependencies) -> Int[np.ndarray, " word"]:
    """Candidate that is each word's head."""
    return np.where(dependencies.heads == ROOT, ROOT_CANDIDATE, dependencies.heads + 1)


def counts(dependencies: Dependencies) -> Bool[np.ndarray, " word"]:
    """Whether each word counts in attachment scores."""
    return np.array([relation != PUNCTUATION for relation in dependencies.relations], bool)


def attachment_score(
    predicted: Sequence[Int[np.ndarray, " _"]],
    heads: Sequence[Int[np.ndarray, " _"]],
    counting: Sequence[Bool[np.ndarray, " _"]],
) -> AttachmentScore:
    """UAS with an interval over texts.

    Words of one sentence are not independent, so an interval for independent cases, such as Wilson's, would be too
    narrow. This is a percentile bootstrap interval over texts with a fixed seed.

    Args:
        predicted, heads: candidates for the words of each text.
        counting: whether each word counts.

    Raises: AnalysisError if fewer than LEAST_TEXTS texts have words that count.
    """
    from scipy.stats import bootstrap

    correct = np.array([int((p == h)[c].sum()) for p, h, c in zip(predicted, heads, counting, strict=True)], float)
    words = np.array([int(c.sum()) for c in counting], float)
    correct, words = correct[words > 0], words[words > 0]
    if len(words) < LEAST_TEXTS:
        raise AnalysisError(
            f"A score needs at least {LEAST_TEXTS} texts with words besides punctuation to test on, got {len(words)}. "
            "Give more."
        )
    resampled = bootstrap(
        (correct, words),
        lambda correct, words, axis: correct.sum(axis) / words.sum(axis),
        paired=True,
        n_resamples=N_RESAMPLES,
        batch=100,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    low, high = map(float, resampled.confidence_interval)
    share = float(correct.sum() / words.sum())
    return AttachmentScore(share=share, low=low, high=high, n_words=int(words.sum()), n_texts=len(words))


def at_offset(n_words: int, offset: int) -> Int[np.ndarray, " word"]:
    """Candidates by a fixed offset: right-branching is 1.

    Returns: candidates; ROOT for positions before the text, the last word for those after it, as in the code of Clark
        et al.
    """
    return np.clip(np.arange(n_words) + 1 + offset, ROOT_CANDIDATE, n_words)


def best_offset(heads: Sequence[Int[np.ndarray, " _"]], counting: Sequence[Bool[np.ndarray, " _"]]) -> int:
    """The most accurate of OFFSETS on some texts; ties are resolved in favour of the smaller, then the positive
    offset."""

    def n_correct(offset: int) -> int:
        return sum(int((at_offset(len(h), offset) == h)[c].sum()) for h, c in zip(heads, counting, strict=True))

    return max(OFFSETS, key=lambda offset: (n_correct(offset), -abs(offset), offset))
