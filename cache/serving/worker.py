"""Worker of an engine, or of two that are compared: a thread that processes the requests of all sessions in batches."""

import logging
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack
from statistics import median
from threading import Lock, Thread, current_thread
from typing import Final, TypeVar

from cache.engine import Engine
from cache.serving.batch import of_like_length, passed, prepared
from cache.serving.failures import TooLarge, for_readers, let_go, no_room
from cache.serving.item_requests import ItemRequest, PassResult, read, write
from cache.serving.memory import free_memory, trim_heap
from cache.serving.models import Models
from cache.serving.queue import Queue
from cache.serving.requests import Item, Job, Report, Request, Status, left_out
from cache.store.store import Store
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.checkpoints.memory import is_out_of_memory
from core.errors import TextTooLong

REPORT_SECONDS: Final = 0.2
"""Longest time between two reports to a session that waits."""
LINGER_SECONDS: Final = 10.0
"""How long a thread stays without work."""
CLOSE_SECONDS: Final = 10.0
"""How long the end of the program waits for the batch that is being passed."""
READY_BATCHES: Final = 4
"""Batches' worth of tokens of a request that are ready at once: enough to find texts of like length among."""
CHARACTERS: Final = 4
"""Of a token, about."""
TIMED_BATCHES: Final = 15
TRIM_BATCHES: Final = 8
"""Between two times that the heap is trimmed, which takes a few milliseconds."""
SWITCH_SECONDS: Final = 0.0002
"""Python's switch interval. A pass lets other threads run hundreds of times, and each time waits so long for its turn:
beside three busy sessions it took ninety times as long at Python's usual 5 ms, and ten times at this."""

Answer = TypeVar("Answer")
Checkpoints = tuple[Checkpoint, ...]

_log = logging.getLogger(__name__)


