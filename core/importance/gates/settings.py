"""Settings of gates, and gates during and after training: a small file in the folder of a run. Imports no torch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, Kind
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.json_values import json_lines
from attention_sieve.core.running import append_line, is_count, saving_in

TEMPERATURE: Final = 0.33
STRETCH: Final = (-0.1, 1.1)
"""Parameters of the hard concrete distribution, as in the code of Voita et al. 2019."""
HISTORY: Final = "gates.jsonl"


@dataclass(frozen=True)
class GateSettings(TrainingSettings):
    """Training settings of gates.

    Raises: AnalysisError for a number out of range.
    """

    penalty: float = 0.02
    """Weight of the expected number of open gates in the loss: lambda in the paper, where it multiplies the sum over
    all heads; in the authors' code it multiplies the mean over layers of each layer's sum."""
    learning_rate: Annotated[float, "largest step size of the weights, where they are trained, too"] = 5e-5
    gate_rate: Annotated[float, "largest step size of the gates, which need about 50 steps to close"] = 0.1
    start: Annotated[float, "initial value of log alpha for every gate; higher means more open"] = 2.0
    """At 2, a gate is open with a probability of 0.94. The authors draw it around 0, where trained heads begin half
    closed."""
    with_weights: Annotated[bool, "train the weights of the model as well, as in the paper"] = False
    kind: Kind = "self"
    """Kind of attention that gets gates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, is_right, expected in (
            ("penalty", self.penalty, 0 <= self.penalty <= 100, "a number from 0 to 100"),
            ("learning rate of the gates", self.gate_rate, 0 < self.gate_rate <= 10, "a number above 0, up to 10"),
            ("start of the gates", self.start, -10 <= self.start <= 10, "a number from -10 to 10"),
        ):
            if not is_right:
                raise AnalysisError(f"The {name} is {value:,}. Give {expected}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedGates:
    """Gates after training."""

    log_alpha: Float[np.ndarray, "layer head"]
    """Parameter of each gate; NaN for a head that was removed from the checkpoint."""
    p_zero: Float[np.ndarray, "layer head"]
    """Probability that a gate is exactly 0."""
    p_one: Float[np.ndarray, "layer head"]
    """Probability that a gate is exactly 1."""
    gate: Float[np.ndarray, "layer head"]
    """The gate without noise, 0 to 1, as used after training."""

    @property
    def n_open(self) -> int:
        """Number of heads whose gate without noise is above 0."""
        return int((self.gate > 0).sum())


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
    once. Heads in `removed` were removed from the checkpoint before training.
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
