"""Which texts are equal: where texts are the units of tests and intervals, equal ones count once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_sieve.core.texts.text import Text


def text_numbers(texts: Sequence[Text]) -> Int[np.ndarray, " text"]:
    """Index of the first text that is equal to each but for spaces, which is its own where no earlier one is."""
    first = dict[Any, int]()
    return np.array(
        [
            first.setdefault((tuple(tuple(segment.split()) for segment in text.segments), text.given), index)
            for index, text in enumerate(texts)
        ],
        dtype=int,
    )


def different_rows(numbers: Int[np.ndarray, " text"]) -> Int[np.ndarray, " different"]:
    """Rows of the first text of each number, in the order of the texts."""
    return np.sort(np.unique(numbers, return_index=True)[1])


def equal_texts(n_equal: int, n_texts: int) -> str | None:
    """That equal texts count once, in a sentence; None where all of `n_texts` differ.

    Args:
        n_equal: number of texts that are equal to an earlier one.
    """
    if not n_equal:
        return None
    repeat = "repeats another" if n_equal == 1 else "repeat others"
    return f"Equal texts count once: {n_equal:,} of {n_texts:,} {repeat}."
