"""How a checkpoint writes a text on."""

import math
from dataclasses import dataclass
from typing import Annotated, Final

from attention_sieve.core.errors import AnalysisError

MOST_TOKENS: Final = 1_000
"""Maximum number of tokens that are written in one go."""
HOTTEST: Final = 5.0
"""Maximum temperature: beyond it, all tokens are about equally likely."""


@dataclass(frozen=True)
class WritingSettings:
    """Settings of writing.

    Raises: AnalysisError for numbers out of their range.
    """

    tokens: Annotated[int, "number of tokens to write; fewer where the model ends the text"] = 20
    temperature: Annotated[
        float, "0 always takes the likeliest token, 1 draws by the model's own probabilities, more evens them out"
    ] = 0.0
    seed: Annotated[int, "random seed of the draws, for a temperature above 0"] = 0

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MOST_TOKENS:
            raise AnalysisError(f"tokens is {self.tokens:,}. Choose a whole number from 1 to {MOST_TOKENS:,}.")
        if not (math.isfinite(self.temperature) and 0 <= self.temperature <= HOTTEST):
            raise AnalysisError(f"temperature is {self.temperature}. Choose a number from 0 to {HOTTEST:g}.")
        if self.seed < 0:
            raise AnalysisError(f"seed is {self.seed:,}. Choose a whole number from 0.")
