"""Results that need a forward pass: looks them up in the cache, computes missing ones, and stores them.

Imports torch only if something has to be computed.
"""

import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock, get_ident
from typing import Any, TypeVar

from attention_sieve.cache.answers import (
    Answers,
    CorpusFinding,
    Engine,
    FindingRequest,
    ItemRequest,
    Record,
    collected,
    item_requests,
    joined,
    read,
)
from attention_sieve.cache.looks import Look, Looks, look_request, moved_back
from attention_sieve.cache.memory import Memory
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.serving.requests import Report, is_short
from attention_sieve.cache.serving.shares import STEP_SECONDS, STOPPED_BYTES, Quotas, UrgentWork
from attention_sieve.cache.serving.worker import Worker
from attention_sieve.cache.store.store import Store
from attention_sieve.cache.trees import NotKept, Trees
from attention_sieve.core.answering import Finding, Item, Question, Result
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong

Worked = TypeVar("Worked")


class Inference:
    """Results from memory, the store, or the worker of an engine; thread-safe.

    Attributes:
        store: where results are kept.
        trees: of texts, kept there too.
        memory: of what is computed from these results.
        close: ends all workers; waiting callers get an error. Also called at program exit.
    """

    def __init__(
        self,
        store: Store,
        models: Models | None = None,
        *,
        most_at_once: int | None = None,
        shares: Quotas | None = None,
        session: Callable[[], Hashable] = lambda: None,
        memory: Memory | None = None,
    ) -> None:
        """Begin with nothing loaded.

        Args:
            models: holds the loaded checkpoints; None for the budget in ATTENTION_SIEVE_MODELS_MB, or else a share of
                the memory.
            most_at_once: texts that one request may have computed; None for any number.
            shares: how much each session may have computed; None for any amount.
            session: returns the current session, called in that session's thread; sessions get equal shares of a
                model's time. None where there is none: such a thread counts as a session of its own.
            memory: keeps what is computed; None for one within the limit of ATTENTION_SIEVE_MEMORY_MB.

        Raises: AnalysisError: ATTENTION_SIEVE_MODELS_MB or ATTENTION_SIEVE_MEMORY_MB is not a whole number.
        """
        self.store, self.trees, self.memory = store, Trees(store), memory or Memory()
        self._models = models or Models()
        self._most_at_once, self._shares, self._session = most_at_once, shares, session
        self._urgent = UrgentWork()
        self._workers: dict[tuple[Engine, ...], Worker] = {}
        """Workers by their checkpoint, or by the two that are compared."""
        self._looks = Looks(store, self.memory.session)
        self._lock = Lock()
        self.close = weakref.finalize(self, _close, self._workers)

    @property
    def n_passed(self) -> int:
        """Number of texts processed by models so far."""
        return sum(worker.n_passed for worker in list(self._workers.values()))

    @property
    def n_batches(self) -> int:
        """Number of passes so far."""
        return sum(worker.n_batches for worker in list(self._workers.values()))

    def notice(self, engine: Engine) -> str | None:
        """A notice for the user about an engine; None if there is nothing to report."""
        notices = [worker.notice for engines, worker in list(self._workers.items()) if engine in engines]
        return " ".join(filter(None, notices)) or None

    def ask(
        self,
        engine: Engine | tuple[Engine, Engine],
        question: Question[Item, Result],
        items: Sequence[Item],
        settings: PassSettings | tuple[PassSettings, PassSettings] | None = None,
        *,
        too_long: TooLong = "skip",
        report: Report | None = None,
    ) -> Answers[Result]:
        """Results for items, cached or computed.

        Args:
            engine: computes missing results; the reference and the compared checkpoint, on one device and in one
                number format, for `attention_sieve.core.comparison.question.COMPARISON`.
            items: one or more, hashable; equal items are computed once.
            settings: which attention, and which heads are off; None for the checkpoint's first, all heads on. Of two
                checkpoints, those of each.
            report: progress callback, called about five times a second and after every batch; if it raises, the
                request is cancelled and finished results are stored.

        Raises: AnalysisError for a kind of attention that the question does not support, for more texts than may be
            computed at once or by this session, and of any stage; EveryTextTooLong if no text remains.
        """
        return self._answers(engine, question, items, settings, too_long, partial(self._records, report=report))

    def kept(
        self,
        engine: Engine | tuple[Engine, Engine],
        question: Question[Item, Result],
        items: Sequence[Item],
        settings: PassSettings | tuple[PassSettings, PassSettings] | None = None,
        *,
        too_long: TooLong = "skip",
    ) -> Answers[Result] | None:
        """The results of `ask` if all are cached, else None.

        Raises: AnalysisError for a kind of attention that the question does not support; EveryTextTooLong if no text
            remains.
        """
        try:
            return self._answers(engine, question, items, settings, too_long, partial(self._records, computes=False))
        except NotKept:
            return None

    def find(
        self, request: FindingRequest[Any, Item, Result, Any, Finding], report: Report | None = None
    ) -> CorpusFinding[Finding]:
        """What an analysis finds about the heads of a checkpoint: `attention_sieve.core.answering.find`, with memory.
        Missing trees are parsed in this thread.

        Raises: as `ask`.
        """
        return self._judged(request, lambda texts: self.trees.of(texts, report), partial(self._records, report=report))

    def kept_finding(self, request: FindingRequest[Any, Item, Result, Any, Finding]) -> CorpusFinding[Finding] | None:
        """The result of `find` if neither a text has to be parsed nor passed for it, else None.

        Raises: as `kept`.
        """
        try:
            return self._judged(request, self.trees.kept, partial(self._records, computes=False))
        except NotKept:
            return None

    def run(self, engine: Engine, work: Callable[[Checkpoint], Worked], report: Report | None = None) -> Worked:
        """Run a function on the loaded checkpoint in the worker's thread, between two batches, and return its result.
        The function should be short, because other requests wait for it, and keep no reference to the checkpoint.

        Raises: AnalysisError if the checkpoint cannot be loaded or memory runs out; whatever `work` or `report`
            raises.
        """
        return self._worker(engine).run(work, report, visitor=self._visitor())

    def look(
        self,
        engine: Engine,
        text: Text,
        settings: PassSettings | None = None,
        *,
        start: tuple[int, int] = (0, 0),
        too_long: TooLong = "error",
        report: Report | None = None,
    ) -> Look:
        """Tokens, relations, attention and measures of the displayed text.

        Args:
            engine, settings, report: as for `ask`.
            start: first query and first key of the attention window of a long text.
            too_long: "truncate" truncates a text that is too long.

        Raises: TextTooLong unless it may be truncated; AnalysisError of any stage.
        """
        settings = engine.settings(settings)

        def at(start: tuple[int, int]) -> ItemRequest:
            return look_request(engine, settings, text, too_long == "truncate", start)

        request = at(start)
        look = self._looks.kept(request)
        if look is None and start != (0, 0) and (first_look := self._looks.kept(at((0, 0)))) is not None:
            request = at(moved_back(start, first_look[0]))
            look = self._looks.kept(request)
        if look is None:
            (record,) = self._passed((engine,), (settings,), [request], [None], report=report)
            look = self._looks.remember(request, record)
            if look[0].block == 0 and start != (0, 0):
                look = self._looks.remember(at((0, 0)), record)
        return look

    def on_screen(
        self,
        engine: Engine,
        work: Callable[..., Worked],
        text: Text,
        *more: Hashable,
        report: Report | None = None,
    ) -> Worked:
        """What a function of `attention_sieve.cache.looks` computes about a displayed text, once.

        Args:
            work: takes the loaded checkpoint, the text and what follows here; goes before other work if it is short.
            text: one; of two texts, the longer one is enough to see whether the work is short.
            report: called about five times a second while waiting; if it raises, waiting stops.

        Raises: AnalysisError of any stage; whatever `work` or `report` raises.
        """

        def worked() -> tuple[Worked]:  # so that None is kept, too
            return (
                self._worker(engine).run(
                    lambda checkpoint: work(checkpoint, text, *more),
                    report,
                    visitor=self._visitor(),
                    is_urgent=is_short(text),
                ),
            )

        return self.memory.get_or_put("on screen", (engine, work, text, *more), worked)[0]

    def checkpoint(self, engine: Engine) -> Checkpoint:
        """The loaded checkpoint; loads it, or waits until another thread has.

        Raises: CheckpointError.
        """
        with self._models.use(engine) as checkpoint:
            return checkpoint

    def give_way(self) -> None:
        """Wait while short texts on screen are passed, for at most a step; for pauses of work outside the workers."""
        self._urgent.wait(STEP_SECONDS)

    def is_loaded(self, engine: Engine) -> bool:
        """Whether a checkpoint is in memory; never waits."""
        return self._models.is_loaded(engine)

    def load_behind(self, engine: Engine) -> None:
        """Load a checkpoint in the background; an error is raised again by the next request that needs it."""
        self._models.load_behind(engine)

    def _worker(self, *engines: Engine) -> Worker:
        with self._lock:
            worker = self._workers.get(engines)
            if worker is None:
                worker = self._workers[engines] = Worker(engines, self._models, self.store, self._urgent)
            return worker

    def _visitor(self) -> Hashable:
        session = self._session()
        return get_ident() if session is None else session

    def _answers(
        self,
        engine: Engine | tuple[Engine, Engine],
        question: Question[Item, Result],
        items: Sequence[Item],
        settings: PassSettings | tuple[PassSettings, PassSettings] | None,
        too_long: TooLong,
        records: Callable[..., Mapping[ItemRequest, Record]],
    ) -> Answers[Result]:
        """Results for items, whose records `_records` gives; all else as for `ask`."""
        if question.parts:
            parts = [self._answers(engine, part, items, settings, too_long, records) for part in question.parts]
            return joined(question, parts)
        engines, pass_settings = _checked(engine, question, settings)
        key = (question, engines, tuple(items), pass_settings, too_long)
        if (cached := self.memory.get("answers", key)) is not None:
            return cached
        requests = item_requests(engines, question, items, pass_settings, too_long == "truncate")
        by_request = records(engines, pass_settings, requests, too_long)
        item_records = [by_request[request] for request in requests]
        return self.memory.put("answers", key, collected(question, item_records, too_long))

    def _records(
        self,
        engines: tuple[Engine, ...],
        settings: tuple[PassSettings, ...],
        requests: Sequence[ItemRequest],
        too_long: TooLong,
        report: Report | None = None,
        *,
        computes: bool = True,
    ) -> dict[ItemRequest, Record]:
        """Results of passes for each item, stored or computed.

        Raises: NotKept where one is not stored and nothing is to be computed; as `ask`.
        """
        read_before = read(self.store, requests)
        stored = {request: record for request, record in read_before.items() if record.serves(too_long)}
        missing = {request: index for index, request in reversed(list(enumerate(requests))) if request not in stored}
        if not missing:
            return stored
        if not computes:
            raise NotKept
        if self._most_at_once is not None and len(missing) > self._most_at_once:
            raise AnalysisError(
                f"This server computes at most {self._most_at_once:,} texts at once, and {len(missing):,} of these "
                "have not been computed before. Choose fewer, or use Attention Sieve on a machine of your own."
            )
        in_order = sorted(missing, key=lambda request: missing[request])
        results = self._passed(
            engines,
            settings,
            in_order,
            [missing[request] for request in in_order],
            skips=too_long == "skip",
            report=None if report is None else _counting(report, len(stored)),
        )
        return stored | dict(zip(in_order, results))

    def _passed(
        self,
        engines: tuple[Engine, ...],
        settings: tuple[PassSettings, ...],
        requests: Sequence[ItemRequest],
        indices: Sequence[int | None],
        *,
        skips: bool = False,
        report: Report | None,
    ) -> list[Record]:
        """Results computed by a worker, counted as part of the session's share; arguments as for `Worker.ask`."""
        if self._shares is not None:
            self._shares.check()
        n_bytes = STOPPED_BYTES * len(requests)
        try:
            results = self._worker(*engines).ask(
                requests, settings, indices=indices, visitor=self._visitor(), skips=skips, report=report
            )
            n_bytes = sum(result.n_bytes for result in results)
        finally:
            if self._shares is not None:
                self._shares.add(n_bytes)
        return results

    def _judged(
        self,
        request: FindingRequest[Any, Item, Result, Any, Finding],
        parse: Callable[[Sequence[Text]], Iterable[Dependencies]],
        records: Callable[..., Mapping[ItemRequest, Record]],
    ) -> CorpusFinding[Finding]:
        """The finding of the items that were not left out, from memory or made; `records` as for `_answers`."""
        if (kept := self.memory.get("finding", request)) is not None:
            return kept
        items, answered = request.items(parse), list[Answers[Any]]()

        def ask(question: Question[Any, Any], about: Sequence[Any], _: str | None = None) -> tuple[Any, ...]:
            answers = self._answers(request.engine, question, about, request.pass_settings, request.too_long, records)
            answered.append(answers)
            return answers.results

        results = request.analysis.answers(ask, tuple(items.values()), request.settings)
        places, read = list(items), answered[0]
        positions = tuple(places[position] for position in read.positions)
        finding = CorpusFinding(
            request.analysis.judge(tuple(items[place] for place in positions), results, request.settings),
            positions,
            tuple((places[position], n_tokens) for position, n_tokens in read.too_long),
            read.n_tokens,
        )
        return self.memory.put("finding", request, finding)


def _checked(
    engine: Engine | tuple[Engine, Engine],
    question: Question,
    settings: PassSettings | tuple[PassSettings, PassSettings] | None,
) -> tuple[tuple[Engine, ...], tuple[PassSettings, ...]]:
    """Each checkpoint, and the settings of its pass.

    Raises: AnalysisError if the question does not support their kind of attention.
    """
    engines = engine if isinstance(engine, tuple) else (engine,)
    given = settings if isinstance(settings, tuple) else (settings,) * len(engines)
    pass_settings = tuple(one.settings(own) for one, own in zip(engines, given, strict=True))
    for own in pass_settings:
        question.check(own.kind)
    return engines, pass_settings


def _counting(report: Report, n_kept: int) -> Report:
    """Include cached texts in the reported progress."""

    return lambda status: report(replace(status, done=n_kept + status.done, total=n_kept + status.total))


def _close(workers: Mapping[tuple[Engine, ...], Worker]) -> None:
    for worker in list(workers.values()):
        worker.close()
