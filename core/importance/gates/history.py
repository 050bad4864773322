"""Gates along a run: one line a report in the run's folder, small beside the saved steps. Does not import torch."""

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
    """Gates of all heads after some of the steps of a run."""

    steps: tuple[int, ...]
    """In order, the first 0: before training."""
    log_alpha: Float[np.ndarray, "step layer head"]
    """Parameter of each gate; NaN for a head that was removed from the checkpoint."""


def append_gates(folder: Path, step: int, log_alpha: Float[np.ndarray, "layer head"]) -> None:
    """Add the gates after a step.

    Raises: AnalysisError if the folder cannot be written.
    """
    line = json.dumps({"step": step, "log_alpha": log_alpha.tolist()}) + "\n"
    with saving_in(folder), (folder / HISTORY).open("a", encoding="utf-8") as file:
        file.write(line)


def read_history(folder: Path, removed: Sequence[Head] = ()) -> GateHistory | None:
    """The gates of a run so far; None before its first step.

    A line that broke off, or that somebody spoilt, is ignored. Steps that a run did after its last saved one, and does
    again, count once.

    Args:
        folder: of the run.
        removed: heads that were removed from the checkpoint before.
    """
    path = folder / HISTORY
    found: dict[int, np.ndarray] = {}
    shape = None
    for written in path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else ():
        read = _read_line(written)
        if read is None or (shape is not None and read[1].shape != shape):
            continue
        shape, step = read[1].shape, read[0]
        found = {before: gates for before, gates in found.items() if before < step} | {step: read[1]}
    if not found:
        return None
    log_alpha = np.array(list(found.values()))
    for layer, head in removed:
        log_alpha[:, layer, head] = np.nan
    return GateHistory(steps=tuple(found), log_alpha=log_alpha)


def _read_line(written: str) -> tuple[int, np.ndarray] | None:
    """Step and gates of a line; None where it holds no such thing."""
    try:
        line = parse_json(written)
        step, log_alpha = line["step"], np.array(line["log_alpha"], float)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return (step, log_alpha) if isinstance(step, int) and log_alpha.ndim == 2 else None
