"""Runs trials one after the other, or in several processes. A stop waits for one step only and loses the current stage;
a resumed run repeats no stage that is done."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.checkpoints.find import load_checkpoint
from attention_sieve.core.engines.work import Executor, tried_twice
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.kept_vectors import Batch, TaskReading, read_task
from attention_sieve.core.knowledge.probes.solver import between_steps
from attention_sieve.core.knowledge.reconstruction import ranking, reconstruct, usual_steps
from attention_sieve.core.knowledge.report import code_lengths, selectivity, task_report, texts_of
from attention_sieve.core.knowledge.task import Task, check_task
from attention_sieve.core.knowledge.trials.result import STAGES, TrialResult, TrialStage, read_result, write_result
from attention_sieve.core.knowledge.trials.trial import Trial, n_texts_of, name_of, row_path, task_sha256
from attention_sieve.core.knowledge.vectors import usual_pooling
from attention_sieve.core.passes.texts import check_settings, prepare_all
from attention_sieve.core.pauses import pausing
from attention_sieve.core.running import Journal, Stopped

READING: Final = "Reading vectors"
DOING: Final[dict[TrialStage, str]] = {
    "heads": "Probing each head and each layer",
    "controls": "Probing a control task, and measuring the code length",
    "together": "Probing the best heads together",
}
GROWTH: Final = 1.5
"""Growth of the number of heads together beyond those of a layer."""
Tell = Callable[[str, int, int], None]
"""tell(doing, texts done, all texts) reports the current work; may raise to stop."""
Run = Callable[[Trial], tuple[TrialResult, bool]]


class Trials:
    """Runs trials in this process, and keeps the last checkpoint in memory for the next trial."""

    def __init__(self, folder: Path, device: str = "auto", dtype: str = "float32") -> None:
        self._folder, self._device, self._dtype = folder, device, dtype
        self._loaded: Checkpoint | None = None

    def run(
        self,
        trial: Trial,
        stages: Sequence[TrialStage] = STAGES,
        tell: Tell = lambda *_: None,
        check: Callable[[], None] = lambda: None,
    ) -> tuple[TrialResult, bool]:
        """Compute the missing stages of a trial, and write its row after each stage.

        Args:
            stages: to compute; the first stage is always computed.
            check: called between two steps of fitting probes, from several threads; may raise to stop.

        Returns: the result, and whether nothing was missing.
        Raises: AnalysisError if the checkpoint, the task and the settings do not fit together; what `tell` and `check`
            raise.
        """
        before = between_steps.set(check)
        try:
            return self._run(trial, stages, tell)
        finally:
            between_steps.reset(before)

    def _run(self, trial: Trial, stages: Sequence[TrialStage], tell: Tell) -> tuple[TrialResult, bool]:
        files, task = trial.files(), trial.task()
        check_task(task)
        path = row_path(self._folder, trial, files, task_sha256(task), self._dtype)
        result = read_result(path)
        if result is not None and set(stages) <= set(result.stages):
            return result, True
        checkpoint = self._load(files)
        reading = _read(checkpoint, trial, task, tell)
        for stage in STAGES:
            if result is None:
                tell(DOING["heads"], 0, 0)
                result = _first(trial, reading)
            elif stage in stages and stage not in result.stages:
                tell(DOING[stage], 0, 0)
                result = _with_stage(result, stage, reading)
            else:
                continue
            write_result(path, result)
        if result is None:
            raise RuntimeError("A trial was run without its first stage.")
        return result, False

    def _load(self, files: CheckpointFiles) -> Checkpoint:
        if self._loaded is None or self._loaded.files != files:
            self._loaded = None  # frees its memory before the next one is loaded
            self._loaded = load_checkpoint(files, device=self._device, dtype=self._dtype)
        return self._loaded


def _read(checkpoint: Checkpoint, trial: Trial, task: Task, tell: Tell) -> TaskReading:
    settings = PassSettings(trial.attention or checkpoint.files.kinds[0])
    check_settings(checkpoint, settings)
    pooling = trial.pooling or usual_pooling(checkpoint, settings.kind)
    prepared, _ = prepare_all(checkpoint, texts_of(task), settings, trial.too_long)

    def watch(work: Iterable[Batch], n_texts: int) -> Iterator[Batch]:
        n_done = 0
        for batch in work:
            n_done += len(batch)
            tell(READING, n_done, n_texts)
            yield batch

    tell(READING, 0, len(texts_of(task)))
    return read_task(checkpoint, task, prepared, settings, pooling, watch)


def _first(trial: Trial, reading: TaskReading) -> TrialResult:
    checkpoint, task = reading.checkpoint, reading.task
    return TrialResult(
        trial=trial,
        fingerprint=checkpoint.files.fingerprint,
        dtype=checkpoint.dtype,
        kind=reading.settings.kind,
        pooling=reading.pooling,
        task_sha256=task_sha256(task),
        source=task.source,
        classes=() if task.is_regression else task.classes,
        notes=check_task(task),
        stages=("heads",),
        report=task_report(task, reading.vectors),
    )


def _with_stage(result: TrialResult, stage: TrialStage, reading: TaskReading) -> TrialResult:
    task, vectors = reading.task, reading.vectors
    stages = (*result.stages, stage)
    if stage == "together":
        per_layer = int(result.report.head.max()) + 1
        steps = usual_steps(len(ranking(result.report)), per_layer, every=1, growth=GROWTH)
        together = reconstruct(task, vectors, result.report, steps)
        return replace(result, stages=stages, together=together)
    if result.report.is_regression:
        return replace(result, stages=stages)
    seed = result.trial.seed
    bits, uniform = code_lengths(task, vectors, seed)
    control = selectivity(task, vectors, result.report, seed)
    return replace(result, stages=stages, selectivity=control, bits=bits, uniform_bits=uniform)


def run_table(
    table: Sequence[Trial], trials: Trials, stages: Sequence[TrialStage], journal: Journal
) -> list[TrialResult]:
    """Run a table of trials, stage by stage: the first of all trials, then the second of all. Each is a piece.

    A trial that cannot be run is reported and left out, and the others continue.

    Returns: results of the successful trials, in their order; if the run is asked to stop, of those that are done.
    Raises: KeyboardInterrupt if it is interrupted; what is done is kept.
    """
    results: dict[Trial, TrialResult] = {}
    failed: set[Trial] = set()
    n_texts = n_texts_of(table)
    with suppress(Stopped), journal, pausing(journal.check):
        journal.plan(len(table) * len(stages), sum(n_texts) * len(stages))
        for stage in [name for name in STAGES if name in stages]:
            for trial, n_of_trial in zip(table, n_texts):
                journal.piece(name_of(trial))
                if trial not in failed:
                    try:
                        results[trial], was_kept = trials.run(trial, (stage,), journal.part, journal.check)
                    except AnalysisError as error:
                        failed.add(trial)
                        journal.failed(name_of(trial), str(error))
                journal.done(n_of_trial, was_kept=trial in failed or was_kept)
    return [results[trial] for trial in table if trial in results]


def trial_runner(folder: Path, device: str, dtype: str, stages: Sequence[TrialStage]) -> Run:
    """Set up a worker process; the returned function runs one trial, and keeps its checkpoint for the next."""
    trials = Trials(folder, device, dtype)
    return lambda trial: trials.run(trial, stages)


def run_on(
    engine: Executor, table: Sequence[Trial], begin: Callable[[], Run], n_stages: int, journal: Journal
) -> list[TrialResult]:
    """Run a table of trials on an engine, all stages of a trial in one process; those that fail are retried once.

    Args:
        begin: `trial_runner` with its arguments; can be pickled.
        n_stages: of a trial, each of which is a piece.

    Returns: results of the successful trials, in their order; if the run is asked to stop, of those that are done.
    Raises: KeyboardInterrupt if it is interrupted; what is done is kept.
    """
    results: dict[Trial, TrialResult] = {}
    n_texts = dict(zip(table, n_texts_of(table)))
    with suppress(Stopped), journal, pausing(journal.check):
        journal.plan(len(table) * n_stages, sum(n_texts.values()) * n_stages)
        for trial, outcome in tried_twice(engine, begin, table, journal, name_of):
            was_kept = True
            if outcome.result is None:
                journal.failed(name_of(trial), outcome.why)
            else:
                results[trial], was_kept = outcome.result
            for _ in range(n_stages):
                journal.done(n_texts[trial], was_kept=was_kept)
    return [results[trial] for trial in table if trial in results]
