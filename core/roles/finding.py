"""What the scores of texts say of the roles of heads."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.measures import RoleScores, ScoreSettings
from attention_sieve.core.roles.uncertainty.anytime import role_evidence, tests_of_evidence
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.texts.equal import different_rows, equal_texts

FIRST_TOKEN: Final = "sink"
"""The role whose keys are the first token."""


@dataclass(frozen=True)
class RoleSettings:
    """What is scored, and when a head holds a role."""

    scores: ScoreSettings = field(default_factory=ScoreSettings)
    criterion: Criterion = field(default_factory=Criterion)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return self.scores.facts | self.criterion.facts


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleFinding:
    """Which heads hold which roles over some texts."""

    scored: RoleScores
    numbers: Int[np.ndarray, " text"]
    """Of the texts, as of `text_numbers`: equal ones count once."""
    tests: HeadTests
    bets: RoleScores | None = None
    """Where evidence decides: scores of the texts that it counts, each once, in order of appearance."""
    rests_on_first: Bool[np.ndarray, "role layer head"] | None = None
    """Of a decoder: which heads hold a role no more when the first token, at which many heads look in any text, is left
    out of its keys and of what chance gives; not the role of the first token itself. None where it is not known."""

    @property
    def counted(self) -> RoleScores:
        """Scores of the texts that differ, over which tests and intervals are."""
        return self.scored.subset(different_rows(self.numbers))

    @property
    def n_equal(self) -> int:
        """Number of texts that do not count, because they are equal to earlier ones."""
        return len(self.numbers) - len(different_rows(self.numbers))

    @property
    def note(self) -> str | None:
        """The same in a sentence; None where all texts differ."""
        return equal_texts(self.n_equal, len(self.numbers))

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files; nothing where all texts differ."""
        return {"equal texts left out": str(self.n_equal)} if self.n_equal else {}


def role_finding(
    scored: RoleScores,
    criterion: Criterion,
    bets: RoleScores | None = None,
    numbers: Int[np.ndarray, " text"] | None = None,
) -> RoleFinding:
    """Which heads hold which roles by the scores of texts: by a test, or where there are bets by evidence.

    Args:
        scored: of the texts whose mean is shown.
        criterion: of the test, or tau, alpha, correction and rule of evidence.
        bets: of the texts that were bet on, which may be more: a bet stays when its text is taken out.
        numbers: of the texts, as of `text_numbers`; None where all differ.

    Raises: AnalysisError for a negative score that is bet on.
    Source: Pande et al. 2021, section 4, for the test.
    """
    numbers = np.arange(len(scored.scores)) if numbers is None else numbers
    counted = scored.subset(different_rows(numbers))
    tests, rests = _tests(counted, criterion, bets), None
    if counted.after_first is not None and (bets is None or bets.after_first is not None):
        without = _tests(counted.after_first, criterion, bets and bets.after_first)
        is_first = np.array([role == FIRST_TOKEN for role in counted.roles])
        rests = tests.holds & ~without.holds & ~is_first[:, None, None]
    return RoleFinding(scored=scored, numbers=numbers, tests=tests, bets=bets, rests_on_first=rests)


def _tests(counted: RoleScores, criterion: Criterion, bets: RoleScores | None) -> HeadTests:
    if bets is None:
        return role_tests(counted.scores, counted.roles, criterion, counted.uniform)
    evidence = role_evidence(bets.scores, criterion, bets.uniform)
    return tests_of_evidence(moments(counted.scores), evidence, counted.roles, criterion)
