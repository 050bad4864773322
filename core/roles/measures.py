"""The measures that one pass computes for every head, and the choice of the measures that are the scores of roles.

A pass computes the variants of all settings, so changing a setting needs no model. Every score has a variant on a scale
that does not grow with the text, the share above chance, and two references: what uniform attention scores, and the
greatest possible score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from core.errors import AnalysisError
from core.roles.roles import ROLES
from core.statistics.means import moments
from core.texts.relations import RELATIONS

Direction = Literal["dependent-to-head", "head-to-dependent", "both"]
Scale = Literal["score", "share"]

USUAL_TAU: Final[dict[Scale, float]] = {"score": 3.0, "share": 0.5}
"""Threshold on the mean score of a role, by the scale."""

DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""Which word of a relation attends to which."""
SYNTACTIC: Final = ("syntactic", *(f"syntactic:{relation}" for relation in RELATIONS))
SYNTACTIC_MEASURES: Final = tuple(f"{role} {direction}" for direction in DIRECTIONS for role in SYNTACTIC)
ROW_MEASURES: Final = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "sink", "block without entropy")
MEASURES: Final = (*ROW_MEASURES, "block", *SYNTACTIC_MEASURES)
BLOCK: Final = ROW_MEASURES.index("block without entropy")
REFERENCES: Final = (*MEASURES, *(f"{role} both" for role in SYNTACTIC))
"""Scores with references: the measures, and the mean of both directions of a syntactic role."""
ROW_SHARES: Final = (*ROW_MEASURES[:BLOCK], "block")
SYNTACTIC_SHARES: Final = tuple(f"{role} {direction}" for direction in get_args(Direction) for role in SYNTACTIC)
SHARES: Final = (*ROW_SHARES, *SYNTACTIC_SHARES)
"""Measures on the scale of shares; the block has none with entropy."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextMeasures:
    """All measures of a text from one pass; NaN where a measure does not apply."""

    measures: Float[np.ndarray, "measure layer head"]
    """Sieve bias scores by MEASURES."""
    shares: Float[np.ndarray, "share layer head"]
    """Shares above chance by SHARES: 0 for uniform attention, 1 for all attention inside the sieve."""
    uniform: Float[np.ndarray, "reference layer"]
    """Score of uniform attention by REFERENCES."""
    greatest: Float[np.ndarray, "reference layer"]
    """Greatest possible score by REFERENCES."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleScores:
    """Scores of texts by core.roles.roles.ROLES, with their references; NaN where a role does not apply to a text."""

    scores: Float[np.ndarray, "text role layer head"]
    uniform: Float[np.ndarray, "text role layer"]
    """Score of uniform attention on the same text."""
    greatest: Float[np.ndarray, "text role layer"]
    """Greatest possible score on the same text."""

    def mean_references(self) -> tuple[Float[np.ndarray, "role layer"], Float[np.ndarray, "role layer"]]:
        """Means of `uniform` and `greatest` over the texts to which a role applies; NaN without any."""
        return moments(self.uniform)[1], moments(self.greatest)[1]

    def out_of_reach(self, tau: float) -> Int[np.ndarray, " role"]:
        """Number of texts on which no attention can reach tau, by role, because they are too short."""
        return (self.greatest < tau).all(axis=2).sum(axis=0)

    def of_texts(self, rows: Int[np.ndarray, " row"]) -> "RoleScores":
        """The scores of some of the texts."""
        return RoleScores(scores=self.scores[rows], uniform=self.uniform[rows], greatest=self.greatest[rows])


@dataclass(frozen=True)
class ScoreSettings:
    """Settings that select the scores among the measures.

    Raises: AnalysisError for an unknown direction.
    """

    direction: Direction = "dependent-to-head"
    """Syntactic roles: attention from the dependent to its head, from the head to its dependent, or the mean of
    both."""
    block_entropy: bool = True
    """Block: the ratio times the row's entropy in nats, as in the authors' code; without it the plain ratio. A share
    has no weight."""
    scale: Scale = "score"
    """"score" is attention relative to uniform attention, as in the paper; "share" the share above chance, which does
    not grow with the length of the text."""

    def __post_init__(self) -> None:
        for name, value, known in (("direction", self.direction, Direction), ("scale", self.scale, Scale)):
            if value not in get_args(known):
                raise AnalysisError(f"{value!r} is not a {name}. Choose one of: {', '.join(get_args(known))}.")


def role_scores(texts: Sequence[TextMeasures], settings: ScoreSettings) -> RoleScores:
    """Scores by ROLES, with their references, from the measures of each text.

    In a causal model only one word of a pair can attend to the other; `both` is then the score of that direction.
    """
    if settings.scale == "share":
        shares = np.stack([text.shares for text in texts])
        scores = np.stack([shares[:, SHARES.index(_share_of(role, settings))] for role in ROLES], axis=1)
        applies = np.where(np.isnan(scores).all(axis=3), np.nan, 0)
        return RoleScores(scores=scores, uniform=applies, greatest=applies + 1)
    measures = np.stack([text.measures for text in texts])
    references = [REFERENCES.index(_reference_of(role, settings)) for role in ROLES]
    return RoleScores(
        scores=np.stack([_role_score(measures, role, settings) for role in ROLES], axis=1),
        uniform=np.stack([text.uniform for text in texts])[:, references],
        greatest=np.stack([text.greatest for text in texts])[:, references],
    )


def _share_of(role: str, settings: ScoreSettings) -> str:
    return f"{role} {settings.direction}" if role in SYNTACTIC else role


def _reference_of(role: str, settings: ScoreSettings) -> str:
    if role == "block" and not settings.block_entropy:
        return ROW_MEASURES[BLOCK]
    return f"{role} {settings.direction}" if role in SYNTACTIC else role


def _role_score(
    measures: Float[np.ndarray, "text measure layer head"], role: str, settings: ScoreSettings
) -> Float[np.ndarray, "text layer head"]:
    if role == "block" and not settings.block_entropy:
        return measures[:, BLOCK]
    if role not in SYNTACTIC:
        return measures[:, MEASURES.index(role)]
    directions = DIRECTIONS if settings.direction == "both" else (settings.direction,)
    return mean_of_known(measures[:, [MEASURES.index(f"{role} {direction}") for direction in directions]])


def mean_of_known(values: Float[np.ndarray, "text direction *cell"]) -> Float[np.ndarray, "text *cell"]:
    """Mean over directions, ignoring NaN; NaN where all are."""
    is_known = ~np.isnan(values)
    n_known = is_known.sum(axis=1)
    total = np.where(is_known, values, 0).sum(axis=1)
    return np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan).astype(values.dtype)
