"""The common form of all analyses: a question about the heads of a checkpoint, answered for one item at a time.

An item is a text, possibly with additions such as its words or mentions. Commands answer a question for files (`answer`
below), pages for the corpus (`attention_sieve.cache.inference`), and the cache stores the answers to any question: as
named arrays, into which strings are packed, too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from jaxtyping import UInt8

from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text, text_fields

Item = TypeVar("Item")
Result = TypeVar("Result")
REMOVED: Final = -2
"""In place of an index, for a head that was removed from its checkpoint: it attends to nothing."""
Arrays = Mapping[str, np.ndarray]
"""A result as named arrays, the form in which it is stored."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(Generic[Item, Result]):
    """What a pass computes for each of many items. Items are hashable; equal ones have equal answers."""

    name: str
    """Part of the key under which answers are stored. Questions of one name differ in what an answer depends on."""
    text_of: Callable[[Item], Text]
    """The text of an item that the checkpoint reads."""
    depends_on: Callable[[Item], Mapping[str, object]]
    """Everything in an item that its answer depends on, as JSON values; also part of the key."""
    compute: Callable[[Any, Sequence[Item], Sequence[Any], Any], Iterable[Sequence[tuple[int, Result]]]]
    """Index and result of each item, batch by batch in any order: from the checkpoint, items, their texts as prepared
    for the pass (PassText), and PassSettings. A question about two checkpoints takes pairs of these."""
    pack: Callable[[Result], Arrays]
    """A result as arrays to store; none is named n_tokens or n_cut."""
    unpack: Callable[[Arrays], Result]
    """The inverse of `pack`, up to rounding to single precision."""
    kinds: tuple[Kind, ...] = (*ONE_STACK, *TWO_STACKS)
    """The kinds of attention that the question supports."""
    why_not: str = ""
    """Why it does not support the others, and what to choose, in sentences."""
    version: int = 4
    """Version of the answers, part of the key; increase it when answers to this question change."""
    parts: "tuple[Question[Item, Any], ...]" = ()
    """Questions whose answers are kept in place of those to this one, and computed one question after the other."""
    join: Callable[[Sequence[Any]], Result] | None = None
    """Makes an answer of those to the parts, if there are any."""

    def check(self, kind: Kind) -> None:
        """Raise AnalysisError for a kind of attention that the question does not support."""
        if kind not in self.kinds:
            raise AnalysisError(self.why_not)


class AnswerQuestion(Protocol):
    """`answer`, or the same with what the cache keeps."""

    def __call__(
        self,
        checkpoint: Checkpoint,
        question: Question[Item, Result],
        items: Sequence[Item],
        prepared: Mapping[int, PassText],
        settings: PassSettings,
    ) -> Iterator[list[tuple[int, Result]]]:
        """As `answer`."""


def answer(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    prepared: Mapping[int, PassText],
    settings: PassSettings,
) -> Iterator[list[tuple[int, Result]]]:
    """Answer a question without a cache.

    Args:
        prepared: text of each item that is not left out, by the item's index; from
            `attention_sieve.core.passes.texts.prepare_all`.

    Yields: index among the items and result, batch by batch, in any order.
    Raises: AnalysisError for a kind of attention that the question does not support, and whatever `compute` raises.
    """
    question.check(settings.kind)
    indices = list(prepared)
    for batch in question.compute(checkpoint, [items[index] for index in indices], list(prepared.values()), settings):
        yield [(indices[row], result) for row, result in batch]


def text_itself(text: Text) -> Text:
    """The text of an item that is itself a text."""
    return text


def text_alone(text: Text) -> dict[str, object]:
    """The dependencies of an answer that depends on the text only."""
    return {"text": text_fields(text)}


def in_single_precision(result: Any) -> dict[str, np.ndarray]:
    """The fields of a result, which are arrays and numbers, as arrays to store."""
    arrays = {field.name: np.asarray(getattr(result, field.name)) for field in fields(result)}
    return {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in arrays.items()}


def as_fields(arrays: Arrays) -> dict[str, Any]:
    """The inverse of `in_single_precision`: fields by name, whose numbers are numbers again."""
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


def text_to_array(value: str) -> UInt8[np.ndarray, " byte"]:
    """Encode any Python string, lone surrogates included, as an array."""
    return np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)


def array_to_text(array: UInt8[np.ndarray, " byte"]) -> str:
    """The inverse of `text_to_array`."""
    return array.tobytes().decode("utf-8", "surrogatepass")


def part(name: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Arrays as a part of a result, whose names begin with the name of the part."""
    return {f"{name} {array_name}": array for array_name, array in arrays.items()}


def part_of(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """The arrays of one part of a result: the inverse of `part`."""
    start = f"{name} "
    return {other.removeprefix(start): array for other, array in arrays.items() if other.startswith(start)}
