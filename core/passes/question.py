"""The shape of every analysis: what is asked about the heads of a checkpoint, one item at a time.

An item is a text, or a text with more, such as its words or its mentions. A command asks a question of files (`answer`
below), a page asks it of the corpus (`cache.inference`), and the cache stores the answers to any question.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.attention.settings import ONE_STACK, TWO_STACKS, Kind, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError
from core.passes.arrays import Arrays
from core.passes.texts import PassText
from core.texts.text import Text, text_fields

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(Generic[Item, Result]):
    """What a pass computes for each of many items. Items are hashable; equal ones have equal answers."""

    name: str
    """Part of the key under which answers are stored. Questions of one name differ in what an answer depends on."""
    text_of: Callable[[Item], Text]
    """The text of an item that the checkpoint reads."""
    depends_on: Callable[[Item], Mapping[str, object]]
    """Everything in an item that its answer depends on, as JSON can write it; part of the key, too."""
    compute: Callable[
        [Checkpoint, Sequence[Item], Sequence[PassText], PassSettings], Iterable[Sequence[tuple[int, Result]]]
    ]
    """Index and result of each item, batch by batch in any order, from items and their texts as prepared for the
    pass."""
    pack: Callable[[Result], Arrays]
    """A result as arrays to store; none is named n_tokens or n_cut."""
    unpack: Callable[[Arrays], Result]
    """The inverse of `pack`, up to rounding to single precision."""
    kinds: tuple[Kind, ...] = (*ONE_STACK, *TWO_STACKS)
    """The attentions that the question makes sense for."""
    why_not: str = ""
    """Why it makes no sense for the others, and what to choose, in sentences."""

    def check(self, kind: Kind) -> None:
        """Raise AnalysisError for an attention that the question makes no sense for."""
        if kind not in self.kinds:
            raise AnalysisError(self.why_not)


def answer(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    prepared: Mapping[int, PassText],
    settings: PassSettings,
) -> Iterator[list[tuple[int, Result]]]:
    """Ask a question without a cache.

    Args:
        checkpoint: loaded.
        question: what is computed.
        items: one or more.
        prepared: text of each item that is not left out, by the item's index; from `core.passes.prepare.prepare_all`.
        settings: which attention, and which heads are off.

    Yields: index among the items and result, batch by batch, in any order.
    Raises: AnalysisError for an attention that the question makes no sense for, and what its `compute` raises.
    """
    question.check(settings.kind)
    indices = list(prepared)
    for batch in question.compute(checkpoint, [items[index] for index in indices], list(prepared.values()), settings):
        yield [(indices[row], result) for row, result in batch]


def text_itself(text: Text) -> Text:
    """The text of an item that is a text."""
    return text


def text_alone(text: Text) -> dict[str, object]:
    """What an answer depends on that depends on the text alone."""
    return {"text": text_fields(text)}
