"""Queue of the requests of all sessions to one worker, independent of threads; the choice of a batch of its items, and
the pass over one.

A short text on screen goes first. All other work is ordered by the model time that its visitor has had lately, so that
two visitors get equal shares of it, whatever the number and the cost of their texts.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from threading import Condition, RLock
from typing import Any, Final

from attention_sieve.cache.answers import ItemRequest, Record
from attention_sieve.cache.looks import packed_attention
from attention_sieve.cache.serving.requests import Job, Outcome, Request, Status, WaitingText, is_short
from attention_sieve.cache.serving.shares import STEP_SECONDS, ModelTime, Paces
from attention_sieve.core.answering import Question
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import WINDOW_ENTRIES, WINDOW_TOKENS, prepare, window_at, with_relations
from attention_sieve.core.pauses import pause
from attention_sieve.core.roles.question import SCORES


class Queue:
    """The requests of all sessions to one worker.

    Attributes:
        paces: what a character of each question takes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin empty."""
        # Reentrant: garbage collection may close the queue at any point in any thread.
        self._lock = RLock()
        self._arrived = Condition(self._lock)
        self.paces = Paces()
        self._requests: list[Request] = []
        self._jobs: list[Job] = []
        self._time = ModelTime(clock)
        self._items: dict[tuple[Hashable, ...], list[WaitingText]] = {}
        self._n_requests = 0
        self._is_closed = False

    def submit(
        self,
        item_requests: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        indices: Sequence[int | None],
        visitor: Hashable = None,
        *,
        skips: bool = False,
    ) -> Request:
        """Add a request, see there; texts that another request waits for are shared with it.

        Raises: AnalysisError if the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._n_requests += 1
            items = tuple(self._item(item_request, settings) for item_request in item_requests)
            # One text only: a visitor who asks for many short ones would go before everybody else for minutes.
            is_urgent = len(items) == 1 and self._is_short(items[0])
            request = Request(
                number=self._n_requests,
                items=items,
                indices=indices,
                visitor=visitor,
                skips=skips,
                is_urgent=is_urgent,
                changed=Condition(self._lock),
            )
            for item in items:
                item.requests.add(request)
                # Passed, but not yet written to the store: whoever comes in between takes it from here.
                if item.outcome is not None:
                    item.requests.clear()
                    request.take(item)
            if not request.is_done:
                self._requests.append(request)
                self._arrived.notify()
            return request

    def _is_short(self, item: WaitingText) -> bool:
        """Whether an item is a short text on screen, or is known to take at most one step."""
        if item.item_request.start is not None:
            return is_short(item.item_request.text)
        pace = self.paces.of(item.item_request.question.name)
        return pace is not None and pace * item.size <= STEP_SECONDS

    def submit_job(
        self, work: Callable[[Checkpoint], Any], visitor: Hashable = None, *, is_urgent: bool = False
    ) -> Job:
        """Add a job, to be run between two batches, or within one if it is urgent.

        Raises: AnalysisError if the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._jobs.append(Job(work, visitor, is_urgent))
            self._arrived.notify()
            return self._jobs[-1]

    def next_job(self, *, urgent: bool) -> Job | None:
        """The next job that is not cancelled; None if there is none, or if a request comes first."""
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.promise.cancelled()]
            jobs = [job for job in self._jobs if job.is_urgent or not urgent]
            rank = self._rank()
            job = min(jobs, key=rank, default=None)
            # Strictly before: at equal rank the job runs, or it would wait for every request of its visitor.
            if job is None or any(rank(request) < rank(job) for request in self.turn(urgent=urgent)[:1]):
                return None
            self._jobs.remove(job)
            # Sessions leave without the lock, so the job may have been cancelled since the list was made.
            return job if job.promise.set_running_or_notify_cancel() else self.next_job(urgent=urgent)

    @property
    def has_urgent(self) -> bool:
        """Whether an urgent job or request waits."""
        with self._lock:
            # A request that is in a batch already would make the worker interrupt that batch for nothing.
            urgent = (request for request in self._requests if request.is_urgent)
            return any(job.is_urgent for job in self._jobs) or any(request.can_begin for request in urgent)

    @property
    def has_others(self) -> bool:
        """Whether a job or request waits that is not urgent."""
        with self._lock:
            return not all(waiting.is_urgent for waiting in self._waiting())

    @property
    def n_visitors(self) -> int:
        """Number of visitors who wait."""
        with self._lock:
            return len({waiting.visitor for waiting in self._waiting()})

    def _waiting(self) -> list[Job | Request]:
        return [*self._jobs, *self._requests]

    def charge(self, visitors: Collection[Hashable], seconds: float) -> None:
        """Count model time, equal parts for each visitor."""
        with self._lock:
            self._time.charge(visitors, seconds)

    def charge_batch(self, batch: Sequence[WaitingText], seconds: float) -> None:
        """Count the model time of a batch for those who waited for its texts when it began."""
        total = sum(item.size for item in batch)
        with self._lock:
            for item in batch:
                # Those of the beginning: leaving in the middle of a pass must not make it free.
                self._time.charge(item.visitors, seconds * item.size / total)

    def _item(self, item_request: ItemRequest, settings: tuple[PassSettings, ...]) -> WaitingText:
        """The item for a request: an existing one, an existing one that can still be extended, or a new one."""
        candidates = self._items.setdefault(_sharing_key(item_request), [])
        for item in candidates:
            # A look brings the scores too, so a request for scores alone can wait for any look at the text.
            if item_request.start in (None, item.item_request.start):
                return item
        for item in candidates:
            # What has not begun can still bring the attention beside the scores.
            if item.item_request.start is None and not item.is_running and item.outcome is None:
                item.item_request = item_request
                return item
        candidates.append(WaitingText(item_request, settings))
        return candidates[-1]

    def withdraw(self, request: Request) -> None:
        """Stop waiting; items that nobody else waits for are dropped."""
        with self._lock:
            self._withdraw(request)

    def _withdraw(self, request: Request) -> None:
        if request in self._requests:
            self._requests.remove(request)
            for item in request.items:
                item.requests.discard(request)
                # An item in a batch stays: its result may still be stored, and a new request may join it.
                if not item.requests and not item.is_running and item.outcome is None:
                    self._drop(item)

    def _drop(self, item: WaitingText) -> None:
        key = _sharing_key(item.item_request)
        remaining = [other for other in self._items.get(key, ()) if other is not item]
        if remaining:
            self._items[key] = remaining
        else:
            self._items.pop(key, None)

    def turn(self, *, urgent: bool = False) -> list[Request]:
        """Requests by the model time of their visitor, and of one visitor those with the least left first. Only urgent
        ones if asked for; otherwise, these come last."""
        with self._lock:
            # Urgent ones last: the worker asks for all when none is urgent, or when these have kept the others long.
            requests = [request for request in self._requests if request.is_urgent or not urgent]
            rank = self._rank()
            return sorted(requests, key=lambda request: (*rank(request), request.size_left, request.number))

    def _rank(self) -> Callable[[Job | Request], tuple[bool, float]]:
        """A function that ranks what waits at this moment."""
        # All who wait, even if few are compared: it forgets since when anybody else has waited.
        ranks = self._time.ranks({waiting.visitor for waiting in self._waiting()})
        return lambda waiting: (waiting.is_urgent, ranks[waiting.visitor])

    def begin(self, items: Sequence[WaitingText]) -> list[WaitingText]:
        """Mark the items that somebody still waits for as running, and return them."""
        with self._lock:
            running = [item for item in items if item.can_begin]
            for item in running:
                item.is_running = True
                item.visitors = frozenset(request.visitor for request in item.requests)
            return running

    def still_wanted(self, running: Sequence[WaitingText]) -> list[WaitingText]:
        """Items of a failed batch that somebody still waits for; the others are dropped."""
        with self._lock:
            for item in running:
                if not item.requests:
                    self._drop(item)
            return [item for item in running if item.requests]

    def finish(self, outcomes: Mapping[WaitingText, Outcome]) -> list[WaitingText]:
        """Deliver outcomes to the waiting requests; new requests can use a result until it is forgotten.

        Returns: items that keep waiting, because more has been requested of them than was found in the store. A pass
            leaves none: what is in a batch takes no further request for attention, see `_item`.
        """
        with self._lock:
            still_waiting = [item for item, outcome in outcomes.items() if item.wants_more_than(outcome)]
            for item, outcome in outcomes.items():
                if item in still_waiting:
                    continue
                item.outcome, item.is_running = outcome, False
                # A copy, because a request that is done leaves the set.
                for request in list(item.requests):
                    request.take(item)
                    if request.is_done:
                        self._withdraw(request)
                item.requests.clear()
                # An error is not shared with later requests: memory, for one, may be free by then.
                if isinstance(outcome, BaseException):
                    self._drop(item)
            return still_waiting

    def forget(self, items: Sequence[WaitingText]) -> None:
        """Drop items whose outcome is in the store."""
        with self._lock:
            for item in items:
                self._drop(item)

    def fail(self, error: BaseException) -> None:
        """Fail all waiting requests and jobs with an error, and empty the queue."""
        with self._lock:
            self._items.clear()
            # A copy, because a request that is withdrawn leaves the list.
            for request in list(self._requests):
                request.failure = error
                self._withdraw(request)
                request.changed.notify_all()
            for job in self._jobs:
                # A cancelled promise takes no exception.
                if job.promise.set_running_or_notify_cancel():
                    job.promise.set_exception(error)
            self._jobs.clear()

    def status(self, request: Request) -> Status:
        """Progress of a request."""
        with self._lock:
            # Stable: among the urgent ones, and among the others, the order of the turn stays.
            order = sorted(self.turn(), key=lambda request: request.is_urgent, reverse=True)
            earlier = order[: order.index(request)] if request in order else []
            return Status(
                done=request.n_done,
                total=len(request.items),
                seconds_left=self._seconds_left(request, earlier),
                n_waiting_before=len(earlier),
            )

    def _seconds_left(self, request: Request, earlier: Sequence[Request]) -> float | None:
        """Own work, earlier work of the same visitor, and as much of each other visitor's: shares are equal."""
        visitor_seconds = defaultdict[Hashable, float](float)
        own = 0.0
        for waiting in {request, *self._requests}:
            pace = self.paces.of(waiting.question)
            if pace is None:
                return None
            if waiting.visitor != request.visitor:
                visitor_seconds[waiting.visitor] += pace * waiting.size_left
            elif waiting is request or waiting in earlier:
                own += pace * waiting.size_left
        return own + sum(min(seconds, own) for seconds in visitor_seconds.values())

    def wait(self, request: Request, n_known: int, seconds: float) -> bool:
        """Wait until more than `n_known` items are done or a timeout; returns whether the request is done."""
        with self._lock:
            # The condition is on this lock, so that it is released while the session waits.
            request.changed.wait_for(lambda: request.is_done or request.n_done > n_known, seconds)
            return request.is_done

    def wait_for_work(self, seconds: float = 0.0) -> bool:
        """Wait until there is work, the queue is closed, or a timeout; returns whether there is work."""
        with self._lock:
            self._arrived.wait_for(lambda: self._requests or self._jobs or self._is_closed, seconds)
            return bool(self._requests or self._jobs)

    def close(self) -> None:
        """Accept no more requests, and fail the waiting ones."""
        with self._lock:
            self._is_closed = True
            self._arrived.notify_all()
        self.fail(closing())