class Worker:
    """Passes the texts that sessions ask for through one checkpoint, or through two in step.

    Its thread lives while there is work, and a little longer.

    Attributes:
        n_passed: texts that have gone through the model.
        n_batches: passes that this took.
        notice: what a reader should know, in a sentence; None while all is well.
    """

    def __init__(self, engines: tuple[Engine, ...], models: Models, store: Store) -> None:
        self.n_passed = self.n_batches = 0
        self.notice: str | None = None
        self._engines, self._models, self._store = engines, models, store
        self._names = " against ".join(engine.files.name for engine in engines)
        self._queue = Queue()
        self._thread: Thread | None = None
        self._begin = Lock()
        self._seconds_per_character: deque[float] = deque(maxlen=TIMED_BATCHES)
        self._batch_tokens: int | None = None
        """After memory has run out, as long as the checkpoint stays loaded; None for what suits the device."""
        self._met: list[weakref.ref[Checkpoint]] = []

    def ask(
        self,
        wanted: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        *,
        indices: Sequence[int | None],
        skips: bool = False,
        report: Report | None = None,
    ) -> list[PassResult]:
        """Wait until all texts are passed.

        Args:
            wanted: one or more, all different.
            settings: of all of them, for each checkpoint.
            indices: index of each text among those that the reader gave, for messages.
            skips: leave out texts that are too long; else the first is an error.
            report: called about five times a second and after every batch; where it raises, what nobody else waits
                for is not begun any more, and what is finished is kept.

        Raises: AnalysisError of any stage; whatever `report` raises.
        """
        request = self._submit(wanted, settings, indices, skips)
        try:
            self._wait(request, report)
        finally:
            self._queue.withdraw(request)
        return request.answer()

    def run(self, work: Callable[[Checkpoint], Answer], report: Report | None = None) -> Answer:
        """What other work on the loaded checkpoint, the first of two, gives; done between two batches.

        Args:
            work: done in the worker's thread.
            report: called about five times a second; where it raises, work that has not begun is not done.

        Raises: AnalysisError where the checkpoint cannot be loaded or memory runs out; what the work raises; whatever
            `report` raises.
        """
        with self._begin:
            promise = self._queue.submit_job(work)
            self._wake()
        try:
            while not promise.done():
                if report is not None:
                    report(Status(done=0, total=1, seconds_left=None, n_waiting_before=0))
                wait([promise], REPORT_SECONDS)
        finally:
            promise.cancel()
        answer: Answer = promise.result()
        return answer

    def close(self) -> None:
        """Fail those who wait, and end the thread once its batch is done."""
        self._queue.close()
        thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(CLOSE_SECONDS)

    def _submit(
        self,
        wanted: Sequence[ItemRequest],
        settings: tuple[PassSettings, ...],
        indices: Sequence[int | None],
        skips: bool,
    ) -> Request:
        with self._begin:
            request = self._queue.submit(wanted, settings, indices, skips)
            self._wake()
        return request

    def _wake(self) -> None:
        """Begin the thread unless it is there."""
        if self._thread is None:
            sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
            self._thread = Thread(target=self._run, name=f"passes of {self._names}", daemon=True)
            self._thread.start()

    def _wait(self, request: Request, report: Report | None) -> None:
        is_done, n_known = request.is_done, 0
        while not is_done:
            if report is not None:
                status = self._queue.status(request, self._pace())
                n_known = status.done
                report(status)
            is_done = self._queue.wait(request, n_known, REPORT_SECONDS)
        if report is not None and request.failure is None:
            report(self._queue.status(request, self._pace()))

    def _pace(self) -> float | None:
        """Seconds that a character takes, by the latest batches."""
        timed = list(self._seconds_per_character)
        return median(timed) if timed else None

    def _run(self) -> None:
        while self._has_work():
            try:
                self._work_off()
            except BaseException as error:
                let_go(error)
                self._queue.fail(for_readers(error))
            # Here this thread refers to no checkpoint any more.
            self._models.trim()

    def _has_work(self) -> bool:
        """Wait for requests; False when the thread is to end."""
        if self._queue.wait_for_work(LINGER_SECONDS):
            return True
        with self._begin:
            has_work = self._queue.wait_for_work()
            self._thread = self._thread if has_work else None
        return has_work

    def _work_off(self) -> None:
        """Pass texts until nobody waits."""
        with ExitStack() as held:
            checkpoints = tuple(held.enter_context(self._models.use(engine)) for engine in self._engines)
            self._meet(checkpoints)
            while self._queue.wait_for_work():
                if job := self._queue.next_job():
                    _do(job, checkpoints[0])
                turn = self._queue.turn()
                chosen = of_like_length(checkpoints, self._ready(checkpoints, turn), self._tokens(checkpoints))
                if chosen and (batch := self._queue.begin(chosen)):
                    self._pass(checkpoints, batch)

    def _meet(self, checkpoints: Checkpoints) -> None:
        """Forget that memory ran out, where a checkpoint has been loaded anew since."""
        if [met() for met in self._met] != list(checkpoints):
            self._batch_tokens = self.notice = None
            self._met = [weakref.ref(checkpoint) for checkpoint in checkpoints]

    def _tokens(self, checkpoints: Checkpoints) -> int:
        from core.passes.batches import BATCH_TOKENS

        return self._batch_tokens or BATCH_TOKENS[checkpoints[0].device]

    def _ready(self, checkpoints: Checkpoints, turn: Sequence[Request]) -> Iterator[list[Item]]:
        """What can be passed, request by request; prepares some more where that is little.

        Not for as long as it takes: of a corpus of long lines none may be ready for a long time, and others wait.
        """
        enough = READY_BATCHES * self._tokens(checkpoints)
        for request in turn:
            request.ready = [item for item in request.ready if item.is_wanted]
            if request.unprepared and sum(item.n_tokens for item in request.ready) < enough:
                self._prepare(checkpoints, request, CHARACTERS * enough)
            yield request.ready

    def _prepare(self, checkpoints: Checkpoints, request: Request, n_characters: int) -> None:
        """Make some texts of a request ready, but those that the store has by now."""
        items = request.next_unprepared(n_characters)
        kept = read(self._store, [item.wanted for item in items])
        known = {item: seen for item in items if (seen := kept.get(item.wanted)) is not None and item.is_met_by(seen)}
        left = [item for item in items if item not in known]
        wrong = {item: error for item in left if (error := prepared(checkpoints, item)) is not None}
        for error in wrong.values():
            let_go(error)
        request.ready += [item for item in left if item not in wrong]
        outcomes = {item: known.get(item) or wrong[item] for item in items if item in known or item in wrong}
        request.unprepared.extendleft(self._queue.finish(outcomes))
        too_long = {item: left_out(error) for item, error in wrong.items() if isinstance(error, TextTooLong)}
        # The scores of a text that was cut stand under the same key, and are worth more.
        news = [item for item in too_long if item.wanted not in kept and item.wanted.start is None]
        self._keep({item: too_long[item] for item in news})
        self._queue.forget([item for item in known if item.outcome is not None])

    def _pass(self, checkpoints: Checkpoints, batch: Sequence[Item]) -> None:
        """Pass a batch; where that fails, in parts of half as many texts, until the text that is at fault is alone."""
        left, n_texts = batch, len(batch)
        while left:
            part = left[:n_texts]
            seen = self._attempt(checkpoints, part)
            if not isinstance(seen, BaseException):
                self._queue.finish(seen)
                self._keep(seen)
                left = left[len(part) :]
            elif len(part) > 1:
                n_texts = len(part) // 2
                if isinstance(seen, TooLarge):
                    self._shrink(checkpoints, n_texts * seen.n_tokens)
                left = self._queue.still_wanted(left)
            else:
                self._queue.finish({part[0]: seen})
                left = self._queue.still_wanted(left[1:])
                # Memory is as small for the others; any other error was this text's own.
                n_texts = n_texts if isinstance(seen, TooLarge) else len(batch)

    def _attempt(self, checkpoints: Checkpoints, batch: Sequence[Item]) -> Mapping[Item, PassResult] | BaseException:
        """What a pass sees of a batch, or why it fails; TooLarge where memory runs out."""
        begun = time.monotonic()
        try:
            seen = passed(checkpoints, batch)
        except BaseException as error:
            is_full = is_out_of_memory(error)
            let_go(error, is_bug=not is_full)
            if not is_full:
                return for_readers(error)
        else:
            self._seconds_per_character.append((time.monotonic() - begun) / sum(item.size for item in batch))
            self.n_passed += len(batch)
            self.n_batches += 1
            if self.n_batches % TRIM_BATCHES == 0:
                trim_heap()
            return seen
        free_memory(checkpoints[0].device)
        return TooLarge(None, max(item.n_tokens for item in batch))

    def _shrink(self, checkpoints: Checkpoints, n_tokens: int) -> None:
        self._batch_tokens = n_tokens
        self.notice = (
            f"Memory ran out on {checkpoints[0].device}, so {self._names} now passes at most {n_tokens:,} "
            "tokens at once. That takes longer; the results are the same."
        )

    def _keep(self, seen: Mapping[Item, PassResult]) -> None:
        """Write what was seen to the store, after those who wait have it."""
        try:
            write(self._store, {item.wanted: one for item, one in seen.items()})
        except Exception:
            _log.exception("Results could not be kept; the analysis goes on.")
        self._queue.forget(list(seen))


def _do(job: Job, checkpoint: Checkpoint) -> None:
    """Do a job; any error is for whoever waits for it, and this thread goes on to serve the others."""
    try:
        answer = job.work(checkpoint)
    except BaseException as error:
        is_full = is_out_of_memory(error)
        let_go(error, is_bug=not is_full)
        failure = no_room(checkpoint) if is_full else for_readers(error)
    else:
        job.promise.set_result(answer)
        return
    free_memory(checkpoint.device)
    job.promise.set_exception(failure)
