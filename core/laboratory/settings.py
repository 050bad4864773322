"""How a small model is trained, and on what."""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.settings import TrainingSettings

Periods = Literal["drawn", "fixed"]
N_LAYERS, N_HEADS, WIDTH = 2, 4, 64
"""Of the model; the width is that of its residual stream, in channels."""
LENGTH: Final = 64
"""Tokens of a sequence, with the one that begins it."""
DRAWN: Final = (8, 28)
"""Shortest and longest period, where it is drawn for each sequence."""
FIXED: Final = 9
"""Period of all sequences of the control: that of probe texts of this length."""
BATCH: Final = 64
"""Sequences of a step."""
LEARNING_RATE: Final = 4e-3
"""Largest one, after the warm-up; it then falls to 0."""
MOST_STEPS: Final = 5_000
LARGEST_SEED: Final = 2**32 - 1


@dataclass(frozen=True)
class LaboratorySettings:
    """How a small model is trained.

    Raises: AnalysisError for a number out of range.
    """

    periods: Annotated[
        Periods,
        "after how many tokens a sequence repeats: drawn for each sequence, or fixed, the control, for which "
        "looking back a fixed distance is enough",
    ] = "drawn"
    steps: Annotated[int, "number of training steps"] = 300
    save_steps: Annotated[int, "save the model every so many steps"] = 15
    seed: Annotated[int, "random seed of the first weights and of the sequences"] = 0

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("steps", self.steps, 2, MOST_STEPS),
            ("save-steps", self.save_steps, 1, MOST_STEPS),
            ("seed", self.seed, 0, LARGEST_SEED),
        ):
            if not least <= value <= most:
                raise AnalysisError(f"{name} is {value:,}. Choose a whole number from {least:,} to {most:,}.")

    @property
    def training(self) -> TrainingSettings:
        """The same for the training loop: each sequence is seen once."""
        return TrainingSettings(
            epochs=1.0, learning_rate=LEARNING_RATE, batch_size=BATCH, seed=self.seed, save_steps=self.save_steps
        )


@dataclass(frozen=True)
class LaboratoryPlan:
    """Plan of a run, as its folder records it."""

    settings: LaboratorySettings
    checkpoint: str = field(default="", init=False)
    """No checkpoint: a run of the laboratory begins with random weights."""
