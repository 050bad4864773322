"""Data of the page Knowledge: the results of each checkpoint on each task, and what is derived from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.checkpoints.folders import trials_folder
from attention_sieve.core.command_lines import command_line
from attention_sieve.core.knowledge.report import TaskReport
from attention_sieve.core.knowledge.trials.result import STAGES, TrialResult
from attention_sieve.core.knowledge.trials.trial import Trial, lines_of, row_path
from attention_sieve.core.knowledge.vectors import Pooling
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard.figures.knowledge.words import Scores
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import reads
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.knowledge.task_files import TaskFile
from attention_sieve.dashboard.views.probed import baseline_scores, beat_all, kept_result
from attention_sieve.dashboard.views.training.folders import SHA_CHARACTERS

SEED_OF_WEIGHTS: Final = 0


@dataclass(frozen=True, kw_only=True)
class Subject:
    name: str
    """Name in a trial."""
    label: str
    """Name on the page."""
    files: CheckpointFiles
    dtype: str
    random_weights: int | None = None
    """Seed, if the weights are randomly initialised."""


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """How the vectors of heads are read from texts."""

    pooling: Pooling | None
    too_long: TooLong


@dataclass(frozen=True, eq=False, kw_only=True)
class Probing:
    """What the views of the page share."""

    visit: Visit
    settings: VectorSettings
    tasks: tuple[TaskFile, ...]
    subjects: tuple[Subject, ...]
    """The chosen checkpoint first."""
    results: Mapping[tuple[str, str], TrialResult]
    """Results so far, by the label of the checkpoint and the digest of the task."""
    task: TaskFile
    shown: TrialResult
    """Result of the chosen checkpoint on the shown task."""
    heads: list[Head]

    def of(self, subject: Subject, task: TaskFile) -> TrialResult | None:
        return self.results.get((subject.label, task.digest))

    @property
    def random_twin(self) -> TrialResult | None:
        twin = next((subject for subject in self.subjects if subject.random_weights is not None), None)
        return None if twin is None else self.of(twin, self.task)

    @property
    def scores(self) -> list[Scores]:
        """Scores of the heads of each probed checkpoint on the shown task; the chosen checkpoint first."""
        return [
            Scores(
                label=subject.label,
                heads=result.report.grid(result.report.accuracy),
                beats=None if result.report.is_regression else result.report.grid(self._beats(subject)) > 0,
            )
            for subject in self.subjects
            if (result := self.of(subject, self.task)) is not None
        ]

    @cached_property
    def known(self) -> dict[str, TrialResult]:
        return self._known(self.subjects[0])

    def _known(self, subject: Subject) -> dict[str, TrialResult]:
        by_task = {task.name: self.of(subject, task) for task in self.tasks}
        return {name: result for name, result in by_task.items() if result is not None}

    @cached_property
    def beats(self) -> Bool[np.ndarray, " place"]:
        """Heads that beat every baseline on the shown task, corrected over the heads and all probed tasks."""
        return self._beats(self.subjects[0])

    def _beats(self, subject: Subject) -> Bool[np.ndarray, " place"]:
        known, criterion = self._known(subject), self.visit.choice.criterion
        reports = [result.report for result in known.values()]
        return beat_all(reports, criterion.correction, criterion.alpha)[list(known).index(self.task.name)]

    @cached_property
    def facts(self) -> dict[str, str]:
        choice = self.visit.choice
        return {
            **provenance.engine_facts(choice, self.visit.engine),
            "task": self.task.name,
            "task from": self.task.source,
            "examples": ", ".join(map(str, self.task.n_rows)),
            "vectors at": self.shown.pooling,
            "seed": str(self.shown.trial.seed),
            "alpha": f"{choice.criterion.alpha:g}",
            "correction": choice.criterion.correction,
            "command": self._command,
        }

    @property
    def _command(self) -> str:
        """The line that computes all results so far; the archive has its table, and the files of the tasks."""
        stages = {stage for result in self.results.values() for stage in result.stages}
        lines = lines_of(
            replace(trial_of(subject, task, self.settings, self.visit), data=kept_task(task))
            for subject in self.subjects
            for task in self.tasks
            if self.of(subject, task) is not None
        )
        written = {
            "table": reads("trials.jsonl", lambda: "\n".join([*lines, ""]).encode()),
            "stages": None if stages == set(STAGES) else ",".join(stage for stage in STAGES if stage in stages),
            "dtype": None if (dtype := self.visit.engine.dtype) == "float32" else dtype,
            "output": "trials",
        }
        return command_line(["trials", *(f"--{name}={value}" for name, value in written.items() if value is not None)])


def kept_task(task: TaskFile) -> str:
    """Keep the file of a task, which a command reads, for the archive; returns its name there."""
    return reads(f"{task.digest[:SHA_CHARACTERS]}-{task.path.name}", task.path.read_bytes)


def subject_of(engine: Engine, label: str, random_weights: int | None = None) -> Subject:
    files = engine.files if random_weights is None else randomly_initialised(engine.files, random_weights)
    return Subject(name=engine.files.name, label=label, files=files, dtype=engine.dtype, random_weights=random_weights)


def trial_of(subject: Subject, task: TaskFile, settings: VectorSettings, visit: Visit) -> Trial:
    kinds = subject.files.kinds
    return replace(
        task.trial(subject.name),
        pooling=settings.pooling,
        attention=visit.settings.kind if len(kinds) > 1 and visit.settings.kind in kinds else None,
        random_weights=subject.random_weights,
        too_long=settings.too_long,
    )


def known_result(subject: Subject, task: TaskFile, settings: VectorSettings, visit: Visit) -> TrialResult | None:
    trial = trial_of(subject, task, settings, visit)
    return kept_result(row_path(trials_folder(), trial, subject.files, task.digest, subject.dtype))


def tasks_with_findings(tasks: Sequence[TaskFile], settings: VectorSettings, visit: Visit) -> set[str]:
    """Names of the tasks on which a head of the chosen checkpoint beats every baseline, as far as they are probed."""
    subject = subject_of(visit.engine, visit.engine.files.name)
    results = {task.name: known_result(subject, task, settings, visit) for task in tasks}
    reports = {name: result.report for name, result in results.items() if result is not None}
    criterion = visit.choice.criterion
    beats = beat_all([*reports.values()], criterion.correction, criterion.alpha)
    return {name for (name, report), marked in zip(reports.items(), beats) if (marked & report.is_head).any()}


def above_baselines(report: TaskReport) -> Float[np.ndarray, "layer head"]:
    """How far each head is above the best baseline; a correlation as it is."""
    floor = 0.0 if report.is_regression else max(baseline_scores(report).values())
    return report.grid(report.accuracy - floor)
