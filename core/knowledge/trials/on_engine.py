"""Runs trials in several processes, on this machine or on a Ray cluster; each writes its own row."""

from collections.abc import Callable, Sequence
from pathlib import Path

from attention_sieve.core.engines.work import Executor
from attention_sieve.core.knowledge.trials.progress import Reporter
from attention_sieve.core.knowledge.trials.result import TrialResult, TrialStage
from attention_sieve.core.knowledge.trials.run import Trials
from attention_sieve.core.knowledge.trials.trial import Trial, n_texts_of, name_of

Run = Callable[[Trial], tuple[TrialResult, bool]]


def trial_runner(folder: Path, device: str, dtype: str, stages: Sequence[TrialStage]) -> Run:
    """Set up a worker process; the returned function runs one trial, and keeps its checkpoint for the next."""
    trials = Trials(folder, device, dtype)
    return lambda trial: trials.run(trial, stages)


def run_on(
    engine: Executor, table: Sequence[Trial], begin: Callable[[], Run], n_stages: int, reporter: Reporter
) -> list[TrialResult]:
    """Run a table of trials on an engine, all stages of a trial in one process; those that fail are retried once.

    Args:
        engine: runs trials.
        table: of trials.
        begin: `trial_runner` with its arguments; can be pickled.
        n_stages: of a trial, which the reporter counts.
        reporter: receives the progress, and finally how the run ended.

    Returns: results of the successful trials, in their order; if the run is asked to stop, of those that are done.
    Raises: KeyboardInterrupt if it is interrupted; what is done is kept.
    """
    results: dict[Trial, TrialResult] = {}
    n_texts = dict(zip(table, n_texts_of(table)))
    reporter.expect(sum(n_texts.values()) * n_stages)
    with reporter.to_the_end():
        for is_last in (False, True):
            missing = [trial for trial in table if trial not in results]
            for outcome in engine(begin, missing):
                trial = missing[outcome.index]
                reporter.begin(name_of(trial), n_texts[trial])
                reporter.tell("", 0, 0)
                if outcome.result is not None:
                    results[trial], was_kept = outcome.result
                    _count(reporter, n_stages, was_kept=was_kept)
                elif is_last:
                    reporter.failed(name_of(trial), outcome.why)
                    _count(reporter, n_stages, was_kept=True)
            if len(results) == len(table):
                break
    return [results[trial] for trial in table if trial in results]


def _count(reporter: Reporter, n_stages: int, *, was_kept: bool) -> None:
    for _ in range(n_stages):
        reporter.done(was_kept=was_kept)
