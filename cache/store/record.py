"""A stored result of one item: arrays, and the length of its text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.passes.arrays import Arrays
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import TooLong

LENGTHS: Final = ("n_tokens", "n_cut")


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """The result for one item, or the fact that its text was too long."""

    arrays: Arrays | None
    """From the question's `pack`; None for a text that was left out because it is too long."""
    attention: Arrays | None = None
    """From packed_attention, for a text on screen: rounded as in the store."""
    n_tokens: int
    """Number of tokens of the whole text; for separately encoded segments, or two checkpoints, of the longer one."""
    n_cut: int
    """Number of tokens that were cut off."""

    @classmethod
    def of(cls, arrays: Arrays, texts: Sequence[PassText], attention: Arrays | None = None) -> "Record":
        """The record of a text that was passed, as each checkpoint has read it."""
        n_tokens, n_cut = (max(text.lengths[name] for text in texts) for name in LENGTHS)
        return cls(arrays=arrays, attention=attention, n_tokens=n_tokens, n_cut=n_cut)

    @classmethod
    def left_out(cls, n_tokens: int) -> "Record":
        """The record of a text that is too long."""
        return cls(arrays=None, n_tokens=n_tokens, n_cut=0)

    @property
    def is_too_long(self) -> bool:
        """Whether the text was left out or cut."""
        return self.arrays is None or self.n_cut > 0

    def serves(self, too_long: TooLong) -> bool:
        """Whether it is valid for this treatment of long texts; a skipped text can still be truncated."""
        if too_long == "error":
            return not self.is_too_long
        return too_long == "skip" or self.arrays is not None

    @property
    def n_bytes(self) -> int:
        """Total size of the arrays."""
        return sum(array.nbytes for arrays in (self.arrays, self.attention) for array in (arrays or {}).values())

    @property
    def lengths(self) -> dict[str, np.ndarray]:
        """The length as arrays."""
        return {"n_tokens": np.array(self.n_tokens), "n_cut": np.array(self.n_cut)}
