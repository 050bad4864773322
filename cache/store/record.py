"""A stored result of one item: arrays, and the length of its text."""

from dataclasses import dataclass

import numpy as np

from attention_sieve.core.passes.arrays import Arrays
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import TooLong


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """The result for one item, or the fact that its text was too long."""

    arrays: Arrays | None
    """From the question's `pack`; None for a text that was left out because it is too long."""
    n_tokens: int
    """Number of tokens of the whole text; for separately encoded segments, of the longer one."""
    n_cut: int
    """Number of tokens that were cut off."""

    @classmethod
    def of(cls, arrays: Arrays, text: PassText) -> "Record":
        """The record of a text that was passed."""
        sides = (text.queries, text.keys)
        return cls(
            arrays=arrays,
            n_tokens=max(len(side.ids) + side.n_cut for side in sides),
            n_cut=max(side.n_cut for side in sides),
        )

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


def pack_record(record: Record) -> dict[str, np.ndarray]:
    """A record as arrays."""
    lengths = {"n_tokens": np.array(record.n_tokens), "n_cut": np.array(record.n_cut)}
    return {**(record.arrays or {}), **lengths}


def unpack_record(stored: Arrays) -> Record:
    """The inverse of `pack_record`."""
    arrays = {name: array for name, array in stored.items() if name not in ("n_tokens", "n_cut")}
    return Record(arrays=arrays or None, n_tokens=int(stored["n_tokens"]), n_cut=int(stored["n_cut"]))
