"""How to fine-tune: the settings of a run."""

from dataclasses import dataclass
from math import ceil, isfinite
from typing import Annotated, Final

from attention_sieve.core.errors import AnalysisError

WARM_UP: Final = 0.1
"""Share of the steps with increasing learning rate (warm-up); it then decreases to 0."""
WEIGHT_DECAY: Final = 0.01
LEAST_STEPS: Final = 100
"""Minimum number of steps of a run on few texts; the number of epochs is raised to reach it."""
LEAST_HELD_OUT: Final = 60
"""Number of texts held out if there are few, so that the result can be distinguished from chance."""
MOST_HELD_OUT: Final = 0.3
"""Maximum share held out if there are few texts."""
FEW_BATCH_SIZE: Final = 8
"""Batch size where 3 epochs of larger batches would be too few steps."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to fine-tune.

    Raises: AnalysisError for a number out of range.
    """

    epochs: Annotated[float, "number of times that every text is seen"] = 3.0
    learning_rate: Annotated[float, "largest step size of the weights; 2e-5 to 1e-4 suits most checkpoints"] = 5e-5
    batch_size: Annotated[int, "texts per step, whose mean gradient updates the weights"] = 16
    max_length: Annotated[int, "tokens of a text at most; longer texts are cut, and short ones train faster"] = 128
    """The number of texts that are cut is reported."""
    seed: Annotated[
        int, "random seed of the order of the texts, the validation split, and a new classifier or the noise of gates"
    ] = 0
    save_steps: Annotated[
        int | None, "steps between two saved checkpoints, each of full size; only the last is saved if it is not given"
    ] = None
    held_out: Annotated[
        float, "share of the texts that is not trained on, to measure on; a small one gives wide intervals"
    ] = 0.1
    """Validation split."""

    def __post_init__(self) -> None:
        _check("number of epochs", self.epochs, 0 < self.epochs <= 1000, "a number above 0, up to 1,000")
        _check("learning rate", self.learning_rate, 0 < self.learning_rate <= 1, "a number above 0, up to 1")
        _check("batch size", self.batch_size, 1 <= self.batch_size <= 4096, "1 to 4,096 texts")
        _check("maximum length", self.max_length, 4 <= self.max_length <= 1 << 20, "4 to 1,048,576 tokens")
        _check("seed", self.seed, 0 <= self.seed < 1 << 32, "a whole number from 0 to 4,294,967,295")
        if self.save_steps is not None:
            _check("number of steps between two checkpoints", self.save_steps, self.save_steps >= 1, "1 or more")
        _check("validation split", self.held_out, 0 < self.held_out < 1, "a share between 0 and 1, such as 0.1")


def default_settings(n_texts: int) -> TrainingSettings:
    """Settings for a table of this many labelled texts, unless the user gives others.

    Three epochs of 100 texts are 18 steps, in which a checkpoint hardly learns anything. So if there are few texts, a
    larger share is held out, batches are smaller, and there are as many epochs as LEAST_STEPS steps take.

    Source: Mosbach, Andriushchenko and Klakow 2021, On the Stability of Fine-tuning BERT, and Zhang et al. 2021,
    Revisiting Few-sample BERT Fine-tuning: on small data sets, three epochs are too few.
    """
    usual = TrainingSettings()
    held_out = round(min(max(usual.held_out, LEAST_HELD_OUT / n_texts), MOST_HELD_OUT), 2)
    n_training = n_texts * (1 - held_out)
    if usual.epochs * n_training / usual.batch_size >= LEAST_STEPS:
        return usual
    epochs = max(usual.epochs, ceil(LEAST_STEPS * FEW_BATCH_SIZE / n_training))
    return TrainingSettings(epochs=float(epochs), batch_size=FEW_BATCH_SIZE, held_out=held_out)


def _check(quantity: str, value: int | float, is_right: bool, expected: str) -> None:
    if not (is_right and isfinite(value)):
        raise AnalysisError(f"The {quantity} is {value:,}. Give {expected}.")
