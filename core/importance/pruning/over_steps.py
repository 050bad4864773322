"""Pruning curves of each saved step of a fine-tuning run. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from core.attention.settings import head_names
from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.checks.files import checked_config
from core.checkpoints.folders import checkpoints_folder
from core.checkpoints.saved_runs import SavedRun
from core.errors import AnalysisError
from core.finetuning.journal import read_record
from core.importance.pruning.curves import Curve, curves_table, relative
from core.passes.metric import Metric

RELATIVE_COLUMNS: Final = ("relative", "relative_low", "relative_high")


@dataclass(frozen=True)
class SavedStep:
    """A checkpoint along a run."""

    step: int
    """Of training; 0 for the checkpoint that the run began from."""
    checkpoint: str
    """The name that finds it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepCurve:
    """A pruning curve of one saved step."""

    step: int
    """Of training, as of SavedStep."""
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
        raise AnalysisError(f"No step of the run {run.name} is saved. Go on with the run, or choose another.")
    found_by_name = run.folder.parent == checkpoints_folder().resolve()
    before = run.name if found_by_name else str(run.folder)
    return tuple(SavedStep(step, f"{before}/checkpoint-{step}") for step in run.progress.saved)


def beginning(run: SavedRun) -> SavedStep:
    """Step 0 of a run: the checkpoint that it began from, which may be gone by now."""
    return SavedStep(0, run.progress.checkpoint)


def check_beginning(run: SavedRun, files: CheckpointFiles) -> None:
    """Refuse as step 0 what is not the checkpoint that the run began from any more.

    Raises: AnalysisError.
    """
    if files.fingerprint != read_record(run.folder).get("fingerprint"):
        raise AnalysisError(f"{files.name} has other files now than when the run {run.name} began from it.")


def check_alike(one: CheckpointFiles, other: CheckpointFiles, metric: Metric) -> None:
    """Refuse to set curves of two checkpoints side by side that have other heads, or other classes.

    Raises: AnalysisError.
    """
    if _heads(one) != _heads(other):
        raise AnalysisError(
            f"{one.name} has {_heads(one)}, but {other.name} has {_heads(other)}, so a share of them is not the same "
            "heads. Choose a run whose steps have the same heads."
        )
    if metric == "labels" and _classes(one) != _classes(other):
        raise AnalysisError(
            f"{one.name} and {other.name} do not know the same classes, so they have no score in common. The saved "
            "steps of one run do: choose one of these."
        )


def _heads(files: CheckpointFiles) -> str:
    """All heads of a checkpoint, in words."""
    stacks = [(files.n_layers, files.n_heads), *([files.decoder] if len(files.kinds) > 1 else [])]
    said = " and ".join(f"{n_layers} layers x {n_heads} heads" for n_layers, n_heads in stacks)
    gone = "; ".join(f"{kind}: {head_names(sorted(heads))}" for kind, heads in files.removed)
    return f"{said}, without {gone}" if gone else said


def _classes(files: CheckpointFiles) -> object:
    return checked_config(files.name, files.folder).get("id2label")


def step_curves_table(curves: Sequence[StepCurve], n_heads: int) -> pd.DataFrame:
    """One row a saved step, order, draw and number of heads removed: a column step, and RELATIVE_COLUMNS at the end.

    Args:
        curves: one or more.
        n_heads: that are there.
    """
    parts = []
    for each in curves:
        rows, shares = curves_table([each.curve], n_heads), relative(each.curve)
        rows.insert(0, "step", each.step)
        parts.append(rows.assign(**dict(zip(RELATIVE_COLUMNS, (shares.value, shares.low, shares.high)))))
    return pd.concat(parts, ignore_index=True)
