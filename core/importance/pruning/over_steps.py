"""Pruning curves of each saved step of a fine-tuning run. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.checks.files import checked_config
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.journal import read_record
from attention_sieve.core.importance.pruning.curves import Curve, curves_table, relative
from attention_sieve.core.passes.metric import Metric

RELATIVE_COLUMNS: Final = {
    "relative": "score as a share of the score with all heads on; empty if that score is not above 0",
    "relative_low": "lower end of its 95% confidence interval",
    "relative_high": "upper end of this interval",
}
STEP_COLUMNS: Final = {
    "step": "step of training; 0 is the checkpoint that the run started from, if it can be evaluated",
    "fingerprint": "SHA-256 of the files of that step",
    **RELATIVE_COLUMNS,
}


@dataclass(frozen=True)
class SavedStep:
    """A saved step of a run."""

    step: int
    """Of training; 0 for the checkpoint that the run began from."""
    checkpoint: str
    """Name under which the checkpoint is found."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepCurve:
    """A pruning curve of one saved step."""

    step: int
    """Of training, as in SavedStep."""
    curve: Curve


def saved_steps(run: SavedRun) -> tuple[SavedStep, ...]:
    """The saved steps of a run in order, without the checkpoint that it began from.

    Raises: AnalysisError for a run that is in progress, and one without a saved step.
    """
    if run.progress.state == "running":
        raise AnalysisError(
            f"The run {run.name} is in progress, so steps are still missing. Wait for its end, or stop it."
        )
    if not run.progress.saved:
        raise AnalysisError(f"No step of the run {run.name} is saved. Continue the run, or choose another.")
    is_found_by_name = run.folder.parent == checkpoints_folder().resolve()
    prefix = run.name if is_found_by_name else str(run.folder)
    return tuple(SavedStep(step, f"{prefix}/checkpoint-{step}") for step in run.progress.saved)


def check_beginning(run: SavedRun, files: CheckpointFiles) -> None:
    """Raise AnalysisError if the files of step 0 have changed since the run began from them."""
    if files.fingerprint != read_record(run.folder).get("fingerprint"):
        raise AnalysisError(
            f"The files of {files.name} have changed since the run {run.name} started from it. Choose another run."
        )


def check_alike(first: CheckpointFiles, second: CheckpointFiles, metric: Metric) -> None:
    """Raise AnalysisError if two checkpoints have different heads or classes: their curves cannot be compared."""
    if _heads(first) != _heads(second):
        raise AnalysisError(
            f"{first.name} has {_heads(first)}, but {second.name} has {_heads(second)}, so curves over "
            "the share of heads cannot be compared. Choose a run whose steps have the same heads."
        )
    if metric == "labels" and _classes(first) != _classes(second):
        raise AnalysisError(
            f"{first.name} and {second.name} do not have the same classes, so they have no score in common. The saved "
            "steps of one run do: choose one of these."
        )


def _heads(files: CheckpointFiles) -> str:
    """Numbers of layers and heads of a checkpoint, in words."""
    stacks = [(files.n_layers, files.n_heads), *([files.decoder] if len(files.kinds) > 1 else [])]
    sizes = " and ".join(f"{n_layers} layers x {n_heads} heads" for n_layers, n_heads in stacks)
    removed = "; ".join(f"{kind}: {head_names(sorted(heads))}" for kind, heads in files.removed)
    return f"{sizes}, without {removed}" if removed else sizes


def _classes(files: CheckpointFiles) -> object:
    return checked_config(files.name, files.whole.folder).get("id2label")


def step_curves_table(curves: Sequence[StepCurve], n_heads: int) -> pd.DataFrame:
    """One row per saved step, order, draw and number of heads removed: column step first, RELATIVE_COLUMNS last."""
    parts = []
    for step_curve in curves:
        rows, shares = curves_table([step_curve.curve], n_heads), relative(step_curve.curve)
        rows.insert(0, "step", step_curve.step)
        parts.append(rows.assign(**dict(zip(RELATIVE_COLUMNS, (shares.value, shares.low, shares.high)))))
    return pd.concat(parts, ignore_index=True)
