"""What a head knows, for its card."""

from typing import Final

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.folders import trials_folder
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.frame import Visit

SHOWN: Final = 3


def what_it_knows(visit: Visit, head: Head) -> str:
    """The probed tasks that a head's output alone predicts best; empty if none was probed."""
    if not any(trials_folder().glob("*.parquet")):  # most readers probe nothing, and need none of these modules
        return ""
    from attention_sieve.dashboard.figures.knowledge.words import ACCURACY, written
    from attention_sieve.dashboard.views.probed import baseline_scores, beat_all, card, card_nothing, kept_results

    results = [result for result in kept_results(visit.engine, visit.settings.kind) if not result.report.is_regression]
    if not results:
        return ""
    criterion = visit.choice.criterion
    beats = beat_all([result.report for result in results], criterion.correction, criterion.alpha)
    best_tasks = []
    for result, marked in zip(results, beats):
        report = result.report
        index = next(row for row in range(len(marked)) if (report.layer[row], report.head[row]) == head)
        if marked[index]:
            best_tasks.append(
                (float(report.accuracy[index]), max(baseline_scores(report).values()), plain(report.task))
            )
    best_tasks.sort(key=lambda entry: entry[1] - entry[0])
    if not best_tasks:
        return card_nothing(len(results))
    rows = [(task, written(score, ACCURACY), written(floor, ACCURACY)) for score, floor, task in best_tasks[:SHOWN]]
    return card(rows, len(results))
