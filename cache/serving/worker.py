"""Worker of one engine or two compared ones: a thread that processes the requests of all sessions in batches."""

import logging
import sys
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, Thread, current_thread
from typing import Final, TypeVar

from attention_sieve.cache.answers import Engine, ItemRequest, Record, read, write
from attention_sieve.cache.serving import requests
from attention_sieve.cache.serving.memory import free_memory, trim_heap
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.serving.queue import Queue, next_batch, passed, prepared
from attention_sieve.cache.serving.shares import ALONE_SECONDS, STEP_SECONDS, UrgentWork
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import TextTooLong, is_out_of_memory
from attention_sieve.core.pauses import pausing

REPORT_SECONDS: Final = 0.2
"""Longest time between two progress reports to a waiting session."""
LINGER_SECONDS: Final = 10.0
"""How long an idle thread lives."""
CLOSE_SECONDS: Final = 10.0
"""How long the program's exit waits for the current batch."""
READY_BATCHES: Final = 4
"""Number of batches' worth of prepared tokens per request: enough to find texts of similar length."""
CHARACTERS: Final = 4
"""Approximate number of characters per token."""
PATIENCE_SECONDS: Final = 0.5
"""Model time of urgent work after which other work gets a turn."""
PATIENCE: Final = 2
"""Urgent work interrupts other work for at most this many times as long as that has run."""
TRIM_BATCHES: Final = 8
"""Batches between two trims of the heap, each of which takes a few milliseconds."""
SWITCH_SECONDS: Final = 0.0002
"""Python's switch interval. A pass releases the interpreter hundreds of times and waits this long each time to get it
back: with three busy sessions, it took 90 times as long at Python's default of 5 ms, and 10 times at this value."""

Answer = TypeVar("Answer")
Checkpoints = tuple[Checkpoint, ...]

_log = logging.getLogger(__name__)


