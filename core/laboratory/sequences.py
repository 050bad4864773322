"""Sequences of random tokens that repeat, and which of their tokens a model can know."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.laboratory.settings import DRAWN, FIXED, LENGTH, Periods

BEGINNING, UNKNOWN = "<s>", "<unk>"
WORDS: Final = tuple(f"{consonant}{vowel}" for consonant in "bcdfghjklmnpqrstvwxyz" for vowel in "aeiouy")
"""Syllables, so that sequences can be read and typed."""
VOCABULARY: Final = (BEGINNING, UNKNOWN, *WORDS)


def sequences(n_sequences: int, periods: Periods, random: np.random.Generator) -> Int[np.ndarray, "sequence token"]:
    """Sequences of ids: the token that begins a text, and then different random tokens again and again.

    After how many tokens a sequence repeats is drawn for each, from DRAWN, so that no fixed distance leads to the
    earlier copy of a token; or it is FIXED for all, the control.
    """
    low, high = DRAWN if periods == "drawn" else (FIXED, FIXED)
    period = random.integers(low, high + 1, (n_sequences, 1))
    others = np.arange(len(VOCABULARY) - len(WORDS), len(VOCABULARY))
    block = random.permuted(np.tile(others, (n_sequences, 1)), axis=1)[:, :high]
    repeated = np.take_along_axis(block, np.arange(LENGTH - 1) % period, axis=1)
    return np.pad(repeated, ((0, 0), (1, 0)), constant_values=VOCABULARY.index(BEGINNING))


def is_copied(ids: Sequence[int] | Int[np.ndarray, " token"]) -> Bool[np.ndarray, " token"]:
    """Whether each token can be known from those before it: it followed an earlier copy of the token before it, too.

    In a sequence that repeats, these are all tokens of the second and later copies, but for the first one of the second
    copy, which nothing announces.
    """
    seen = set[tuple[int, int]]()
    copied = [False]
    for pair in zip(map(int, ids), map(int, ids[1:])):
        copied.append(pair in seen)
        seen.add(pair)
    return np.array(copied[: len(ids)], dtype=bool)
