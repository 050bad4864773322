"""Whether a run has demonstrably learned more than to give the same answer for every text."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.running import Progress
from attention_sieve.core.statistics.means import correlation_interval, wilson

ALPHA: Final = 0.05
"""The interval of a result covers 1 - ALPHA."""
NOT_ABOVE: Final = "which is not significantly above chance"


@dataclass(frozen=True)
class AgainstChance:
    """A result on the validation texts, compared with giving the same answer for all of them."""

    step: int
    n_texts: int
    value: float | None
    """Share of the texts classified correctly, or, for a regression, Pearson's r; None where it is not defined."""
    interval: tuple[float, float]
    """Wilson's of the share, or Fisher's of r: -1 to 1 where that is not defined."""
    chance: float
    """Share of the most frequent class, or 0 for a regression."""
    is_share: bool
    """Whether the value is a share and not a correlation."""

    @property
    def is_above(self) -> bool:
        """Whether the whole interval is above chance."""
        return self.interval[0] > self.chance

    @property
    def in_words(self) -> str:
        """The text in parentheses after the value."""
        interval = (
            "" if self.value is None else f"{1 - ALPHA:.0%} interval {self.interval[0]:.3f} to {self.interval[1]:.3f}, "
        )
        chance = f"the most frequent class alone: {self.chance:.3f}" if self.is_share else f"chance: {self.chance:g}"
        texts = "1 text" if self.n_texts == 1 else f"{self.n_texts:,} texts"
        return f"{interval}{texts}; {chance}"


def against_chance(progress: Progress, step: int | None = None) -> AgainstChance | None:
    """The last result of a run, compared with chance.

    Args:
        progress: of the run.
        step: the last result up to this step counts; None for that of the last step.

    Returns: None if nothing was measured by then, and for a run of a version that did not record its validation texts.
    """
    reports = [report for report in progress.held_out if step is None or report.step <= step]
    validation = progress.validation
    if not reports or validation is None or not validation.n_texts:
        return None
    last, n_texts = reports[-1], validation.n_texts
    if validation.majority is not None and last.accuracy is not None:
        low, high = wilson(np.int64(round(last.accuracy * n_texts)), n_texts, ALPHA)
        interval = float(low), float(high)
        return AgainstChance(last.step, n_texts, last.accuracy, interval, validation.majority, True)
    r = last.correlation
    interval = (-1.0, 1.0) if r is None else correlation_interval(r, n_texts, ALPHA)
    return AgainstChance(last.step, n_texts, r, interval, 0.0, False)
