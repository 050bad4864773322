"""Queue of the requests of all sessions to one worker; independent of models and threads."""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from threading import Condition, RLock
from typing import Any, Final

from cache.serving.item_requests import ItemRequest
from cache.serving.requests import Item, Job, Outcome, Request, Status
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError

PATIENCE: Final = 4
"""Number of batches after which a waiting request gets priority."""


class Queue:
    """The requests of all sessions to one worker."""

    def __init__(self) -> None:
        # Reentrant: garbage collection may close the queue at any point in any thread.
        self._lock = RLock()
        self._arrived = Condition(self._lock)
        self._requests: list[Request] = []
        self._jobs: deque[Job] = deque()
        self._items: dict[tuple[Hashable, ...], list[Item]] = {}
        self._n_requests = 0
        self._is_closed = False

    def submit(
        self,
        item_requests: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        indices: Sequence[int | None],
        skips: bool,
    ) -> Request:
        """Add a request; texts that another request waits for are shared with it.

        Raises: AnalysisError if the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._n_requests += 1
            items = [self._item(item_request, settings) for item_request in item_requests]
            request = Request(self._n_requests, items, indices, skips, Condition(self._lock))
            for item in items:
                item.requests.add(request)
                if item.outcome is not None:
                    item.requests.clear()
                    request.take(item)
            if not request.is_done:
                self._requests.append(request)
                self._arrived.notify()
            return request

    def submit_job(self, work: Callable[[Checkpoint], Any]) -> Future:
        """Add a job, to be run between two batches.

        Raises: AnalysisError if the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._jobs.append(Job(work))
            self._arrived.notify()
            return self._jobs[-1].promise

    def next_job(self) -> Job | None:
        """The next job that is not cancelled, or None."""
        with self._lock:
            while self._jobs:
                job = self._jobs.popleft()
                if job.promise.set_running_or_notify_cancel():
                    return job
            return None

    def _item(self, item_request: ItemRequest, settings: tuple[PassSettings, ...]) -> Item:
        """The item for a request: an existing one, an existing one that can still be extended, or a new one."""
        candidates = self._items.setdefault(_sharing_key(item_request), [])
        for item in candidates:
            if item_request.start in (None, item.item_request.start):
                return item
        for item in candidates:
            if item.item_request.start is None and not item.is_running and item.outcome is None:
                item.item_request = item_request
                return item
        candidates.append(Item(item_request, settings))
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
                if not item.requests and not item.is_running and item.outcome is None:
                    self._drop(item)

    def _drop(self, item: Item) -> None:
        key = _sharing_key(item.item_request)
        remaining = [other for other in self._items.get(key, ()) if other is not item]
        if remaining:
            self._items[key] = remaining
        else:
            self._items.pop(key, None)

    def turn(self) -> list[Request]:
        """Requests by priority: first those passed over too often, oldest first; then those with the least left."""
        with self._lock:
            return self._in_order()

    def _in_order(self) -> list[Request]:
        def turn(request: Request) -> tuple[bool, int, int]:
            is_patient = request.passed_over < PATIENCE
            return is_patient, request.size_left if is_patient else 0, request.number

        return sorted(self._requests, key=turn)

    def begin(self, items: Sequence[Item]) -> list[Item]:
        """Mark the items that somebody still waits for as running, and return them."""
        with self._lock:
            running = [item for item in items if item.requests and item.outcome is None]
            for item in running:
                item.is_running = True
            served = {request for item in running for request in item.requests}
            for request in self._requests:
                request.passed_over = 0 if request in served else request.passed_over + 1
            return running

    def still_wanted(self, running: Sequence[Item]) -> list[Item]:
        """Items of a failed batch that somebody still waits for; the others are dropped."""
        with self._lock:
            for item in running:
                if not item.requests:
                    self._drop(item)
            return [item for item in running if item.requests]

    def finish(self, outcomes: Mapping[Item, Outcome]) -> list[Item]:
        """Deliver outcomes to the waiting requests; new requests can use a result until it is forgotten.

        Returns: items that keep waiting, because more has been requested of them than the pass computed.
        """
        with self._lock:
            still_waiting = [item for item, outcome in outcomes.items() if item.wants_more_than(outcome)]
            for item, outcome in outcomes.items():
                if item in still_waiting:
                    continue
                item.outcome, item.is_running = outcome, False
                for request in list(item.requests):
                    request.take(item)
                    if request.is_done:
                        self._withdraw(request)
                item.requests.clear()
                if isinstance(outcome, BaseException):
                    self._drop(item)
            return still_waiting

    def forget(self, items: Sequence[Item]) -> None:
        """Drop items whose outcome is in the store."""
        with self._lock:
            for item in items:
                self._drop(item)

    def fail(self, error: BaseException) -> None:
        """Fail all waiting requests and jobs with an error, and empty the queue."""
        with self._lock:
            self._items.clear()
            for request in list(self._requests):
                request.failure = error
                self._withdraw(request)
                request.changed.notify_all()
            while job := self.next_job():
                job.promise.set_exception(error)

    def status(self, request: Request, seconds_per_character: float | None) -> Status:
        """Progress of a request."""
        with self._lock:
            order = self._in_order()
            earlier = order[: order.index(request)] if request in order else []
            size_left = request.size_left + sum(other.size_left for other in earlier)
            return Status(
                done=request.n_done,
                total=len(request.items),
                seconds_left=None if seconds_per_character is None else size_left * seconds_per_character,
                n_waiting_before=len(earlier),
            )

    def wait(self, request: Request, n_known: int, seconds: float) -> bool:
        """Wait until more than `n_known` items are done or a timeout; returns whether the request is done."""
        with self._lock:
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
    return item_request.key, item_request.truncate, item_request.against


def closing() -> AnalysisError:
    """The error for sessions that wait when the program ends."""
    return AnalysisError("The program is being closed, so no more texts are passed. Start it again to go on.")
