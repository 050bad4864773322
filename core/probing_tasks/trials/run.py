"""Trials one after the other: what is finished stays, a stop loses the stage that is on, going on repeats nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from core.checkpoints.find import load_checkpoint
from core.errors import AnalysisError
from core.passes.prepare import check_settings, prepare_all
from core.probing_tasks.read_task import Batch, read_task
from core.probing_tasks.reconstruction import ranking, reconstruct
from core.probing_tasks.report import TaskReport, code_lengths, selectivity, task_report, texts_of
from core.probing_tasks.task import Task, check_task
from core.probing_tasks.trials.progress import Reporter, Stopped
from core.probing_tasks.trials.result import STAGES, Stage, TrialResult, read_result, write_result
from core.probing_tasks.trials.trial import Trial, name_of, row_path, task_sha256
from core.probing_tasks.vectors import Pooling, Vectors, usual_pooling

READING: Final = "Reading vectors"
DOING: Final[dict[Stage, str]] = {
    "heads": "Probing each head and each layer",
    "controls": "Probing a control task, and measuring the code length",
    "together": "Probing the best heads together",
}
GROWTH: Final = 1.5
"""From one number of heads that are put together to the next, beyond the heads of a layer."""
Tell = Callable[[str, int, int], None]
"""Is told what is done now, and how many of how many texts are done; raises to stop."""


class Trials:
    """Runs trials in this process, and keeps the checkpoint of the last one in memory for the next."""

    def __init__(self, folder: Path, device: str = "auto", dtype: str = "float32") -> None:
        """Run nothing yet.

        Args:
            folder: of the rows.
            device: auto, cuda, mps or cpu.
            dtype: number format of the passes.
        """
        self._folder, self._device, self._dtype = folder, device, dtype
        self._loaded: Checkpoint | None = None

    def run(
        self, trial: Trial, stages: Sequence[Stage] = STAGES, tell: Tell = lambda *_: None
    ) -> tuple[TrialResult, bool]:
        """Compute what is missing of a trial, and write its row after each stage.

        Args:
            trial: what is probed.
            stages: what is wanted; the first is always computed.
            tell: is told how far the work is.

        Returns: the result, and whether nothing was missing.
        Raises: AnalysisError for a checkpoint, a task or a setting that do not go together; what `tell` raises.
        """
        files, task = trial.files(), trial.task()
        check_task(task)
        path = row_path(self._folder, trial, files, task_sha256(task), self._dtype)
        known = read_result(path)
        if known is not None and set(stages) <= set(known.stages):
            return known, True
        checkpoint = self._load(files)
        task, vectors, pooling = _read(checkpoint, trial, task, tell)
        for stage in STAGES:
            if known is None:
                tell(DOING["heads"], 0, 0)
                known = _first(checkpoint, trial, task, vectors, pooling)
            elif stage in stages and stage not in known.stages:
                tell(DOING[stage], 0, 0)
                known = _with_stage(known, stage, task, vectors)
            else:
                continue
            write_result(path, known)
        if known is None:
            raise RuntimeError("A trial was run without its first stage.")
        return known, False

    def _load(self, files: CheckpointFiles) -> Checkpoint:
        if self._loaded is None or self._loaded.files != files:
            self._loaded = None  # its memory is free before the next one is read
            self._loaded = load_checkpoint(files, device=self._device, dtype=self._dtype)
        return self._loaded


def _read(checkpoint: Checkpoint, trial: Trial, task: Task, tell: Tell) -> tuple[Task, Vectors, Pooling]:
    """The task as far as the checkpoint can read it, its vectors, and where they are read."""
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
    return *read_task(checkpoint, task, prepared, settings, pooling, watch), pooling


def _first(checkpoint: Checkpoint, trial: Trial, task: Task, vectors: Vectors, pooling: Pooling) -> TrialResult:
    """A trial after its first stage."""
    return TrialResult(
        trial=trial,
        fingerprint=checkpoint.files.fingerprint,
        dtype=checkpoint.dtype,
        kind=trial.attention or checkpoint.files.kinds[0],
        pooling=pooling,
        task_sha256=task_sha256(task),
        source=task.source,
        classes=() if task.is_regression else task.classes,
        notes=check_task(task),
        stages=("heads",),
        report=task_report(task, vectors),
    )


def _with_stage(known: TrialResult, stage: Stage, task: Task, vectors: Vectors) -> TrialResult:
    """A trial after one more stage; a regression has no controls."""
    stages = (*known.stages, stage)
    if stage == "together":
        together = reconstruct(task, vectors, known.report, steps_of(known.report))
        return replace(known, stages=stages, together=together)
    if known.report.is_regression:
        return replace(known, stages=stages)
    seed = known.trial.seed
    bits, uniform = code_lengths(task, vectors, seed)
    control = selectivity(task, vectors, known.report, seed)
    return replace(known, stages=stages, selectivity=control, bits=bits, uniform_bits=uniform)


def steps_of(report: TaskReport) -> tuple[int, ...]:
    """Numbers of heads that are put together: each up to those of a layer, then growing ones, and all."""
    n_heads, per_layer = len(ranking(report)), int(report.head.max()) + 1
    steps = list(range(1, min(per_layer, n_heads) + 1))
    while (following := round(steps[-1] * GROWTH)) < n_heads:
        steps.append(following)
    return tuple(sorted({*steps, n_heads}))


def run_table(table: Sequence[Trial], trials: Trials, stages: Sequence[Stage], reporter: Reporter) -> list[TrialResult]:
    """Run a table of trials, stage by stage: the first of all trials, then the second of all.

    A trial that cannot be run is reported and left out, and the others go on.

    Args:
        table: of trials.
        trials: runs one.
        stages: what is wanted.
        reporter: is told how far the work is; whatever ends the work is its last report.

    Returns: results of the trials that could be run, in their order.
    """
    results: dict[Trial, TrialResult] = {}
    failed: set[Trial] = set()
    try:
        for stage in [each for each in STAGES if each in stages]:
            for trial in table:
                reporter.begin(name_of(trial))
                if trial not in failed:
                    try:
                        result, was_kept = trials.run(trial, (stage,), reporter.tell)
                    except AnalysisError as error:
                        failed.add(trial)
                        reporter.failed(name_of(trial), str(error))
                    else:
                        results[trial] = result
                reporter.done(was_kept=trial in failed or was_kept)
    except (Stopped, KeyboardInterrupt):
        reporter.end("stopped")
    except BaseException as error:
        reporter.end("failed", f"{type(error).__name__}: {error}")
        raise
    else:
        reporter.end("finished")
    return [results[trial] for trial in table if trial in results]
