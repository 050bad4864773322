"""Settings of the analysis of relations; by default as in the papers."""

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.statistics.means import check_alpha
from attention_sieve.core.texts.tokens import FromWord

Direction = Literal["dependent-to-head", "head-to-dependent"]
DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""dependent-to-head: the word that a dependent attends to most is its head (A). head-to-dependent: the word that
attends most to a dependent is its head (A transposed)."""
Reading = Literal["column", "row"]
"""How head-to-dependent is read: as DIRECTIONS says (Clark's code), or: the word that a head attends to most is its
dependent (Voita); a head with several dependents can get at most one of them right."""
Margin = Literal["points", "relative"]
VOITA_MARGIN: Final = 0.1
"""Margin by which a head must beat the baseline in Voita's rule, as a share."""
USUAL_CASES: Final = 100
"""Minimum cases of a relation in the table of Clark et al."""
OFFSETS: Final = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Offsets in words from a dependent to its predicted head. A wider range than the authors', so the baseline is at least
as strong."""
FARTHEST: Final = 100
"""Largest offset of the baseline, in words."""


@dataclass(frozen=True, kw_only=True)
class RelationSettings:
    """How predictions are read, evaluated and selected.

    Raises: AnalysisError for a number out of its range.
    """

    least_cases: Annotated[int | None, "leave out relations with fewer cases than this"] = USUAL_CASES
    """None for USUAL_CASES, or fewer where few relations have as many."""
    alpha: Annotated[float, "significance level of tests; confidence intervals cover 1 - alpha"] = 0.05
    by: Annotated[float, "margin by which the accuracy must exceed the baseline for beats_baseline, as a share"] = (
        VOITA_MARGIN
    )
    margin: Annotated[
        Margin, "whether that margin is added to the baseline (points) or is a share of the baseline (relative)"
    ] = "points"
    reading: Annotated[
        Reading,
        "how head-to-dependent is read: the word that attends most to the dependent is predicted as its head (column, "
        "as in Clark et al.), or the word that the head attends to most is predicted as its dependent (row, as in "
        "Voita et al.)",
    ] = "column"
    from_word: Annotated[
        FromWord, "attention from a word of several tokens: mean over its tokens, or that of the first"
    ] = "mean"
    at_clitic: Annotated[
        bool, "read the prediction for a possessor at the 's that follows it, as the authors' code does"
    ] = False
    every_word: Annotated[bool, "include punctuation and roots in the relation all"] = False
    """Attention heads are always wrong for a root; an offset is right if it points before the first word."""
    offsets: Annotated[
        tuple[int, int],
        f"range of offsets, in words, among which the baseline is chosen, from the first to the second; {-FARTHEST} "
        f"{FARTHEST} in place of the default where a file marks pairs",
    ] = (OFFSETS[0], OFFSETS[-1])

    def __post_init__(self) -> None:
        first, last = self.offsets
        check_alpha(self.alpha)
        if not 0 <= self.by < math.inf:
            raise AnalysisError(f"by is {self.by}. Choose a share of 0 or more, for example 0.1.")
        if not -FARTHEST <= first <= last <= FARTHEST or first == last == 0:
            raise AnalysisError(
                f"The offsets {first} to {last} are not a range. Choose two numbers between -{FARTHEST} and "
                f"{FARTHEST}, the smaller first, such as {OFFSETS[0]} {OFFSETS[-1]}; 0 is left out, since no word is "
                "its own head."
            )

    @property
    def candidates(self) -> tuple[int, ...]:
        """Offsets among which the baseline is chosen."""
        first, last = self.offsets
        return tuple(offset for offset in range(first, last + 1) if offset)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {
            "from word": self.from_word,
            "reading": self.reading,
            "read at clitic": "yes" if self.at_clitic else "no",
            "all counts": "every word" if self.every_word else "all but punct and root",
            "offsets": "{} to {}".format(*self.offsets),
            "alpha": str(self.alpha),
            "beats baseline by": f"{self.by} ({self.margin})",
        }


AS_IN_PAPER: Final = RelationSettings()
AS_IN_CODE: Final = RelationSettings(from_word="first", at_clitic=True, every_word=True, offsets=(-3, 2))
"""As in Clark's code, which also tries the offset 0, the word itself, which is never right."""
