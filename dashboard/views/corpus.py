"""The corpus for the pages: its scores, and the roles of heads by a test or by evidence."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Answers
from attention_sieve.core.roles.hypotheses import HeadTests, role_tests
from attention_sieve.core.roles.matched_pairs import MatchedTests, matched_tests
from attention_sieve.core.roles.measures import RoleScores, Scale, ScoreSettings, TextMeasures, role_scores
from attention_sieve.core.roles.question import MATCHED_PAIRS, each_alone, scores_question
from attention_sieve.core.roles.uncertainty.anytime import roles_by_evidence
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.core.roles.uncertainty.stability import Resamples, resamples, stability
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.asking import ask, kept
from attention_sieve.dashboard.views.evidence import ledger
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit

Asking = Callable[..., Answers[TextMeasures] | None]
"""`ask` or `kept`."""
Measured = tuple[Answers[TextMeasures], ...]
"""Measures of the same texts, by the roles that are stored together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Scores and tests of the chosen texts."""

    key: Hashable
    """Identifies the scores in caches of results derived from them, without keeping them in memory."""
    scored: RoleScores
    """Scores of the chosen texts, with their references."""
    tests: HeadTests
    scale: Scale
    """Scale of the scores."""
    positions: tuple[int, ...]
    """Position of each text in the input."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each text."""
    too_long: tuple[tuple[int, int], ...]
    """Position and number of tokens of each text that was left out or cut."""
    bets: RoleScores | None = None
    """Where evidence decides: scores of the texts that it counts, each once, in order of appearance."""
    bets_on: tuple[Text, ...] = ()
    """These texts."""

    @property
    def scores(self) -> Float[np.ndarray, "text role layer head"]:
        """Scores of each text; NaN where a role does not apply."""
        return self.scored.scores

    @property
    def strength(self) -> Float[np.ndarray, "role layer head"]:
        """The statistic that decides: the logarithm of the evidence, or the corrected p-value."""
        return self.tests.p_adjusted if self.tests.evidence is None else self.tests.evidence

    @property
    def filled(self) -> str:
        """What a filled corner means, in a sentence."""
        tau = self.tests.settings.tau
        return (
            wording.filled_by_test(tau, self.scale) if self.bets is None else evidence_wording.filled_by_evidence(tau)
        )

    def stability(self) -> Float[np.ndarray, "role layer head"] | None:
        """Share of resamples of the texts in which each label stays; None where evidence decides."""
        if self.bets is not None:
            return None
        return memory().get_or_put(
            "stability", (self.key, self.tests.settings), lambda: stability(self.tests, self._resamples())
        )

    def _resamples(self) -> Resamples:
        """Kept too: moving tau needs the same ones again."""
        return memory().get_or_put("resamples", self.key, lambda: resamples(self.scored.scores, self.scored.uniform))

    def with_intervals(self) -> HeadTests:
        """The tests with the intervals that are shown, which take longer than the tests; evidence has none."""
        if self.bets is not None:
            return self.tests
        low, high = memory().get_or_put("intervals", (self.key, self.tests.settings.alpha), self._ends)
        return replace(self.tests, low=low, high=high)

    def _ends(self) -> tuple[Float[np.ndarray, "role layer head"], Float[np.ndarray, "role layer head"]]:
        """Ends of the intervals, which do not depend on tau."""
        tests = with_syntactic_intervals(self.tests, self.scored.scores)
        return tests.low, tests.high


def corpus(visit: Visit) -> Corpus | None:
    """Measure the texts with a progress bar where needed, then test; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    return _tested(visit, ask)


def kept_corpus(visit: Visit) -> Corpus | None:
    """Like `corpus`, but None where a pass is needed or the reader has to do something first."""
    return _tested(visit, kept)


def kept_matches(visit: Visit) -> MatchedTests | None:
    """Syntactic scores against pairs of words at the same distance, where no pass is needed; else None."""
    if visit.settings.kind not in MATCHED_PAIRS.kinds or not visit.texts:
        return None
    pairs, choice = kept(visit, MATCHED_PAIRS, visit.texts), visit.chosen
    if pairs is None:
        return None
    direction, criterion = choice.score_settings.direction, choice.criterion
    return memory().get_or_put(
        "matched tests",
        (pairs.number, direction, criterion),
        lambda: matched_tests(pairs.results, direction, criterion),
    )


def _tested(visit: Visit, asking: Asking) -> Corpus | None:
    measured, choice = _measured(visit, asking, visit.texts), visit.chosen
    if measured is None:
        return None
    if not ledger.is_typed(choice):
        return judged(measured, choice)
    counted = ledger.counted(visit) if ledger.decides(choice) else visit.texts
    counts = measured if counted == visit.texts else _measured(visit, asking, counted)
    if counts is None:
        return None
    ledger.remember(visit.texts)
    tested = judged(measured, choice, counts)
    return replace(tested, bets_on=tuple(counted[position] for position in counts[0].positions))


def _measured(visit: Visit, asking: Asking, texts: tuple[Text, ...]) -> Measured | None:
    """The measures of the reader's roles; None where some are missing, or the reader has stopped one."""
    parts = list[Answers[TextMeasures]]()
    for names in each_alone(visit.chosen.roles):
        part = asking(visit, scores_question(names), texts)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def judged(measured: Measured, choice: Choice, counts: Measured | None = None) -> Corpus:
    """Roles over some texts by the reader's settings: by the test, or where texts are typed by evidence.

    Args:
        measured: of the texts.
        choice: the reader's settings.
        counts: of the texts that evidence counts; None for the same ones.
    """
    counts, decides = counts or measured, ledger.decides(choice)
    numbers = (_numbers(measured), _numbers(counts))
    return memory().get_or_put(
        "corpus",
        (*numbers, decides, choice.score_settings, choice.criterion),
        lambda: _judge(measured, counts if decides else None, choice),
    )


def _numbers(measured: Measured) -> tuple[int, ...]:
    return tuple(part.number for part in measured)


def _judge(measured: Measured, counts: Measured | None, choice: Choice) -> Corpus:
    """Compute the roles: by the test, or by evidence over the texts that count."""
    settings, criterion = choice.score_settings, choice.criterion
    scored, bets = _scores(measured, settings), None
    if counts is not None:
        bets = scored if counts is measured else _scores(counts, settings)
        tests = roles_by_evidence(scored, bets, scored.roles, criterion)
    else:
        tests = role_tests(scored.scores, scored.roles, criterion, scored.uniform)
    return Corpus(
        key=(_numbers(measured), settings),
        scored=scored,
        tests=tests,
        scale=settings.scale,
        positions=measured[0].positions,
        n_tokens=measured[0].n_tokens,
        too_long=measured[0].too_long,
        bets=bets,
    )


def _scores(measured: Measured, settings: ScoreSettings) -> RoleScores:
    return RoleScores.joined([role_scores(part.results, settings) for part in measured])


def facts(visit: Visit, tested: Corpus) -> dict[str, str]:
    """Metadata of a file on the roles over the corpus."""
    known = provenance.corpus_facts(visit.chosen, visit.engine, len(tested.scores), tested.n_tokens)
    if tested.bets is None:
        return known
    return known | {"method": "evidence", "evidence texts": str(len(tested.bets_on))}
