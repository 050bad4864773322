"""Requests of sessions: texts to process, and other work on a loaded checkpoint.

Equal texts that several sessions wait for are one item. A session waits for its request, which is done when all its
items are, or one has failed. All of it is changed under the queue's lock, but for what only the worker's thread
touches: a request's `unprepared` and `ready`, an item's `prepared`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Final

from cache.serving.item_requests import ItemRequest, PassResult
from cache.store.record import Record
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.errors import TextTooLong
from core.passes.texts import PassText

SIZE_OF_ANY: Final = 10
"""Characters that a text counts for besides its own: the shortest costs a pass too."""

Outcome = PassResult | BaseException
"""What became of an item."""


@dataclass(frozen=True)
class Status:
    """How far a request is."""

    done: int
    total: int
    """Texts."""
    seconds_left: float | None
    """Estimate, for the requests before it too; None before anything has been timed."""
    n_waiting_before: int
    """Requests whose turn comes before."""


Report = Callable[[Status], None]
"""Called while a session waits; it may raise to stop waiting."""


@dataclass(eq=False)
class Item:
    """A text that somebody waits for."""

    wanted: ItemRequest
    settings: tuple[PassSettings, ...]
    """For each checkpoint."""
    requests: set["Request"] = field(default_factory=set)
    is_running: bool = False
    """In the batch that is passed now: what is wanted of it can no longer be changed."""
    outcome: Outcome | None = None
    prepared: tuple[PassText, ...] = ()
    """For each checkpoint; empty until then."""

    @property
    def size(self) -> int:
        """Characters: what order and estimates go by, known before anything is tokenised."""
        return SIZE_OF_ANY + sum(map(len, self.wanted.text.segments))

    @property
    def n_tokens(self) -> int:
        """Tokens; 0 while it is not prepared."""
        return max((text.n_tokens for text in self.prepared), default=0)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for it."""
        return self.outcome is None and bool(self.requests)

    def wants_more_than(self, outcome: Outcome) -> bool:
        """Whether an outcome lacks the attention that is wanted: a look may join while the scores are being found."""
        return self.wanted.start is not None and isinstance(outcome, PassResult) and outcome.attention is None

    def is_met_by(self, kept: PassResult) -> bool:
        """Whether what the store has spares a pass; of a text that was left out or cut, only where it may be cut."""
        return all(side.arrays is not None and (self.wanted.truncate or not side.n_cut) for side in kept.sides)


class Request:
    """The texts that one session waits for."""

    def __init__(
        self, number: int, items: Sequence[Item], indices: Sequence[int | None], skips: bool, changed: Condition
    ):
        """Wait for items.

        Args:
            number: later requests have higher ones.
            items: one or more, all different.
            indices: index of each among the texts that the session gave, for messages.
            skips: whether a text that is too long is left out rather than a failure.
            changed: on the queue's lock; notified when more of it is done.
        """
        self.number = number
        self.items = tuple(items)
        self.failure: BaseException | None = None
        self.n_done = 0
        self.size_left = sum(item.size for item in items)
        self.passed_over = 0
        """Batches since it last had a text in one."""
        self.unprepared, self.ready = deque(items), list[Item]()
        self.changed = changed
        self._indices = dict(zip(items, indices))
        self._skips = skips

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.failure is not None or self.n_done == len(self.items)

    def next_unprepared(self, n_characters: int) -> list[Item]:
        """Take some texts that are still wanted off those to be prepared."""
        taken, n_taken = list[Item](), 0
        while self.unprepared and n_taken < n_characters:
            item = self.unprepared.popleft()
            if item.is_wanted:
                taken.append(item)
                n_taken += item.size
        return taken

    def take(self, item: Item) -> None:
        """Count an item whose outcome is there."""
        self.n_done += 1
        self.size_left -= item.size
        if isinstance(item.outcome, BaseException) and not self._leaves_out(item.outcome):
            self.failure = self.failure or _at(self._indices[item], item.outcome)
        self.changed.notify_all()

    def _leaves_out(self, outcome: Outcome | None) -> bool:
        return self._skips and isinstance(outcome, TextTooLong)

    def answer(self) -> list[PassResult]:
        """What was seen of each text, in order.

        Raises: the failure of the first that failed.
        """
        if self.failure is not None:
            raise self.failure
        return [_seen(item.outcome) for item in self.items]


@dataclass(eq=False)
class Job:
    """Work on the loaded checkpoint that answers no question; its promise carries the result."""

    work: Callable[[Checkpoint], Any]
    promise: Future = field(default_factory=Future)


def _at(place: int | None, error: BaseException) -> BaseException:
    """An error about one text names its place among those that this session gave."""
    return error.at(place) if hasattr(error, "at") else error


def _seen(outcome: Outcome | None) -> PassResult:
    """What was seen of a text of a request that has not failed; a text that is too long was then to be left out."""
    if isinstance(outcome, TextTooLong):
        return left_out(outcome)
    if not isinstance(outcome, PassResult):
        raise RuntimeError("A request was answered before all its texts were seen.")
    return outcome


def left_out(error: TextTooLong) -> PassResult:
    """What is kept of a text that is too long."""
    return PassResult(record=Record.left_out(error.n_tokens))
