"""Gates over the course of a run: one line per report in a small file in the run's folder. Does not import torch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.saved_runs import is_count
from attention_sieve.core.finetuning.journal import append_line, saving_in
from attention_sieve.core.json_values import json_lines

HISTORY: Final = "gates.jsonl"


@dataclass(frozen=True, eq=False, kw_only=True)
class GateHistory:
    """Gates of all heads at some of the steps of a run."""

    steps: tuple[int, ...]
    """Ascending; the first is 0, before training."""
    log_alpha: Float[np.ndarray, "step layer head"]
    """Parameter of each gate; NaN for a head that was removed from the checkpoint."""


def append_gates(folder: Path, step: int, log_alpha: Float[np.ndarray, "layer head"]) -> None:
    """Append the gates after a step.

    Raises: AnalysisError if the folder cannot be written.
    """
    with saving_in(folder):
        append_line(folder / HISTORY, json.dumps({"step": step, "log_alpha": log_alpha.tolist()}))


def read_history(folder: Path, removed: Sequence[Head] = ()) -> GateHistory | None:
    """The gates of a run so far; None before its first step, and for gates of other heads than the removed ones.

    Truncated or damaged lines are ignored. Steps that are repeated after a run resumes from its last saved step count
    once.

    Args:
        folder: of the run.
        removed: heads that were removed from the checkpoint before training.
    """
    steps: list[int] = []
    gates: list[np.ndarray] = []
    for line in json_lines(folder / HISTORY):
        report = _report(line)
        if report is None or (gates and report[1].shape != gates[0].shape):
            continue
        while steps and steps[-1] >= report[0]:
            steps.pop()
            gates.pop()
        steps.append(report[0])
        gates.append(report[1])
    if not gates or not all(layer < gates[0].shape[0] and head < gates[0].shape[1] for layer, head in removed):
        return None
    log_alpha = np.array(gates)
    for layer, head in removed:
        log_alpha[:, layer, head] = np.nan
    return GateHistory(steps=tuple(steps), log_alpha=log_alpha)


def _report(line: Any) -> tuple[int, np.ndarray] | None:
    """Step and gates of a line; None if it holds others."""
    try:
        step, log_alpha = line["step"], np.array(line["log_alpha"], float)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    is_sound = is_count(step) and log_alpha.ndim == 2 and log_alpha.size > 0 and np.isfinite(log_alpha).all()
    return (step, log_alpha) if is_sound else None
