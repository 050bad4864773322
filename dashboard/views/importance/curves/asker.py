"""Answers for curves: from the store, or computed under one progress bar for all of them together."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cache.serving.requests import Report, Status
from core.attention.settings import Head
from core.importance.cheap import ways_to_measures
from core.importance.measures import Measure
from core.passes.question import Question
from core.texts.text import Text
from dashboard.views.asking import policy
from dashboard.views.frame import Visit
from dashboard.views.importance.numbers import Importance, projections


class NotYet(Exception):
    """An answer that takes a pass, which nobody waits for."""


@dataclass(eq=False, kw_only=True)
class Work:
    """Long work of many questions: computes what is missing where it has somebody to report to."""

    report: Report | None = None
    total: int = 1
    """Forward passes of single texts in the whole work."""
    _done: float = 0
    _computed: float = 0
    """Of these, those that took time, and the time."""
    _seconds: float = 0

    def answers(
        self, visit: Visit, question: Question[Any, Any], items: Sequence[Any], n_passes: int, off: tuple[Head, ...]
    ) -> Sequence[Any] | None:
        """Answers about each item with some more heads off, each of which takes so many passes; None if not known."""
        cost = len(items) * n_passes
        settings = replace(visit.settings, off=tuple(sorted({*visit.settings.off, *off})))
        found = visit.inference.kept(visit.engine, question, items, settings, too_long=policy())
        if found is None and self.report is not None:
            begun = time.monotonic()

            def tell(status: Status) -> None:
                self._tell(cost * status.done / max(status.total, 1), time.monotonic() - begun, status.n_waiting_before)

            found = visit.inference.ask(visit.engine, question, items, settings, too_long=policy(), report=tell)
            self._computed += cost
            self._seconds += time.monotonic() - begun
        self._done += cost
        return None if found is None else found.results

    def _tell(self, n_passes: float, seconds: float, n_waiting_before: int) -> None:
        """Report how far the whole work is."""
        if self.report is None:
            return
        computed, done = self._computed + n_passes, self._done + n_passes
        left = (self._seconds + seconds) / computed * max(0.0, self.total - done) if computed else None
        status = Status(
            done=min(round(done), self.total),
            total=self.total,
            seconds_left=left,
            n_waiting_before=n_waiting_before,
        )
        self.report(status)


@dataclass(eq=False, kw_only=True)
class Asker:
    """Asks a checkpoint about the texts that were read, as part of some work."""

    importance: Importance
    work: Work
    _texts: list[Text] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the texts that were read."""
        self._texts = [self.importance.material.visit.texts[place] for place in self.importance.ablated.positions]

    def about_texts(self, question: Question[Any, Any], _: str = "", *, labelled: bool = False) -> Sequence[Any]:
        """Answers about every text, or labelled text, which take a pass each.

        Raises: NotYet for an answer that takes a pass, which nobody waits for.
        """
        material = self.importance.material
        items = material.labelled if labelled else material.visit.texts
        read = [items[place] for place in self.importance.ablated.positions]
        answers = self.work.answers(material.visit, question, read, 1, ())
        if answers is None:
            raise NotYet
        return answers

    def ways_to_measures(self) -> Mapping[str, Callable[[], list[Measure]]]:
        """What computes each kind of cheap measure; raises as `about_texts` does."""
        metric = self.importance.material.metric
        return ways_to_measures(self.about_texts, lambda: projections(self.importance), metric=metric)

    def about_places(
        self, question: Question[Text, Any], places: np.ndarray, off: tuple[Head, ...], n_passes: int
    ) -> Sequence[Any] | None:
        """Answers about texts with some more heads off, each of which takes so many passes."""
        texts = [self._texts[place] for place in places.tolist()]
        return self.work.answers(self.importance.material.visit, question, texts, n_passes, off)
