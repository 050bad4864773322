"""Names of the two scales of scores, for figures, tables and sentences."""

from dataclasses import dataclass
from typing import Final

from attention_sieve.core.roles.measures import Scale

HIGHEST_TAU: Final[dict[Scale, float]] = {"score": 10.0, "share": 1.0}
"""Largest tau that can be chosen."""


@dataclass(frozen=True)
class ScaleWords:
    """Names of scores on a scale."""

    short: str
    """Short name, for use near the name of the scale."""
    rest: str
    """Rest of the full name."""
    unit: str
    """Unit of a score; "" for none."""

    @property
    def noun(self) -> str:
        return self.short + self.rest

    @property
    def nouns(self) -> str:
        return f"{self.short}s{self.rest}"

    def title(self, before: str = "", after: str = "") -> str:
        """Title of an axis or column, such as "mean score (× uniform)"."""
        return f"{before}{self.noun}{after}" + (f" ({self.unit})" if self.unit else "")


WORDS: Final[dict[Scale, ScaleWords]] = {
    "score": ScaleWords("score", "", "× uniform"),
    "share": ScaleWords("share", " above chance", ""),
}