def _sharing_key(item_request: ItemRequest) -> tuple[Hashable, ...]:
    """Requests with equal keys can share one item."""
    return item_request.key, item_request.truncate


def closing() -> AnalysisError:
    """The error for sessions that wait when the program ends."""
    return AnalysisError("The program is being closed, so no more texts are processed. Start it again to continue.")


PADDING_SHARE: Final = 1 / 16
"""Largest share of a batch's budget for padding; beyond it, another batch costs less."""


def prepared(checkpoints: Sequence[Checkpoint], item: WaitingText) -> Exception | None:
    """Tokenise an item's text for each checkpoint, unless it already is.

    Returns: the error in the text or its settings, or None. It concerns this item only; others may still be valid.
    """
    if item.prepared:
        return None
    pause()
    try:
        item.prepared = tuple(
            prepare(checkpoint, item.item_request.text, settings, truncate=item.item_request.truncate)
            for checkpoint, settings in zip(checkpoints, item.settings, strict=True)
        )
    except Exception as error:
        return error
    return None


def next_batch(
    checkpoints: Sequence[Checkpoint],
    ready: Iterator[Sequence[WaitingText]],
    budget: int,
    most_characters: Callable[[WaitingText], float],
) -> list[WaitingText]:
    """The next batch: the first waiting item, and others of similar length as far as they fit.

    Args:
        checkpoints: the first one's numbers of layers and heads limit the attention kept for the screen.
        ready: prepared items by request, in order of priority; consumed only until the batch is full.
        budget: tokens of the batch, including padding.
        most_characters: size of a batch that begins with this item, so that it does not take too long.
    """
    batch: dict[WaitingText, None] = {}  # in order, and quick to look up
    longest = n_tokens = entries = 0
    characters_left = math.inf
    for items in ready:
        for item in sorted(items, key=lambda item: item.n_tokens):
            added, width = _entries(checkpoints[0], item), max(longest, item.n_tokens)
            area = (len(batch) + 1) * width
            fits = area <= budget and area - n_tokens - item.n_tokens <= PADDING_SHARE * budget
            fits = fits and entries + added <= WINDOW_ENTRIES and item.size <= characters_left
            fits = fits and _are_alike(item, next(iter(batch), item))
            if item not in batch and (fits or not batch):
                characters_left = (characters_left if batch else most_characters(item)) - item.size
                batch[item] = None
                longest, n_tokens, entries = width, n_tokens + item.n_tokens, entries + added
        if (len(batch) + 1) * longest > budget or characters_left <= 0:
            break
    return list(batch)


