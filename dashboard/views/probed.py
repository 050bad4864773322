"""Results of probed tasks, as Knowledge and the card of a head read them."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.checkpoints.folders import trials_folder
from attention_sieve.core.knowledge.report import TaskReport, corrected
from attention_sieve.core.knowledge.trials.result import TrialResult, fingerprint_of, read_result
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.figure import counted

MOST_ROWS: Final = 500
"""Number of the latest saved results that are searched for those of a checkpoint."""


def kept_result(path: Path) -> TrialResult | None:
    """The result in a file; None where there is none that can be read."""
    try:
        key = path, path.stat().st_mtime_ns
    except OSError:
        return None
    return memory().get_or_put("trial", key, lambda: read_result(path))


def kept_results(engine: Engine, kind: Kind) -> list[TrialResult]:
    """Results of a checkpoint from the latest runs, with the paper's pooling; the latest one of each task."""
    folder = trials_folder()
    paths = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)[-MOST_ROWS:]
    own_paths = [path for path in paths if _fingerprint(path, path.stat().st_mtime_ns) == engine.files.fingerprint]
    settings = (engine.dtype, kind, None)
    results = [
        result
        for result in map(kept_result, own_paths)
        if result and (result.dtype, result.kind, result.trial.pooling) == settings
    ]
    return list({result.report.task: result for result in results}.values())


@lru_cache(2 * MOST_ROWS)  # 64 letters each, and one card reads all of them
def _fingerprint(path: Path, version: int) -> str | None:
    return fingerprint_of(path)


def beat_all(reports: Sequence[TaskReport], correction: Correction, alpha: float) -> list[Bool[np.ndarray, " place"]]:
    """Which heads beat every baseline on each task; p-values corrected over the heads and tasks, for each baseline.

    A regression has no p-values, so none of its heads is marked.
    """
    beats = [np.ones(len(report.layer), bool) for report in reports]
    for baseline in range(min((len(report.baselines) for report in reports), default=0)):
        for index, p_values in enumerate(corrected(reports, baseline, correction)):
            beats[index] &= p_values < alpha
    return beats


def baseline_scores(report: TaskReport) -> dict[str, float]:
    """Score of each baseline by its name; a regression has no majority class."""
    return {baseline.name: baseline.score for baseline in report.baselines if not np.isnan(baseline.score)}


def card(tasks: Sequence[tuple[str, str, str]], n_tasks: int) -> str:
    task_list = ", ".join(f"{task} {score} (best baseline {floor})" for task, score, floor in tasks)
    return f"Of {counted(n_tasks, 'probed task')}, its output alone predicts better than every baseline: {task_list}."


def card_nothing(n_tasks: int) -> str:
    return f"Its output alone predicts none of {counted(n_tasks, 'probed task')} better than every baseline."
