"""What a head knows, for its card."""

from typing import Final

from core.attention.settings import Head
from dashboard.figures.knowledge.words import ACCURACY, written
from dashboard.plain import plain
from dashboard.views.frame import Visit
from dashboard.views.knowledge import wording
from dashboard.views.knowledge.numbers import beat_all, kept_results, majority

SHOWN: Final = 3
"""Tasks on a card at most."""


def what_it_knows(visit: Visit, head: Head) -> str:
    """The tasks that a head's output alone predicts best, of those that were probed; empty where none was."""
    kept = [each for each in kept_results(visit.engine, visit.settings.kind) if not each.report.is_regression]
    if not kept:
        return ""
    criterion = visit.chosen.criterion
    beats = beat_all([each.report for each in kept], criterion.correction, criterion.alpha)
    known = []
    for result, marked in zip(kept, beats):
        report = result.report
        place = next(at for at in range(len(marked)) if (report.layer[at], report.head[at]) == head)
        if marked[place]:
            known.append((float(report.accuracy[place]), majority(report), plain(report.task)))
    known.sort(key=lambda each: each[1] - each[0])
    if not known:
        return wording.card_nothing(len(kept))
    said = [(task, written(score, ACCURACY), written(floor, ACCURACY)) for score, floor, task in known[:SHOWN]]
    return wording.card(said, len(kept))