class Worker:
    """Passes the texts of all sessions through one checkpoint, or through two in step.

    Its thread lives while there is work, and a little longer.

    Attributes:
        n_passed: number of texts passed through the model so far.
        n_batches: number of passes so far.
        notice: a notice for the reader, in a sentence, or None.
    """

    def __init__(self, engines: tuple[Engine, ...], models: Models, store: Store, urgent: UrgentWork) -> None:
        self.n_passed = self.n_batches = 0
        self.notice: str | None = None
        self._engines, self._models, self._store, self._urgent = engines, models, store, urgent
        self._names = " against ".join(engine.files.name for engine in engines)
        self._queue = Queue()
        self._thread: Thread | None = None
        self._begin = Lock()
        self._urgent_seconds = 0.0
        """Model time of urgent work while other work has waited for a turn."""
        self._batch_tokens: int | None = None
        """Reduced after memory has run out, until the checkpoint is reloaded; None for the default of the device."""
        self._last_checkpoints: list[weakref.ref[Checkpoint]] = []

    def ask(
        self,
        item_requests: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        *,
        indices: Sequence[int | None],
        visitor: Hashable = None,
        skips: bool = False,
        report: requests.Report | None = None,
    ) -> list[Record]:
        """Wait until all texts are passed.

        Args:
            item_requests: one or more, all different.
            settings: for each checkpoint, the same for all items.
            report: called about five times a second and after every batch; if it raises, items that nobody else waits
                for are dropped, and finished results are stored.

        Raises: AnalysisError of any stage; whatever `report` raises.
        """
        # With the lock that `_has_work` takes before a thread ends: it must not end between these two lines.
        with self._begin:
            request = self._queue.submit(item_requests, settings, indices, visitor, skips=skips)
            self._wake()
        try:
            self._wait(request, report)
        finally:
            self._queue.withdraw(request)
        return request.answer()

    def run(
        self,
        work: Callable[[Checkpoint], Answer],
        report: requests.Report | None = None,
        *,
        visitor: Hashable = None,
        is_urgent: bool = False,
    ) -> Answer:
        """Run a function on the loaded checkpoint, the first of two, between two batches, and return its result. If
        `report`, which is called about five times a second, raises, the work is not begun, or ends at its next pause.

        Raises: AnalysisError if the checkpoint cannot be loaded or memory runs out; whatever `work` or `report`
            raises.
        """
        with self._begin:
            job = self._queue.submit_job(work, visitor, is_urgent=is_urgent)
            self._wake()
        try:
            while not job.promise.done():
                if report is not None:
                    report(requests.Status(done=0, total=1, seconds_left=None, n_waiting_before=0))
                wait([job.promise], REPORT_SECONDS)
        finally:
            job.leave()
        answer: Answer = job.promise.result()
        return answer

    def close(self) -> None:
        """Fail all waiting requests, and end the thread after its batch."""
        self._queue.close()
        thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(CLOSE_SECONDS)

    def _wake(self) -> None:
        if self._thread is None:
            sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
            self._thread = Thread(target=self._run, name=f"passes of {self._names}", daemon=True)
            self._thread.start()

    def _wait(self, request: requests.Request, report: requests.Report | None) -> None:
        is_done = request.is_done
        while not is_done:
            n_known = request.n_done
            if report is not None:
                report(self._queue.status(request))
            is_done = self._queue.wait(request, n_known, REPORT_SECONDS)
        if report is not None and request.failure is None:
            report(self._queue.status(request))

    def _run(self) -> None:
        while self._has_work():
            try:
                self._process_queue()
            except BaseException as error:
                requests.log_and_release(error)
                self._queue.fail(requests.as_exception(error))
            # At this point the thread holds no reference to a checkpoint.
            self._models.trim()

    def _has_work(self) -> bool:
        """Wait for requests; False if the thread should end."""
        if self._queue.wait_for_work(LINGER_SECONDS):
            return True
        with self._begin:
            has_work = self._queue.wait_for_work()
            self._thread = self._thread if has_work else None
        return has_work

    def _process_queue(self) -> None:
        """Process jobs and batches until the queue is empty."""
        with ExitStack() as stack:
            checkpoints = tuple(stack.enter_context(self._models.use(engine)) for engine in self._engines)
            self._reset_if_reloaded(checkpoints)
            while self._queue.wait_for_work():
                has_others, clock = self._queue.has_others, OwnTime()
                if self._queue.has_urgent and not (has_others and self._urgent_seconds > PATIENCE_SECONDS):
                    with self._urgent.at_work():
                        self._take_turn(checkpoints, clock, urgent=True)
                    self._urgent_seconds += clock.seconds if has_others else 0.0
                else:
                    self._urgent_seconds = 0.0
                    with pausing(partial(self._let_urgent_pass, checkpoints, clock)):
                        self._take_turn(checkpoints, clock, urgent=False)

    def _let_urgent_pass(self, checkpoints: Checkpoints, clock: "OwnTime") -> None:
        """Interrupt this thread's work for urgent work, of other workers too.

        It has a thread of its own, because this one may be recording gradients or intercepting functions of torch.
        """
        if self._urgent.is_at_work and clock.seconds_away <= PATIENCE * clock.seconds:
            with clock.away():
                self._urgent.wait(STEP_SECONDS)
        if self._queue.has_urgent and clock.seconds_away <= PATIENCE * clock.seconds:
            with clock.away():
                name = f"urgent passes of {self._names}"
                thread = Thread(target=self._take_urgent_turn, args=(checkpoints,), name=name, daemon=True)
                thread.start()
                thread.join()

    def _take_urgent_turn(self, checkpoints: Checkpoints) -> None:
        try:
            with self._urgent.at_work():
                self._take_turn(checkpoints, OwnTime(), urgent=True)
        except BaseException as error:
            requests.log_and_release(error)
            self._queue.fail(requests.as_exception(error))

    def _take_turn(self, checkpoints: Checkpoints, clock: "OwnTime", *, urgent: bool) -> None:
        """Run one job or process one batch, and charge its visitors."""
        if job := self._queue.next_job(urgent=urgent):
            _run_job(job, checkpoints[0])
            self._queue.charge([job.visitor], clock.seconds)
        elif turn := self._queue.turn(urgent=urgent):
            most = ALONE_SECONDS if self._queue.n_visitors == 1 else STEP_SECONDS
            selected = next_batch(
                checkpoints,
                self._ready(checkpoints, turn),
                self._tokens(checkpoints),
                partial(self._most_characters, most),
            )
            self._queue.charge([turn[0].visitor], clock.seconds)
            if selected and (batch := self._queue.begin(selected)):
                self._pass(checkpoints, batch, clock)

    def _most_characters(self, seconds: float, item: requests.WaitingText) -> float:
        """What a question's batch can hold to take so long; the first batch of a question holds one text."""
        pace = self._queue.paces.of(item.item_request.question.name)
        return 0.0 if pace is None else seconds / pace

    def _reset_if_reloaded(self, checkpoints: Checkpoints) -> None:
        """Reset the batch size and the notice if a checkpoint has been reloaded since memory ran out."""
        if [reference() for reference in self._last_checkpoints] != list(checkpoints):
            self._batch_tokens = self.notice = None
            self._last_checkpoints = [weakref.ref(checkpoint) for checkpoint in checkpoints]

    def _tokens(self, checkpoints: Checkpoints) -> int:
        from attention_sieve.core.passes.batches import BATCH_TOKENS

        return self._batch_tokens or BATCH_TOKENS[checkpoints[0].device]

    def _ready(
        self, checkpoints: Checkpoints, turn: Sequence[requests.Request]
    ) -> Iterator[list[requests.WaitingText]]:
        """Prepared items, request by request; prepares a limited number more where there are few.

        The limit keeps a corpus of long lines, which takes long to prepare, from delaying other requests.
        """
        enough = READY_BATCHES * self._tokens(checkpoints)
        for request in turn:
            request.ready = [item for item in request.ready if item.can_begin]
            if request.unprepared and sum(item.n_tokens for item in request.ready) < enough:
                self._prepare(checkpoints, request, CHARACTERS * enough)
            yield request.ready

    def _prepare(self, checkpoints: Checkpoints, request: requests.Request, n_characters: int) -> None:
        """Prepare some texts of a request, except those whose results are in the store by now."""
        items = request.next_unprepared(n_characters)
        stored = read(self._store, [item.item_request for item in items])
        already = {
            item: result
            for item in items
            if (result := stored.get(item.item_request)) is not None and item.is_satisfied_by(result)
        }
        missing = [item for item in items if item not in already]
        errors = {item: error for item in missing if (error := prepared(checkpoints, item)) is not None}
        for error in errors.values():
            requests.log_and_release(error)
        request.ready += [item for item in missing if item not in errors]
        outcomes = {item: already.get(item) or errors[item] for item in items if item in already or item in errors}
        request.unprepared.extendleft(self._queue.finish(outcomes))
        too_long = {
            item: Record.left_out(error.n_tokens) for item, error in errors.items() if isinstance(error, TextTooLong)
        }
        # The scores of a truncated text have the same key and must not be overwritten.
        new_items = [item for item in too_long if item.item_request not in stored and item.item_request.start is None]
        self._keep({item: too_long[item] for item in new_items})
        self._queue.forget([item for item in already if item.outcome is not None])

    def _pass(self, checkpoints: Checkpoints, batch: Sequence[requests.WaitingText], clock: "OwnTime") -> None:
        """Pass a batch; if that fails, halve it repeatedly until the text that causes the error is alone."""
        remaining, n_texts = batch, len(batch)
        while remaining:
            part = remaining[:n_texts]
            outcome = self._attempt(checkpoints, part, clock)
            if isinstance(outcome, requests.NobodyWaits):
                remaining = self._queue.still_wanted(remaining)
            elif not isinstance(outcome, BaseException):
                self._queue.finish(outcome)
                self._keep(outcome)
                remaining = remaining[len(part) :]
            elif len(part) > 1:
                n_texts = len(part) // 2
                if isinstance(outcome, requests.TooLarge):
                    n_tokens = self._batch_tokens = n_texts * outcome.numbers[0]
                    self.notice = (
                        f"Memory ran out on {checkpoints[0].device}, so {self._names} now processes at most "
                        f"{n_tokens:,} tokens at once. That takes longer; the results are the same."
                    )
                remaining = self._queue.still_wanted(remaining)
            else:
                self._queue.finish({part[0]: outcome})
                remaining = self._queue.still_wanted(remaining[1:])
                # Out of memory concerns the other texts too; any other error only this text.
                n_texts = n_texts if isinstance(outcome, requests.TooLarge) else len(batch)

    def _attempt(
        self, checkpoints: Checkpoints, batch: Sequence[requests.WaitingText], clock: "OwnTime"
    ) -> Mapping[requests.WaitingText, Record] | BaseException:
        """Results of a pass on a batch, or its error: TooLarge if memory runs out, NobodyWaits if all have left."""
        started = clock.seconds
        try:
            with pausing(partial(_end_unless, lambda: any(item.requests for item in batch))):
                results = passed(checkpoints, batch)
        except requests.NobodyWaits as nobody:
            requests.log_and_release(nobody, is_bug=False)
            return nobody
        except BaseException as error:
            is_full = is_out_of_memory(error)
            requests.log_and_release(error, is_bug=not is_full)
            if not is_full:
                return requests.as_exception(error)
        else:
            seconds, n_characters = clock.seconds - started, sum(item.size for item in batch)
            self._queue.paces.note(batch[0].item_request.question.name, seconds, n_characters)
            self.n_passed += len(batch)
            self.n_batches += 1
            if self.n_batches % TRIM_BATCHES == 0:
                trim_heap()
            return results
        finally:
            self._queue.charge_batch(batch, clock.seconds - started)
        free_memory(checkpoints[0].device)
        return requests.TooLarge(None, max(item.n_tokens for item in batch))

    def _keep(self, results: Mapping[requests.WaitingText, Record]) -> None:
        """Write results to the store, after waiting sessions have received them."""
        try:
            write(self._store, {item.item_request: result for item, result in results.items()})
        except Exception:
            _log.exception("Results could not be stored; the analysis goes on.")
        self._queue.forget(list(results))


