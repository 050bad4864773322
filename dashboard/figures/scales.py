"""The two scales of scores, as figures, tables and sentences name them."""

from dataclasses import dataclass
from typing import Final

from core.roles.measures import Scale

HIGHEST_TAU: Final[dict[Scale, float]] = {"score": 10.0, "share": 1.0}
"""To which a reader can move tau."""


@dataclass(frozen=True)
class ScaleWords:
    """What scores on a scale are called."""

    short: str
    """Where the scale itself is named nearby."""
    rest: str
    """Completes the name."""
    unit: str
    """What a number of them is a multiple of; "" for none."""

    @property
    def noun(self) -> str:
        """One of them."""
        return self.short + self.rest

    @property
    def nouns(self) -> str:
        """Several."""
        return f"{self.short}s{self.rest}"

    def title(self, before: str = "", after: str = "") -> str:
        """What an axis or a column shows, such as "mean score (× uniform)"."""
        return f"{before}{self.noun}{after}" + (f" ({self.unit})" if self.unit else "")


WORDS: Final[dict[Scale, ScaleWords]] = {
    "score": ScaleWords("score", "", "× uniform"),
    "share": ScaleWords("share", " above chance", ""),
}
