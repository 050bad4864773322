"""Gates over the course of a run: one line per report in a small file in the run's folder. Does not import torch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from core.attention.settings import Head
from core.finetuning.journal import saving_in
from core.json_values import parse_json

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
    line = json.dumps({"step": step, "log_alpha": log_alpha.tolist()}) + "\n"
    with saving_in(folder), (folder / HISTORY).open("a", encoding="utf-8") as file:
        file.write(line)


def read_history(folder: Path, removed: Sequence[Head] = ()) -> GateHistory | None:
    """The gates of a run so far; None before its first step.

    Truncated or damaged lines are ignored. Steps that are repeated after a run resumes from its last saved step count
    once.

    Args:
        folder: of the run.
        removed: heads that were removed from the checkpoint before training.
    """
    path = folder / HISTORY
    by_step: dict[int, np.ndarray] = {}
    shape = None
    for line in path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else ():
        parsed = _read_line(line)
        if parsed is None or (shape is not None and parsed[1].shape != shape):
            continue
        shape, step = parsed[1].shape, parsed[0]
        by_step = {earlier: gates for earlier, gates in by_step.items() if earlier < step} | {step: parsed[1]}
    if not by_step:
        return None
    log_alpha = np.array(list(by_step.values()))
    for layer, head in removed:
        log_alpha[:, layer, head] = np.nan
    return GateHistory(steps=tuple(by_step), log_alpha=log_alpha)


def _read_line(line: str) -> tuple[int, np.ndarray] | None:
    """Step and gates of a line; None if it is damaged."""
    try:
        values = parse_json(line)
        step, log_alpha = values["step"], np.array(values["log_alpha"], float)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return (step, log_alpha) if isinstance(step, int) and log_alpha.ndim == 2 else None