def _are_alike(a: WaitingText, b: WaitingText) -> bool:
    """Whether one pass can serve both."""
    return a.settings == b.settings and a.item_request.question is b.item_request.question


def _entries(checkpoint: Checkpoint, item: WaitingText) -> int:
    """Upper bound on the entries of a text's attention kept for the screen."""
    if item.item_request.start is None:
        return 0
    attention = checkpoint.attentions[item.settings[0].kind]
    return attention.n_layers * attention.n_heads * min(item.n_tokens, WINDOW_TOKENS) ** 2


def passed(checkpoints: Sequence[Checkpoint], batch: Sequence[WaitingText]) -> dict[WaitingText, Record]:
    """Results of one pass, or of two in step, for prepared items of one question and the same settings."""
    if any(item.item_request.start is not None for item in batch):
        return _scores_and_attention(checkpoints[0], batch)
    question: Question[Any, Any] = batch[0].item_request.question
    items, settings = [item.item_request.item for item in batch], batch[0].settings
    if len(checkpoints) > 1:
        work = question.compute(tuple(checkpoints), items, [item.prepared for item in batch], settings)
    else:
        work = question.compute(checkpoints[0], items, [item.prepared[0] for item in batch], settings[0])
    records = {
        batch[row]: Record.of(question.pack(result), batch[row].prepared) for results in work for row, result in results
    }
    if len(records) < len(batch):
        raise RuntimeError(f"The question {question.name!r} answered {len(records)} of {len(batch)} items.")
    return records


def _scores_and_attention(checkpoint: Checkpoint, batch: Sequence[WaitingText]) -> dict[WaitingText, Record]:
    """Scores of a batch, and attention for its texts that are on screen."""
    from attention_sieve.core.roles.scores import score_batch

    texts = with_relations([item.prepared[0] for item in batch], [item.item_request.text for item in batch])
    windows = {
        row: window_at(checkpoint, texts[row], item.item_request.start)
        for row, item in enumerate(batch)
        if item.item_request.start is not None
    }
    scores = score_batch(checkpoint, texts, batch[0].settings[0], windows)
    measures = scores.texts
    maps = {row: packed_attention(attention) for row, attention in scores.maps.items()}
    return {item: Record.of(SCORES.pack(measures[row]), [texts[row]], maps.get(row)) for row, item in enumerate(batch)}
