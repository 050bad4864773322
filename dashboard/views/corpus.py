"""The corpus as the pages need it: measured and tested; the page says which texts were left out."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cache.answers import Answers
from core.roles.hypotheses import HeadTests, role_tests
from core.roles.matched_pairs import MatchedTests, matched_tests
from core.roles.measures import RoleScores, TextMeasures, role_scores
from core.roles.question import MATCHED_PAIRS, SCORES
from core.roles.roles import ROLES
from dashboard.state import Choice
from dashboard.views.asking import ask, kept
from dashboard.views.frame import Visit


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Scores and tests of the chosen texts."""

    scored: RoleScores
    """Scores of the chosen texts, with their references."""
    tests: HeadTests
    positions: tuple[int, ...]
    """Place of each text among those that were given."""
    n_tokens: tuple[int, ...]
    """Of each text."""
    too_long: tuple[tuple[int, int], ...]
    """Position and number of tokens of each text that was left out or cut."""

    @property
    def scores(self) -> Float[np.ndarray, "text role layer head"]:
        """Scores of each text; NaN where a role does not apply."""
        return self.scored.scores


def corpus(visit: Visit) -> Corpus | None:
    """Measure the texts under a progress bar where needed, then test; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    return tested_on(ask(visit, SCORES, visit.texts), visit.chosen)


def kept_corpus(visit: Visit) -> Corpus | None:
    """The same where no pass is needed and the reader has to be told nothing, else None."""
    return tested_on(kept(visit, SCORES, visit.texts), visit.chosen)


def tested_on(measured: Answers[TextMeasures] | None, chosen: Choice) -> Corpus | None:
    """The tests of what was measured of some texts, by the reader's settings."""
    if measured is None:
        return None
    scored = role_scores(measured.results, chosen.score_settings)
    tests = role_tests(scored.scores, ROLES, chosen.criterion, scored.uniform)
    return Corpus(
        scored=scored,
        tests=tests,
        positions=measured.positions,
        n_tokens=measured.n_tokens,
        too_long=measured.too_long,
    )


def kept_matches(visit: Visit) -> MatchedTests | None:
    """Syntactic scores against pairs of words at the same distance, where no pass is needed; else None."""
    if visit.settings.kind not in MATCHED_PAIRS.kinds or not visit.texts:
        return None
    pairs, chosen = kept(visit, MATCHED_PAIRS, visit.texts), visit.chosen
    return None if pairs is None else matched_tests(pairs.results, chosen.score_settings.direction, chosen.criterion)
