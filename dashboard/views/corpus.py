"""The corpus for the pages: its scores, and the roles of heads by a test or by evidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.answers import Answers, CorpusFinding
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings, role_finding
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, Resamples, resamples, stability
from attention_sieve.core.roles.matched_pairs import MatchedTests, TextMatches, joined_tests, matched_tests
from attention_sieve.core.roles.measures import RoleScores
from attention_sieve.core.roles.question import MATCHED_PAIRS, matched_questions
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.core.texts.equal import different_rows, text_numbers
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import state
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import command, role_options, without_command
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.asking import find, kept, kept_finding, policy
from attention_sieve.dashboard.views.evidence import ledger
from attention_sieve.dashboard.views.frame import Visit

LONG_TEXT: Final = 64
"""Tokens of the median text above which shares are the usual scale."""
Found = CorpusFinding[RoleFinding]
"""By the usual criterion: the scores depend on no other, and pages judge them by the reader's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Scores and tests of the chosen texts."""

    found: Found
    """By the usual criterion."""
    finding: RoleFinding
    """By the reader's."""
    bets_on: tuple[Text, ...] = ()
    """Where evidence decides: the texts that it counts."""

    @property
    def tests(self) -> HeadTests:
        """Which heads hold which roles."""
        return self.finding.tests

    @property
    def scored(self) -> RoleScores:
        """Scores of those of the chosen texts that differ, with their references."""
        return self.finding.counted

    @property
    def bets(self) -> RoleScores | None:
        """Where evidence decides: scores of the texts that it counts."""
        return self.finding.bets

    @property
    def scores(self) -> Float[np.ndarray, "text role layer head"]:
        """Scores of each text that counts; NaN where a role does not apply."""
        return self.scored.scores

    def stability(self) -> Float[np.ndarray, "role layer head"] | None:
        """Share of resamples of the texts in which each label stays; None where evidence decides."""
        if self.bets is not None:
            return None
        return memory().get_or_put(
            "stability", (self.found.number, self.tests.settings), lambda: stability(self.tests, self._resamples())
        )

    def _resamples(self) -> Resamples:
        """Kept too: moving tau needs the same ones again."""
        return memory().get_or_put(
            "resamples", self.found.number, lambda: resamples(self.scored.scores, self.scored.uniform)
        )

    def with_intervals(self) -> HeadTests:
        """The tests with the intervals that are shown, which take longer than the tests; evidence has none."""
        if self.bets is not None:
            return self.tests

        def ends() -> tuple[Float[np.ndarray, "role layer head"], Float[np.ndarray, "role layer head"]]:
            tests = with_syntactic_intervals(self.tests, self.scored.scores)
            return tests.low, tests.high

        low, high = memory().get_or_put("intervals", (self.found.number, self.tests.settings.alpha), ends)
        return replace(self.tests, low=low, high=high)


def corpus(visit: Visit) -> Corpus | None:
    """Measure the texts with a progress bar where needed, then test; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    return _tested(visit, find)


def kept_corpus(visit: Visit) -> Corpus | None:
    """Like `corpus`, but None where a pass is needed or the reader has to do something first."""
    return _tested(visit, kept_finding)


def kept_matches(visit: Visit) -> MatchedTests | None:
    """Scores against pairs at the same distance, of syntactic and written roles for which no pass is needed; None
    without any."""
    if visit.settings.kind not in MATCHED_PAIRS.kinds or not visit.texts:
        return None
    scores, criterion = visit.choice.score_settings, visit.choice.criterion
    asked = {roles: kept(visit, question, visit.texts) for roles, question in matched_questions(scores.roles).items()}
    pairs = {roles: of_roles for roles, of_roles in asked.items() if of_roles is not None}
    if not pairs:
        return None
    return memory().get_or_put(
        "matched tests",
        (tuple(of_roles.number for of_roles in pairs.values()), scores.direction, criterion),
        lambda: joined_tests(
            matched_tests(_different(of_roles, visit.texts), scores.direction, criterion, roles)
            for roles, of_roles in pairs.items()
        ),
    )


def _different(answers: Answers[TextMatches], texts: Sequence[Text]) -> list[TextMatches]:
    """The answers on those texts that differ."""
    rows = different_rows(text_numbers([texts[position] for position in answers.positions]))
    return [answers.results[row] for row in rows.tolist()]


def _tested(visit: Visit, asking: Callable[..., Found | None]) -> Corpus | None:
    choice = visit.choice
    settings = RoleSettings(choice.score_settings)
    found = asking(visit, ROLE_ANALYSIS, settings)
    if found is None:
        return None
    _follow_length(found.n_tokens)
    if not ledger.is_typed(choice):
        return judged(found, choice)
    texts = ledger.counted(visit) if ledger.decides(choice) else visit.texts
    counted = found if texts == visit.texts else asking(replace(visit, texts=texts), ROLE_ANALYSIS, settings)
    if counted is None:
        return None
    ledger.remember(visit.texts)
    bets_on = (texts[counted.positions[row]] for row in different_rows(counted.finding.numbers).tolist())
    return replace(judged(found, choice, counted), bets_on=tuple(bets_on))


def _follow_length(n_tokens: tuple[int, ...]) -> None:
    """Show shares where texts are long and the reader has chosen no scale: the page begins again if this is news."""
    before = state.scale()
    st.session_state[state.LONG] = bool(np.median(n_tokens) > LONG_TEXT)
    if state.scale() != before:
        st.rerun()


def judged(found: Found, choice: Choice, counted: Found | None = None) -> Corpus:
    """Roles over some texts by the reader's settings: by the test, or where texts are typed by evidence.

    Args:
        found: in the texts.
        counted: in the texts that evidence counts; None for the same ones.
    """
    bets = (counted or found) if ledger.decides(choice) else None
    finding = memory().get_or_put(
        "roles",
        (found.number, None if bets is None else bets.number, choice.criterion),
        lambda: role_finding(
            found.finding.scored,
            choice.criterion,
            None if bets is None else bets.finding.counted,
            found.finding.numbers,
        ),
    )
    return Corpus(found=found, finding=finding)


def facts(visit: Visit, tested: Corpus, computed_by: str = "roles") -> dict[str, str]:
    """Metadata of a file on the roles over the corpus, or what else a command with its options computes."""
    choice, engine = visit.choice, visit.engine
    known = provenance.corpus_facts(choice, engine, len(tested.found.positions), tested.found.n_tokens)
    options = [*role_options(choice, engine), *given_options(choice.criterion, Criterion.usual(choice.scale))]
    known |= tested.finding.facts
    known |= command(computed_by, choice, engine, visit.texts, *options, too_long=policy())
    if tested.bets is None:
        return known
    known = known if computed_by == "roles" else without_command(known)  # only `roles` writes the evidence
    return known | {"method": "evidence", "evidence texts": str(len(tested.bets_on))}
