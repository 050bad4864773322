"""Sieve bias scores of many texts as series of numbers, for corpora of any size."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from attention_sieve.core.answering import Reduction
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import clearly_above
from attention_sieve.core.roles.measures import TextMeasures, role_scores
from attention_sieve.core.statistics.series import SCORE_BINS, SHARE_BINS, TAUS, Series, Values
from attention_sieve.core.texts.text import Text

ROLE_SCORES: Final = "roles"
ABOVE_UNIFORM: Final = "roles above uniform"
UNIFORM: Final = "roles uniform"
GREATEST: Final = "roles greatest"
OUT_OF_REACH: Final = "roles out of reach"
"""Texts on which no attention reaches a threshold of TAUS."""


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
