"""The analysis of roles: which heads attend to which words, as one value."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Reduction, text_itself
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings, role_finding
from attention_sieve.core.roles.hypotheses import clearly_above, resamples, stability
from attention_sieve.core.roles.measures import TextMeasures, role_scores
from attention_sieve.core.roles.question import scores_question
from attention_sieve.core.roles.uncertainty.anytime import as_odds, holds_by_evidence, role_evidence
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.core.roles.usage import ROLE_USAGE
from attention_sieve.core.statistics.series import SCORE_BINS, SHARE_BINS, TAUS, Series, Values
from attention_sieve.core.texts.equal import text_numbers
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import HEAD_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

ROLE_SCORES: Final = "roles"
ABOVE_UNIFORM: Final = "roles above uniform"
UNIFORM: Final = "roles uniform"
GREATEST: Final = "roles greatest"
OUT_OF_REACH: Final = "roles out of reach"
"""Texts on which no attention reaches a threshold of TAUS."""
COLUMNS: Final = {
    "role": "name of the role",
    **HEAD_COLUMNS,
    "texts": "number of different texts to which the role applies; equal texts count once",
    "mean": "mean of the score",
    "std": "standard deviation of the score",
    "low": "lower end of the confidence interval of the mean: by the bootstrap-t for syntactic roles, otherwise "
    "Student's; empty for fewer than two texts",
    "high": "upper end of this interval",
    "t": "one-sided t-test of the mean being above tau; empty for fewer than two texts and for a constant score",
    "p": "p-value of this test",
    "p_uniform": "p-value of the mean being clearly above the score of uniform attention",
    "p_role": "p-value of the role: the larger of the two, or p alone with --rule paper",
    "p_adjusted": "p_role after correction",
    "holds": "whether the head has the role",
    "constant": "whether the score is constant, so that its mean alone decides",
    "stability": "share of bootstrap resamples of the texts in which holds is the same",
    "evidence": "betting evidence (e-value) that the head has the role: what a stake of 1 has grown to; 20 is 20 : 1; "
    "only with scores, not with shares",
    "holds_anytime": "whether the head has the role by its evidence; only with scores, not with shares",
    "rests_on_first": "1 where the head has the role no more when the first token is left out of the role's keys and "
    "of chance, otherwise 0; empty for models that are no decoder, and for a file of scores",
}


def _values(_: Sequence[Text], texts: Sequence[TextMeasures], settings: RoleSettings) -> Values:
    scored = role_scores(texts, settings.scores)
    return {ROLE_SCORES: scored.scores, UNIFORM: scored.uniform, GREATEST: scored.greatest}


def _series(values: Values, settings: RoleSettings) -> Mapping[str, Series]:
    scores, uniform, greatest = values[ROLE_SCORES], values[UNIFORM], values[GREATEST]
    is_score = settings.scores.scale == "score"
    bins, bet_on = (SCORE_BINS, uniform) if is_score else (SHARE_BINS, None)
    out_of_reach = np.stack([(greatest < tau).all(axis=2) for tau in TAUS], axis=1).astype(float)
    return {
        ROLE_SCORES: Series(values=scores, bins=bins, uniform=bet_on),
        ABOVE_UNIFORM: Series(values=scores - clearly_above(uniform)),
        UNIFORM: Series(values=uniform),
        GREATEST: Series(values=greatest),
        OUT_OF_REACH: Series(values=out_of_reach),
    }


def _cells(settings: RoleSettings, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    n_roles = len(settings.scores.roles)
    return {
        ROLE_SCORES: (n_roles, n_layers, n_heads),
        ABOVE_UNIFORM: (n_roles, n_layers, n_heads),
        UNIFORM: (n_roles, n_layers),
        GREATEST: (n_roles, n_layers),
        OUT_OF_REACH: (len(TAUS), n_roles),
    }


ROLE_REDUCTION: Final = Reduction(
    values=_values,
    series=_series,
    cells=_cells,
    columns=lambda settings: dict.fromkeys((ROLE_SCORES, UNIFORM), settings.scores.roles),
)
"""Scores, their references, and the number of texts on which no attention reaches a threshold."""


def role_table(finding: RoleFinding) -> "pd.DataFrame":
    """A row per role, layer and head, with COLUMNS."""
    from attention_sieve.core.roles.tables import head_table  # imports pandas, which the first page does without

    scored = finding.counted
    tests = with_syntactic_intervals(finding.tests, scored.scores)
    stays = stability(tests, resamples(scored.scores, scored.uniform))
    table = head_table(tests).assign(stability=stays.ravel())
    if scored.scale != "share":  # a bet needs values from 0 upwards
        evidence = role_evidence(scored.scores, tests.settings, scored.uniform)
        holds = holds_by_evidence(evidence, tests.settings)
        table = table.assign(evidence=as_odds(evidence).ravel(), holds_anytime=holds.ravel())
    rests = np.full(tests.holds.shape, np.nan) if finding.rests_on_first is None else finding.rests_on_first
    return table.assign(rests_on_first=rests.ravel().astype(float))


ROLE_ANALYSIS: Final = Analysis(
    name="roles",
    sentence="Test which heads have which roles over texts; a row per role, layer and head.",
    settings=RoleSettings(),
    text_of=text_itself,
    items=lambda texts, *_: texts,
    question=lambda settings: scores_question(settings.scores.roles, settings.scores.permuted, settings.scores.parses),
    judge=lambda texts, measures, settings: role_finding(
        role_scores(measures, settings.scores), settings.criterion, numbers=text_numbers(texts)
    ),
    table=role_table,
    columns=COLUMNS,
    facts=lambda finding, settings: settings.facts | finding.facts,
    reduction=ROLE_REDUCTION,
    usage=ROLE_USAGE,
)
"""Sieve bias scores of each head, and the roles that it holds.

Source: Pande et al. 2021, sections 3 and 4.
"""
