"""The measures that one pass computes for every head, and the choice of the measures that are the scores of roles.

A pass computes the variants of all settings, so changing a setting needs no model.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float

from core.errors import AnalysisError
from core.roles.roles import ROLES
from core.texts.relations import RELATIONS

Direction = Literal["dependent-to-head", "head-to-dependent", "both"]

DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""Which word of a relation attends to which."""
SYNTACTIC: Final = ("syntactic", *(f"syntactic:{relation}" for relation in RELATIONS))
SYNTACTIC_MEASURES: Final = tuple(f"{role} {direction}" for direction in DIRECTIONS for role in SYNTACTIC)
ROW_MEASURES: Final = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "sink", "block without entropy")
MEASURES: Final = (*ROW_MEASURES, "block", *SYNTACTIC_MEASURES)


@dataclass(frozen=True)
class ScoreSettings:
    """Settings that select the scores among the measures.

    Raises: AnalysisError for an unknown direction.
    """

    direction: Direction = "dependent-to-head"
    """Syntactic roles: attention from the dependent to its head, from the head to its dependent, or the mean of
    both."""
    block_entropy: bool = True
    """Block: the ratio times the row's entropy in nats, as in the authors' code; without it the plain ratio."""

    def __post_init__(self) -> None:
        known = get_args(Direction)
        if self.direction not in known:
            raise AnalysisError(f"{self.direction!r} is not a direction. Choose one of: {', '.join(known)}.")


def role_scores(
    measures: Float[np.ndarray, "text measure layer head"], settings: ScoreSettings
) -> Float[np.ndarray, "text role layer head"]:
    """Scores by ROLES from measures by MEASURES; NaN stays NaN.

    In a causal model only one word of a pair can attend to the other; `both` is then the score of that direction.
    """
    return np.stack([_role_score(measures, role, settings) for role in ROLES], axis=1)


def _role_score(
    measures: Float[np.ndarray, "text measure layer head"], role: str, settings: ScoreSettings
) -> Float[np.ndarray, "text layer head"]:
    if role == "block" and not settings.block_entropy:
        return measures[:, MEASURES.index("block without entropy")]
    if role not in SYNTACTIC:
        return measures[:, MEASURES.index(role)]
    directions = DIRECTIONS if settings.direction == "both" else (settings.direction,)
    chosen = measures[:, [MEASURES.index(f"{role} {direction}") for direction in directions]]
    there = ~np.isnan(chosen)
    n_there = there.sum(axis=1)
    total = np.where(there, chosen, 0).sum(axis=1)
    return np.where(n_there > 0, total / np.maximum(n_there, 1), np.nan).astype(measures.dtype)
