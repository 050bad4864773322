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
        # One that its holder may take again: garbage collection may close the queue at any point of any thread.
        self._lock = RLock()
        self._arrived = Condition(self._lock)
        self._requests: list[Request] = []
        self._jobs: deque[Job] = deque()
        self._items: dict[tuple[Hashable, ...], list[Item]] = {}
        self._n_requests = 0
        self._is_closed = False

    def submit(
        self,
        wanted: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        indices: Sequence[int | None],
        skips: bool,
    ) -> Request:
        """Begin to wait; a text that is waited for already is joined.

        Raises: AnalysisError when the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._n_requests += 1
            items = [self._item(one, settings) for one in wanted]
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
        """Wait for a turn between two batches.

        Raises: AnalysisError when the queue is closed.
        """
        with self._lock:
            if self._is_closed:
                raise closing()
            self._jobs.append(Job(work))
            self._arrived.notify()
            return self._jobs[-1].promise

    def next_job(self) -> Job | None:
        """The job whose turn it is; one that nobody waits for any more has been cancelled."""
        with self._lock:
            while self._jobs:
                job = self._jobs.popleft()
                if job.promise.set_running_or_notify_cancel():
                    return job
            return None

    def _item(self, wanted: ItemRequest, settings: tuple[PassSettings, ...]) -> Item:
        """An item that gives what is wanted: one that is there, one that can still be asked for more, or a new one."""
        alike = self._items.setdefault(_joined_by(wanted), [])
        for item in alike:
            if wanted.start in (None, item.wanted.start):
                return item
        for item in alike:
            if item.wanted.start is None and not item.is_running and item.outcome is None:
                item.wanted = wanted
                return item
        alike.append(Item(wanted, settings))
        return alike[-1]

    def withdraw(self, request: Request) -> None:
        """Wait no longer; what nobody else waits for is dropped."""
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
        key = _joined_by(item.wanted)
        alike = [other for other in self._items.get(key, ()) if other is not item]
        if alike:
            self._items[key] = alike
        else:
            self._items.pop(key, None)

    def turn(self) -> list[Request]:
        """Requests in the order of their turns: the oldest that were passed over too often, then the least left."""
        with self._lock:
            return self._in_order()

    def _in_order(self) -> list[Request]:
        def turn(request: Request) -> tuple[bool, int, int]:
            is_patient = request.passed_over < PATIENCE
            return is_patient, request.size_left if is_patient else 0, request.number

        return sorted(self._requests, key=turn)

    def begin(self, items: Sequence[Item]) -> list[Item]:
        """Mark those that are still wanted as running."""
        with self._lock:
            running = [item for item in items if item.requests and item.outcome is None]
            for item in running:
                item.is_running = True
            served = {request for item in running for request in item.requests}
            for request in self._requests:
                request.passed_over = 0 if request in served else request.passed_over + 1
            return running

    def still_wanted(self, running: Sequence[Item]) -> list[Item]:
        """Those of a batch that somebody waits for after it has failed; the others are dropped."""
        with self._lock:
            for item in running:
                if not item.requests:
                    self._drop(item)
            return [item for item in running if item.requests]

    def finish(self, outcomes: Mapping[Item, Outcome]) -> list[Item]:
        """Hand outcomes to those who wait; what was seen can be joined until it is forgotten.

        Returns: those that wait on, because more is wanted of them by now than was seen.
        """
        with self._lock:
            wait_on = [item for item, outcome in outcomes.items() if item.wants_more_than(outcome)]
            for item, outcome in outcomes.items():
                if item in wait_on:
                    continue
                item.outcome, item.is_running = outcome, False
                for request in list(item.requests):
                    request.take(item)
                    if request.is_done:
                        self._withdraw(request)
                item.requests.clear()
                if isinstance(outcome, BaseException):
                    self._drop(item)
            return wait_on

    def forget(self, items: Sequence[Item]) -> None:
        """Let go of items whose outcome is in the store."""
        with self._lock:
            for item in items:
                self._drop(item)

    def fail(self, error: BaseException) -> None:
        """Hand an error to everybody who waits, and begin anew."""
        with self._lock:
            self._items.clear()
            for request in list(self._requests):
                request.failure = error
                self._withdraw(request)
                request.changed.notify_all()
            while job := self.next_job():
                job.promise.set_exception(error)

    def status(self, request: Request, seconds_per_character: float | None) -> Status:
        """How far a request is."""
        with self._lock:
            order = self._in_order()
            before = order[: order.index(request)] if request in order else []
            left = request.size_left + sum(other.size_left for other in before)
            return Status(
                done=request.n_done,
                total=len(request.items),
                seconds_left=None if seconds_per_character is None else left * seconds_per_character,
                n_waiting_before=len(before),
            )

    def wait(self, request: Request, n_known: int, seconds: float) -> bool:
        """Wait until more than `n_known` items are done, or some time has passed; whether the request is done."""
        with self._lock:
            request.changed.wait_for(lambda: request.is_done or request.n_done > n_known, seconds)
            return request.is_done

    def wait_for_work(self, seconds: float = 0.0) -> bool:
        """Wait until there is work, some time has passed, or the queue is closed; whether there is any."""
        with self._lock:
            self._arrived.wait_for(lambda: self._requests or self._jobs or self._is_closed, seconds)
            return bool(self._requests or self._jobs)

    def close(self) -> None:
        """Take no more requests, and fail those that wait."""
        with self._lock:
            self._is_closed = True
            self._arrived.notify_all()
        self.fail(closing())


def _joined_by(wanted: ItemRequest) -> tuple[Hashable, ...]:
    """What wishes agree in that one item may serve."""
    return wanted.key, wanted.truncate, wanted.against


def closing() -> AnalysisError:
    """What those are told who wait while the program ends."""
    return AnalysisError("The program is being closed, so no more texts are passed. Start it again to go on.")
