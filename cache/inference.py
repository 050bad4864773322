"""The one way to numbers that cost a forward pass: look them up, compute what is missing, keep it.

Nothing here needs torch until something is missing.
"""

import logging
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from cache.answers import Engine, Seen, Wanted, read, wanted_comparison, wanted_look, wanted_scores
from cache.behind import LoadsBehind
from cache.corpora import ComparedCorpus, CorpusMeasures, collected, collected_pairs, serves
from cache.looks import Look, Looks, moved_back
from cache.models import Models
from cache.passing import output_change_of, prediction_of
from cache.questions import Answers, Item, Question, found_answers, kept_answers
from cache.recent import Recent
from cache.requests import Report, Status
from cache.store import Store
from cache.worker import Worker
from core.analysis import MeasuredText
from core.checkpoints import Checkpoint
from core.parses import parser_name
from core.passes import PassSettings
from core.texts import Text
from core.tokens import TooLong

if TYPE_CHECKING:
    from core.outputs import OutputChange, Prediction

__all__ = ["Answers", "ComparedCorpus", "CorpusMeasures", "Engine", "Inference", "Report", "Status"]

CORPORA_BYTES: Final = 128 * 2**20
"""Of the latest corpora's measures in memory: a moved tau asks for the same ones again and again."""
OUTPUTS: Final = 256
"""Changes of output that stay in memory."""

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class Inference:
    """Results from memory, the store, or the one worker of each engine; safe to share between threads.

    Attributes:
        store: where results are kept.
        close: ends all workers; those who wait get an error. Called when the program ends, too.
    """

    def __init__(self, store: Store, models: Models | None = None) -> None:
        """Begin with nothing loaded.

        Args:
            store: where results are kept.
            models: holds the loaded checkpoints; None for the budget in ATTENTION_SIEVE_MODELS_MB, or else a share of
                the memory.

        Raises: AnalysisError: ATTENTION_SIEVE_MODELS_MB is not a whole number.
        """
        self.store = store
        self._models = models or Models()
        self._workers: dict[tuple[Engine, ...], Worker] = {}
        """By the checkpoint, or by the two that are compared."""
        self._corpora: Recent[Hashable, CorpusMeasures] = Recent(CORPORA_BYTES)
        self._answers: Recent[Hashable, Answers] = Recent(CORPORA_BYTES)
        self._looks = Looks(store)
        self._outputs: Recent[Hashable, OutputChange] = Recent(OUTPUTS)
        self._predictions: Recent[Hashable, tuple[Prediction | None]] = Recent(OUTPUTS)
        self._loads_behind = LoadsBehind(self._models)
        self._lock = Lock()
        self.close = weakref.finalize(self, _close, self._workers)

    @property
    def n_passed(self) -> int:
        """Texts that have gone through a model so far."""
        return sum(worker.n_passed for worker in list(self._workers.values()))

    @property
    def n_batches(self) -> int:
        """Passes that this took."""
        return sum(worker.n_batches for worker in list(self._workers.values()))

    def notice(self, engine: Engine) -> str | None:
        """What a reader should know about an engine, in a sentence; None while all is well."""
        notices = [worker.notice for engines, worker in list(self._workers.items()) if engine in engines]
        return " ".join(filter(None, notices)) or None

    def measures(
        self,
        engine: Engine,
        texts: Sequence[Text],
        settings: PassSettings | None = None,
        *,
        too_long: TooLong = "skip",
        report: Report | None = None,
    ) -> CorpusMeasures:
        """Measures of texts, from memory or the store where they have them.

        Args:
            engine: what computes the missing ones.
            texts: one or more; equal ones are measured once.
            settings: which attention, and which heads are off; None for the checkpoint's first, all heads on.
            too_long: what happens to texts longer than the checkpoint takes.
            report: called about five times a second and after every batch while there is something to wait for; where
                it raises, the work stops and what is finished is kept.

        Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
        """
        settings = engine.settings(settings)
        question = (engine, tuple(texts), settings, too_long)
        if (recent := self._corpora.get(question)) is not None:
            return recent
        wanted = wanted_scores(engine, settings, texts, _parser_name(), too_long == "truncate")
        seen = self._seen((engine,), (settings,), wanted, too_long, report)
        return self._remember(question, [seen[one].measured for one in wanted], too_long)

    def kept_measures(
        self, engine: Engine, texts: Sequence[Text], settings: PassSettings | None = None, *, too_long: TooLong = "skip"
    ) -> CorpusMeasures | None:
        """Measures of texts that need no pass; None when any text would need one.

        Raises: EveryTextTooLong when no text is left.
        """
        settings = engine.settings(settings)
        question = (engine, tuple(texts), settings, too_long)
        if (recent := self._corpora.get(question)) is not None:
            return recent
        wanted = wanted_scores(engine, settings, texts, _parser_name(), too_long == "truncate")
        kept = self._kept(wanted, too_long)
        if any(one not in kept for one in wanted):
            return None
        return self._remember(question, [kept[one].measured for one in wanted], too_long)

    def comparison(
        self,
        engines: tuple[Engine, Engine],
        texts: Sequence[Text],
        settings: tuple[PassSettings | None, PassSettings | None] = (None, None),
        *,
        too_long: TooLong = "skip",
        report: Report | None = None,
    ) -> ComparedCorpus:
        """Measures of texts under two checkpoints and the divergence of their attention, by two passes in step.

        Args:
            engines: the reference, and what is compared with it; on one device and in one number format.
            texts: one or more; equal ones are measured once.
            settings: of each, as for `measures`.
            too_long, report: as for `measures`.

        Raises: as `measures`.
        """
        wanted, asked = _compared(engines, texts, settings, too_long)
        seen = self._seen(engines, asked, wanted, too_long, report)
        return collected_pairs([seen[one] for one in wanted], too_long)

    def kept_comparison(
        self,
        engines: tuple[Engine, Engine],
        texts: Sequence[Text],
        settings: tuple[PassSettings | None, PassSettings | None] = (None, None),
        *,
        too_long: TooLong = "skip",
    ) -> ComparedCorpus | None:
        """A comparison that needs no pass; None when any text would need one.

        Raises: EveryTextTooLong when no text is left.
        """
        wanted, _ = _compared(engines, texts, settings, too_long)
        kept = self._kept(wanted, too_long)
        if any(one not in kept for one in wanted):
            return None
        return collected_pairs([kept[one] for one in wanted], too_long)

    def answers(
        self,
        engine: Engine,
        question: Question[Item],
        items: Sequence[Item],
        settings: PassSettings | None = None,
        *,
        too_long: TooLong = "skip",
        report: Report | None = None,
    ) -> Answers:
        """What passes find of items, from memory or the store where they have it.

        Args:
            engine, settings, too_long, report: as for `measures`.
            question: what is to be found.
            items: one or more, hashable; equal ones are computed once.

        Raises: as `measures`.
        """
        settings = engine.settings(settings)
        asked = (question.kind, engine, tuple(items), settings, too_long)
        if (recent := self._answers.get(asked)) is not None:
            return recent
        answers = found_answers(self.store, self._worker(engine), question, engine, settings, items, too_long, report)
        self._answers.put(asked, answers, answers.n_bytes)
        return answers

    def kept_answers(
        self,
        engine: Engine,
        question: Question[Item],
        items: Sequence[Item],
        settings: PassSettings | None = None,
        *,
        too_long: TooLong = "skip",
    ) -> Answers | None:
        """What needs no pass of what `answers` gives; None when any item would need one.

        Raises: EveryTextTooLong when no text is left.
        """
        settings = engine.settings(settings)
        asked = (question.kind, engine, tuple(items), settings, too_long)
        if (recent := self._answers.get(asked)) is not None:
            return recent
        answers = kept_answers(self.store, question, engine, settings, items, too_long)
        if answers is not None:
            self._answers.put(asked, answers, answers.n_bytes)
        return answers

    def run(self, engine: Engine, work: Callable[[Checkpoint], Answer], report: Report | None = None) -> Answer:
        """What other work on the loaded checkpoint gives; done in the worker's thread between two batches.

        Args:
            engine: whose checkpoint.
            work: short, as all others wait for it; it must not keep the checkpoint.
            report: as for `output_change`.

        Raises: AnalysisError where the checkpoint cannot be loaded or memory runs out; what the work raises; whatever
            `report` raises.
        """
        return self._worker(engine).run(work, report)

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
        """Tokens, relations and attention of the text on screen, and what the same pass measured of it.

        Args:
            engine, settings, report: as for `measures`.
            text: one.
            start: first query and first key of the part of a long text whose attention is kept entry by entry.
            too_long: "truncate" cuts a text that is too long.

        Raises: TextTooLong unless it may be cut; AnalysisError of any stage.
        """
        settings = engine.settings(settings)

        def at(start: tuple[int, int]) -> Wanted:
            return wanted_look(engine, settings, text, _parser_name(), too_long == "truncate", start)

        wanted = at(start)
        look = self._looks.kept(wanted)
        if look is None and start != (0, 0) and (first := self._looks.kept(at((0, 0)))) is not None:
            wanted = at(moved_back(start, first[0]))
            look = self._looks.kept(wanted)
        if look is None:
            (seen,) = self._worker(engine).ask([wanted], (settings,), places=[None], report=report)
            look = self._looks.remember(wanted, seen)
            if look[0].block == 0 and start != (0, 0):
                look = self._looks.remember(at((0, 0)), seen)
        return look

    def output_change(
        self,
        engine: Engine,
        text: Text,
        settings: PassSettings,
        token: int | None = None,
        *,
        report: Report | None = None,
    ) -> "OutputChange":
        """What switching heads off changes in the output for the text on screen; cut where it is too long.

        Args:
            engine: what computes it.
            text: one.
            settings: name the heads that are off.
            token: place of the token to guess, or to guess the next one of; None for the text's last one.
            report: called about five times a second while there is something to wait for; where it raises, the
                waiting stops.

        Raises: AnalysisError of any stage; whatever `report` raises.
        """
        question = (engine, text, settings, token)
        change = self._outputs.get(question)
        if change is None:
            change = self._worker(engine).run(
                lambda checkpoint: output_change_of(checkpoint, text, settings, token), report
            )
            self._outputs.put(question, change, 1)
        return change

    def prediction(
        self, engine: Engine, text: Text, settings: PassSettings | None = None, *, report: Report | None = None
    ) -> "Prediction | None":
        """What a checkpoint's classifier says of the text on screen, cut where it is too long; None if it is none.

        Args:
            engine, settings: as for `measures`.
            text: one.
            report: as for `output_change`.

        Raises: AnalysisError of any stage; whatever `report` raises.
        """
        asked = engine.settings(settings)
        kept = self._predictions.get((engine, text, asked))
        if kept is None:
            kept = (self._worker(engine).run(lambda checkpoint: prediction_of(checkpoint, text, asked), report),)
            self._predictions.put((engine, text, asked), kept, 1)
        return kept[0]

    def checkpoint(self, engine: Engine) -> Checkpoint:
        """The loaded checkpoint; loads it, or waits for whoever is loading it.

        Raises: CheckpointError.
        """
        with self._models.use(engine) as checkpoint:
            return checkpoint

    def is_loaded(self, engine: Engine) -> bool:
        """Whether a checkpoint is in memory; never waits."""
        return self._models.is_loaded(engine)

    def is_loading(self, engine: Engine) -> bool:
        """Whether a checkpoint is being loaded; never waits."""
        return self._loads_behind.is_loading(engine)

    def load_behind(self, engine: Engine) -> None:
        """Load a checkpoint in a thread of its own; an error is met again, and shown, by whoever needs it."""
        self._loads_behind.load(engine)

    def _worker(self, *engines: Engine) -> Worker:
        with self._lock:
            worker = self._workers.get(engines)
            if worker is None:
                worker = self._workers[engines] = Worker(engines, self._models, self.store)
            return worker

    def _seen(
        self,
        engines: tuple[Engine, ...],
        settings: tuple[PassSettings, ...],
        wanted: Sequence[Wanted],
        too_long: TooLong,
        report: Report | None,
    ) -> dict[Wanted, Seen]:
        """What is seen of each text, from the store where it has it."""
        kept = self._kept(wanted, too_long)
        missing = {one: place for place, one in reversed(list(enumerate(wanted))) if one not in kept}
        if not missing:
            return kept
        in_order = sorted(missing, key=lambda one: missing[one])
        seen = self._worker(*engines).ask(
            in_order,
            settings,
            places=[missing[one] for one in in_order],
            skips=too_long == "skip",
            report=None if report is None else _counting(report, len(kept)),
        )
        return kept | dict(zip(in_order, seen))

    def _kept(self, wanted: Sequence[Wanted], too_long: TooLong) -> dict[Wanted, Seen]:
        """What the store has that serves."""
        kept = read(self.store, wanted)
        return {one: seen for one, seen in kept.items() if all(serves(side, too_long) for side in seen.sides)}

    def _remember(self, question: Hashable, measured: Sequence[MeasuredText], too_long: TooLong) -> CorpusMeasures:
        answer = collected(measured, too_long)
        self._corpora.put(question, answer, answer.measures.nbytes)
        return answer


def _counting(report: Report, n_kept: int) -> Report:
    """Count texts that were there before among those that are done."""

    def counted(status: Status) -> None:
        report(
            Status(
                done=n_kept + status.done,
                total=n_kept + status.total,
                seconds_left=status.seconds_left,
                n_waiting_before=status.n_waiting_before,
            )
        )

    return counted


def _compared(
    engines: tuple[Engine, Engine],
    texts: Sequence[Text],
    settings: tuple[PassSettings | None, PassSettings | None],
    too_long: TooLong,
) -> tuple[list[Wanted], tuple[PassSettings, PassSettings]]:
    """What a comparison wants of each text, and what each pass is asked."""
    asked = (engines[0].settings(settings[0]), engines[1].settings(settings[1]))
    return wanted_comparison(engines, asked, texts, _parser_name(), too_long == "truncate"), asked


def _close(workers: Mapping[tuple[Engine, ...], Worker]) -> None:
    for worker in list(workers.values()):
        worker.close()


@lru_cache(maxsize=1)
def _parser_name() -> str:
    """Asked for at every look-up; a reader who installs another parser starts the program anew."""
    return parser_name()