class OwnTime:
    """Time since a turn began, without the interruptions."""

    def __init__(self) -> None:
        """Begin now."""
        self._began, self.seconds_away = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Time so far."""
        return time.monotonic() - self._began - self.seconds_away

    @contextmanager
    def away(self) -> Iterator[None]:
        """Context of an interruption."""
        left = time.monotonic()
        try:
            yield
        finally:
            self.seconds_away += time.monotonic() - left


def _end_unless(is_wanted: Callable[[], bool]) -> None:
    """End a pass or a job if everybody has stopped waiting for it.

    Raises: NobodyWaits.
    """
    if not is_wanted():
        raise requests.NobodyWaits


def _run_job(job: requests.Job, checkpoint: Checkpoint) -> None:
    """Run a job; errors go to the session that waits for it, and this thread continues."""
    try:
        with pausing(partial(_end_unless, lambda: not job.is_left)):
            answer = job.work(checkpoint)
    except BaseException as error:
        is_full = is_out_of_memory(error)
        requests.log_and_release(error, is_bug=not (is_full or isinstance(error, requests.NobodyWaits)))
        failure = requests.out_of_memory(checkpoint) if is_full else requests.as_exception(error)
    else:
        job.promise.set_result(answer)
        return
    free_memory(checkpoint.device)
    job.promise.set_exception(failure)
