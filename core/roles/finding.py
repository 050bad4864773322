"""What the scores of texts say of the roles of heads."""

from dataclasses import dataclass, field

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.measures import RoleScores, ScoreSettings
from attention_sieve.core.roles.uncertainty.anytime import role_evidence, tests_of_evidence
from attention_sieve.core.statistics.means import moments


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
    tests: HeadTests
    bets: RoleScores | None = None
    """Where evidence decides: scores of the texts that it counts, each once, in order of appearance."""


def role_finding(scored: RoleScores, criterion: Criterion, bets: RoleScores | None = None) -> RoleFinding:
    """Which heads hold which roles by the scores of texts: by a test, or where there are bets by evidence.

    Args:
        scored: of the texts whose mean is shown.
        criterion: of the test, or tau, alpha, correction and rule of evidence.
        bets: of the texts that were bet on, which may be more: a bet stays when its text is taken out.

    Raises: AnalysisError for a negative score that is bet on.
    Source: Pande et al. 2021, section 4, for the test.
    """
    if bets is None:
        tests = role_tests(scored.scores, scored.roles, criterion, scored.uniform)
    else:
        evidence = role_evidence(bets.scores, criterion, bets.uniform)
        tests = tests_of_evidence(moments(scored.scores), evidence, scored.roles, criterion)
    return RoleFinding(scored=scored, tests=tests, bets=bets)
