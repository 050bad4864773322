"""What the scores of texts say of the roles of heads."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.measures import RoleScores, ScoreSettings
from attention_sieve.core.roles.uncertainty.anytime import role_evidence, tests_of_evidence
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.texts.equal import different_rows, equal_texts


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

    @property
    def counted(self) -> RoleScores:
        """Scores of the texts that differ, over which tests and intervals are."""
        return self.scored.of_texts(different_rows(self.numbers))

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
    counted = scored.of_texts(different_rows(numbers))
    if bets is None:
        tests = role_tests(counted.scores, counted.roles, criterion, counted.uniform)
    else:
        evidence = role_evidence(bets.scores, criterion, bets.uniform)
        tests = tests_of_evidence(moments(counted.scores), evidence, scored.roles, criterion)
    return RoleFinding(scored=scored, numbers=numbers, tests=tests, bets=bets)
