"""Requests of sessions: texts to process, other work on a loaded checkpoint, and the errors with which they end.

Equal texts that several sessions wait for are one item. A session waits for its request, which is done when all its
items are done or one has failed. The queue's lock protects everything except what only the worker's thread uses: a
request's `unprepared` and `ready`, and an item's `prepared`.
"""

import logging
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Final

from attention_sieve.cache.answers import ItemRequest, Record
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, CheckpointError, OneTextError, TextTooLong, is_panic, panicked
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text

_log = logging.getLogger(__name__)


class TooLarge(OneTextError):
    """A single text, of so many tokens, needs more memory than available."""

    said = (
        "has {:,} tokens, more than fit into memory with this checkpoint. Cut it, leave it out, or choose a smaller "
        "checkpoint or another device."
    )


def out_of_memory(checkpoint: Checkpoint) -> AnalysisError:
    """The error for a job that ran out of memory."""
    return AnalysisError(
        f"This needs more memory than {checkpoint.device} has room for beside {checkpoint.files.name}. Choose a "
        "shorter text, a smaller checkpoint or another device."
    )


def as_exception(error: BaseException) -> BaseException:
    """The error to raise in waiting sessions: a panic is not an Exception and would end a page's thread for good."""
    return CheckpointError(panicked(error)) if is_panic(error) else error


def log_and_release(error: BaseException, is_bug: bool = True) -> None:
    """Log a bug and remove an error's tracebacks, whose frames refer to a model or the tensors of a pass.

    Waiting sessions raise the error again and may keep it for a long time.
    """
    if is_bug and not isinstance(error, AnalysisError):
        _log.error("A pass failed.\n%s", "".join(traceback.format_exception(error)))
    reason: BaseException | None = error
    while reason is not None:
        reason.__traceback__ = None
        reason = reason.__cause__ or reason.__context__


SIZE_OF_ANY: Final = 10
"""Characters added to the length of every text, because even the shortest one costs part of a pass."""
SHORT_CHARACTERS: Final = 1_000
"""Length of a text on screen up to which it goes before other work, and interrupts it: a paragraph."""

Outcome = Record | BaseException
"""Result of an item, or the error that it ended with."""


@dataclass(frozen=True)
class Status:
    """Progress of a request."""

    done: int
    total: int
    """Number of texts."""
    seconds_left: float | None
    """Estimate, if other visitors who wait get equal shares of the model's time; None until a batch of each question
    that somebody waits for has been timed."""
    n_waiting_before: int
    """Number of requests that are served before it."""
    is_parsing: bool = False
    """Whether the texts are being parsed, before they are passed."""


Report = Callable[[Status], None]
"""Called while a session waits; it may raise to stop waiting."""


class NobodyWaits(Exception):
    """Ends work that everybody has stopped waiting for, at its next pause."""


