"""Answers for curves: from the cache, or computed under one progress bar for all of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.cheap import ways_to_measures
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.passes.question import Question
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.numbers import Importance


class NotYet(Exception):
    """An answer is not cached, and nobody is waiting for it to be computed."""


@dataclass(eq=False, kw_only=True)
class Work:
    """Long work of many questions; missing answers are computed only if there is a progress report."""

    report: Report | None = None
    total: int = 1
    """Forward passes of single texts in the whole of the work."""
    _done: float = 0
    """Passes whose answers are there, cached or computed."""
    _computed: float = 0
    """Passes that were computed rather than read from the cache."""
    _seconds: float = 0
    """Time that the computed passes took."""

    def answers(
        self, visit: Visit, question: Question[Any, Any], items: Sequence[Any], n_passes: int, off: tuple[Head, ...]
    ) -> Sequence[Any] | None:
        """Answers about each item with additional heads off; None if not cached and not computed.

        Args:
            items: texts, or what else the question is about.
            n_passes: forward passes that one answer takes.
            off: heads that are switched off in addition to those of the settings.
        """
        cost = len(items) * n_passes
        settings = replace(visit.settings, off=tuple(sorted({*visit.settings.off, *off})))
        answers = visit.inference.kept(visit.engine, question, items, settings, too_long=policy())
        if answers is None and self.report is not None:
            started = time.monotonic()

            def report_status(status: Status) -> None:
                self._report(
                    cost * status.done / max(status.total, 1), time.monotonic() - started, status.n_waiting_before
                )

            answers = visit.inference.ask(
                visit.engine, question, items, settings, too_long=policy(), report=report_status
            )
            self._computed += cost
            self._seconds += time.monotonic() - started
        self._done += cost
        return None if answers is None else answers.results

    def _report(self, n_passes: float, seconds: float, n_waiting_before: int) -> None:
        """Report the progress of the whole work."""
        if self.report is None:
            return
        computed, done = self._computed + n_passes, self._done + n_passes
        seconds_left = (self._seconds + seconds) / computed * max(0.0, self.total - done) if computed else None
        status = Status(
            done=min(round(done), self.total),
            total=self.total,
            seconds_left=seconds_left,
            n_waiting_before=n_waiting_before,
        )
        self.report(status)


@dataclass(eq=False, kw_only=True)
class Asker:
    """Asks a checkpoint about the texts that were read, as part of `work`."""

    importance: Importance
    work: Work

    def about_texts(self, question: Question[Any, Any], items: Sequence[Any], _: str = "") -> tuple[Any, ...]:
        """Answers about texts that were read; each takes one pass.

        Raises: NotYet for an answer that is not cached while nobody waits for it.
        """
        answers = self.work.answers(self.importance.material.visit, question, items, 1, ())
        if answers is None:
            raise NotYet
        return tuple(answers)

    def ways_to_measures(self) -> Mapping[str, Callable[[], list[Measure]]]:
        """Functions that compute each kind of cheap measure; they raise as `about_texts` does."""
        return ways_to_measures(self.about_texts, self.importance.read, self.importance.material.metric.metric)

    def about_some_texts(
        self, question: Question[Text, Any], indices: np.ndarray, off: tuple[Head, ...], n_passes: int
    ) -> Sequence[Any] | None:
        """Answers about the texts at these indices with additional heads off; None and `n_passes` as of `Work`."""
        read = self.importance.read
        texts = [read[index].text for index in indices.tolist()]
        return self.work.answers(self.importance.material.visit, question, texts, n_passes, off)
