"""Results of one item and of many, with the lengths of their texts; findings of analyses."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic

import numpy as np

from attention_sieve.cache.engine import Engine
from attention_sieve.cache.memory import new_number
from attention_sieve.core.answering import Analysis, Finding, Input, Settings
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import EveryTextTooLong
from attention_sieve.core.passes.arrays import Arrays
from attention_sieve.core.passes.question import Item, Question, Result
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers(Generic[Result]):
    """A question's results for many items."""

    results: tuple[Result, ...]
    """In input order; equal items share one object. Read-only."""
    positions: tuple[int, ...]
    """Index of each result's item in the input."""
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out or cut."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each result's text, as far as it was read."""
    number: int = field(default_factory=new_number, init=False)
    """Identifies these answers in the cache keys of results derived from them, which may outlive them in memory."""


@dataclass(frozen=True)
class FindingRequest(Generic[Input, Item, Result, Settings, Finding]):
    """An analysis of some texts under a checkpoint: all that the finding depends on."""

    engine: Engine
    analysis: Analysis[Input, Item, Result, Settings, Finding]
    inputs: tuple[Input, ...]
    """One or more texts, or what else the analysis takes."""
    settings: Settings
    of_pass: PassSettings
    """Which attention, and which heads are off."""
    too_long: TooLong = "skip"

    def items(self, parse: Callable[[Sequence[Text]], Iterable[Dependencies]]) -> dict[int, Item]:
        """The items of the inputs; as `Analysis.items_of`."""
        return self.analysis.items_of(self.inputs, self.of_pass.kind, self.settings, parse)


@dataclass(frozen=True, eq=False)
class CorpusFinding(Generic[Finding]):
    """What an analysis finds in a corpus, and in which of its texts."""

    finding: Finding
    positions: tuple[int, ...]
    """Index in the corpus of each text that the finding is of."""
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out or cut."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each text that the finding is of, as far as it was read."""
    number: int = field(default_factory=new_number, init=False)
    """As `Answers.number`."""


def collected(question: Question[Any, Result], records: Sequence[Record], too_long: TooLong) -> Answers[Result]:
    """Unpack many records into the results of a question; equal items share one.

    Raises: EveryTextTooLong if there are texts and none remains.
    """
    positions = tuple(i for i, record in enumerate(records) if too_long != "skip" or not record.is_too_long)
    too_long_texts = tuple((i, record.n_tokens) for i, record in enumerate(records) if record.is_too_long)
    if too_long_texts and not positions:
        raise EveryTextTooLong(too_long_texts)
    arrays = {id(records[i]): _arrays(records[i]) for i in positions}
    results = {record: question.unpack(packed) for record, packed in arrays.items()}
    return Answers(
        results=tuple(results[id(records[i])] for i in positions),
        positions=positions,
        too_long=too_long_texts,
        n_tokens=tuple(records[i].n_tokens - records[i].n_cut for i in positions),
    )


def joined(question: Question[Any, Result], parts: Sequence[Answers[Any]]) -> Answers[Result]:
    """The answers to a question from those to each of its parts about the same items.

    Raises: RuntimeError for a question without parts.
    """
    if question.join is None:
        raise RuntimeError(f"The question {question.name!r} has no parts to be joined.")
    return replace(parts[0], results=tuple(map(question.join, zip(*(part.results for part in parts), strict=True))))


def _arrays(record: Record) -> Arrays:
    if record.arrays is None:
        raise RuntimeError("A text that was left out is asked for its answer.")
    return record.arrays