@dataclass(eq=False)
class WaitingText:
    """A text that one or more requests wait for."""

    item_request: ItemRequest
    settings: tuple[PassSettings, ...]
    """Settings of each checkpoint's pass."""
    requests: set["Request"] = field(default_factory=set)
    visitors: frozenset[Hashable] = frozenset()
    """Who waited for it when it began to run, and shares its cost."""
    is_running: bool = False
    """Whether it is in a batch, so that its request can no longer be extended."""
    outcome: Outcome | None = None
    prepared: tuple[PassText, ...] = ()
    """The text as each checkpoint reads it; empty until it is prepared."""

    @property
    def size(self) -> int:
        """Characters, for priorities and estimates; known before tokenisation."""
        return SIZE_OF_ANY + n_characters(self.item_request.text)

    @property
    def n_tokens(self) -> int:
        """Number of tokens; 0 until it is prepared."""
        return max((text.n_tokens for text in self.prepared), default=0)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for it."""
        return self.outcome is None and bool(self.requests)

    @property
    def can_begin(self) -> bool:
        """Whether somebody waits for it, and it is in no batch yet."""
        return self.is_wanted and not self.is_running

    def wants_more_than(self, outcome: Outcome) -> bool:
        """Whether an outcome lacks the requested attention: a look may join while the scores are being computed."""
        return self.item_request.start is not None and isinstance(outcome, Record) and outcome.attention is None

    def is_satisfied_by(self, stored: Record) -> bool:
        """Whether a stored result makes a pass unnecessary; a truncated one does only if truncation is allowed."""
        return stored.arrays is not None and (self.item_request.truncate or not stored.n_cut)


@dataclass(eq=False, kw_only=True)
class Request:
    """The texts that one session waits for."""

    number: int
    """Later requests have higher numbers."""
    items: tuple[WaitingText, ...]
    """One or more, all different, of one question."""
    indices: Sequence[int | None]
    """Index of each item among the session's texts, for error messages."""
    visitor: Hashable
    """The session, or the thread, whose model time it takes."""
    skips: bool
    """Whether texts that are too long are left out; otherwise they are errors."""
    is_urgent: bool
    """Whether it goes before other work, and interrupts it: one text that takes little time."""
    changed: Condition
    """On the queue's lock, notified when an item is done."""
    failure: BaseException | None = None
    n_done: int = 0
    ready: list[WaitingText] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.size_left, self.unprepared = sum(item.size for item in self.items), deque(self.items)

    @property
    def question(self) -> str:
        """Name of the question that its items ask."""
        return self.items[0].item_request.question.name

    @property
    def can_begin(self) -> bool:
        """Whether one of its items is in no batch yet."""
        return any(item.can_begin for item in self.items)

    @property
    def is_done(self) -> bool:
        """Whether all items are done or the request has failed."""
        return self.failure is not None or self.n_done == len(self.items)

    def next_unprepared(self, n_characters: int) -> list[WaitingText]:
        """Remove and return the next items to prepare, of `n_characters` or slightly more."""
        items, n_found = list[WaitingText](), 0
        while self.unprepared and n_found < n_characters:
            item = self.unprepared.popleft()
            if item.is_wanted:
                items.append(item)
                n_found += item.size
        return items

    def take(self, item: WaitingText) -> None:
        """Count an item as done."""
        self.n_done += 1
        self.size_left -= item.size
        if isinstance(item.outcome, BaseException) and not (self.skips and isinstance(item.outcome, TextTooLong)):
            # If it concerns one text, by the index of this among the texts of the session.
            index, error = self.indices[self.items.index(item)], item.outcome
            self.failure = self.failure or (error.at(index) if isinstance(error, OneTextError) else error)
        self.changed.notify_all()

    def answer(self) -> list[Record]:
        """The result of each item, in order.

        Raises: the first failure.
        """
        if self.failure is not None:
            raise self.failure
        return [_record(item.outcome) for item in self.items]


@dataclass(eq=False)
class Job:
    """Other work on the loaded checkpoint; the promise carries its result."""

    work: Callable[[Checkpoint], Any]
    visitor: Hashable = None
    is_urgent: bool = False
    """Whether it goes before other work, and interrupts it: it concerns the text on screen."""
    promise: Future = field(default_factory=Future)
    is_left: bool = False
    """Whether nobody waits for it any more."""

    def leave(self) -> None:
        """Stop waiting: the work is not begun, or ends at its next pause."""
        self.is_left = True
        self.promise.cancel()


def n_characters(text: Text) -> int:
    """Number of characters of a text."""
    return sum(map(len, text.segments))


def is_short(text: Text) -> bool:
    """Whether a text on screen goes before other work."""
    return n_characters(text) <= SHORT_CHARACTERS


def _record(outcome: Outcome | None) -> Record:
    """The result of an item of a request that has not failed, so that a text that is too long is left out."""
    if isinstance(outcome, TextTooLong):
        return Record.left_out(outcome.n_tokens)
    if not isinstance(outcome, Record):
        raise RuntimeError("A request was answered before all its texts were seen.")
    return outcome
