"""How large the differences between two checkpoints are, before whether they are significant: with many texts, a test
finds differences that matter to nobody, such as those of a checkpoint that is rounded to eight bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.roles import role_title

LEAST_DIFFERENCE: Final[dict[Scale, float]] = {"score": 0.1, "share": 0.02}
"""Usual least difference of two means by scale: a tenth of uniform attention, or two points of the share above
chance."""
HELP: Final = (
    "least difference of two means that counts as large; default: "
    f"{LEAST_DIFFERENCE['score']:g}, of shares {LEAST_DIFFERENCE['share']:g}"
)


@dataclass(frozen=True, kw_only=True)
class DifferenceSizes:
    """Sizes of the differences of mean scores over roles and heads."""

    n: int
    """Differences of scores of at least one text."""
    largest: float
    """The one furthest from 0, with its sign; NaN if there is none."""
    role: str
    head: Head
    """Of the largest."""
    least: float
    n_large: int
    """Differences of at least `least`, up or down."""
    n_tested: int
    """Differences of scores of at least two texts."""
    n_significant: int
    n_both: int
    """Significant ones of at least `least`."""

    @property
    def effect(self) -> str:
        """The sizes alone; a full stop has to follow."""
        if not self.n:
            return "No role has scores under both"
        least = f"{self.least:g}"
        if not self.largest:
            return f"All {self.n:,} mean scores are the same"
        return (
            f"Of {self.n:,} mean scores, {self.n_large:,} ({self.n_large / self.n:.1%}) differ by {least} or more; the "
            f"largest difference is {self.largest:+.2g} ({head_name(*self.head)}, {role_title(self.role)})"
        )

    @property
    def sentence(self) -> str:
        """The sizes, then how many differences are significant; a full stop has to follow."""
        if not self.n or not self.largest:
            return self.effect
        large = f", {self.n_both or 'none'} of these by {self.least:g} or more" if self.n_significant else ""
        return f"{self.effect}. {self.n_significant:,} of {self.n_tested:,} differ significantly{large}"


def is_large(tests: PairedTests, least: float) -> Bool[np.ndarray, "role layer head"]:
    """Whether mean scores differ by at least so much.

    Raises: AnalysisError for a least difference below 0.
    """
    if not 0 <= least < np.inf:
        raise AnalysisError(f"The least difference is {least}. Choose a number of 0 or more, for example 0.1.")
    return np.abs(tests.difference) >= least


def difference_sizes(tests: PairedTests, least: float, roles: Sequence[str] | None = None) -> DifferenceSizes:
    """Sizes of the differences of some roles, or of all.

    Raises: AnalysisError as `is_large`.
    """
    indices = [tests.roles.index(role) for role in (tests.roles if roles is None else roles)]
    large, difference, differs = is_large(tests, least)[indices], tests.difference[indices], tests.differs[indices]
    size = np.nan_to_num(np.abs(difference), nan=-1)
    place = np.unravel_index(size.argmax(), size.shape) if size.size else (0, 0, 0)
    role, layer, head = map(int, place)
    return DifferenceSizes(
        n=int((size >= 0).sum()),
        largest=float(difference[role, layer, head]) if size.size else float("nan"),
        role=tests.roles[indices[role]] if indices else "",
        head=(layer, head),
        least=least,
        n_large=int(large.sum()),
        n_tested=int((tests.texts[indices] >= 2).sum()),
        n_significant=int(differs.sum()),
        n_both=int((large & differs).sum()),
    )
