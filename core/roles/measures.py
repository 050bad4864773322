"""The measures that one pass computes for every head, so that no setting of scores needs another pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Final, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.record import DIRECTIONS, NOTHING, Pairs, Role
from attention_sieve.core.roles.roles import BY_NAME, ROLES, known_roles, role_named, role_title
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.texts.relations import Wanted

SyntacticDirection = Literal["dependent-to-head", "head-to-dependent", "both"]
Scale = Literal["score", "share"]

WRITTEN: Final = "role "
"""Begins the name of the fact that holds the rule of a written role."""
USUAL_TAU: Final[dict[Scale, float]] = {"score": 3.0, "share": 0.5}
"""Threshold on the mean score of a role, by the scale."""


@dataclass(frozen=True)
class RoleSet:
    """Some roles, and the measures from which their scores are chosen, in the order in which they are stored.

    A role whose sieve is a set of keys or a band has one measure, or two if it is weighted: without its weight, and
    with it. A role whose sieve is pairs has one, or one for each direction.
    """

    names: tuple[str, ...]
    """In the order of `attention_sieve.core.roles.roles.known_roles`."""

    @cached_property
    def records(self) -> tuple[Role, ...]:
        """The roles."""
        return tuple(map(role_named, self.names))

    @cached_property
    def rows(self) -> tuple[Role, ...]:
        """Roles whose sieves are sets of keys or bands, weighted ones last, and finer ones after their coarser one."""
        families = [*BY_NAME, *(name for name in self.names if name not in BY_NAME)]
        rows = (role for role in self.records if not isinstance(role.sieve, Pairs))
        return tuple(sorted(rows, key=lambda role: (role.weight != "none", families.index(role.part_of or role.name))))

    @cached_property
    def weighted(self) -> tuple[int, ...]:
        """Indices into `rows` of the weighted roles."""
        return tuple(index for index, role in enumerate(self.rows) if role.weight != "none")

    @cached_property
    def paired(self) -> tuple[Role, ...]:
        """Roles whose sieves are pairs."""
        return tuple(role for role in self.records if isinstance(role.sieve, Pairs))

    @cached_property
    def wanted(self) -> Wanted:
        """What texts have to be parsed for."""
        return reduce(or_, (role.wanted for role in self.records), NOTHING)

    @property
    def is_noted(self) -> bool:
        """Whether a role needs notes on the queries."""
        return any(role.is_noted for role in self.records)

    @cached_property
    def directed(self) -> tuple[str, ...]:
        """Names of the roles whose pairs can be read both ways."""
        return tuple(role.name for role in self.records if role.directions)

    @cached_property
    def row_measures(self) -> tuple[str, ...]:
        """Measures of `rows`, without a weight."""
        return tuple(role.name if role.weight == "none" else unweighted(role.name) for role in self.rows)

    @cached_property
    def pair_measures(self) -> tuple[str, ...]:
        """Measures of `paired`."""
        undirected = (role.name for role in self.paired if not role.directions)
        return (*undirected, *(f"{role} {direction}" for direction in DIRECTIONS for role in self.directed))

    @cached_property
    def pair_shares(self) -> tuple[str, ...]:
        """`pair_measures`, then the mean of both directions."""
        return (*self.pair_measures, *(f"{role} both" for role in self.directed))

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """All scores."""
        return (*self.row_measures, *(self.rows[index].name for index in self.weighted), *self.pair_measures)

    @cached_property
    def references(self) -> tuple[str, ...]:
        """Scores with references: the measures, and the mean of both directions of a role that has two."""
        return (*self.measures, *self.pair_shares[len(self.pair_measures) :])

    @cached_property
    def shares(self) -> tuple[str, ...]:
        """Measures on the scale of shares; a weighted role has none with its weight."""
        return (*(role.name for role in self.rows), *self.pair_shares)


def unweighted(role: str) -> str:
    """Name of the measure of a weighted role without its weight."""
    return f"{role} without {role_named(role).weight}"


USUAL: Final = RoleSet(ROLES)
SYNTACTIC: Final = tuple(role.name for role in USUAL.records if role.directions)
"""Roles of grammatical relations: of all together, then of each."""
SYNTACTIC_MEASURES: Final = RoleSet(SYNTACTIC).measures


@dataclass(frozen=True, eq=False, kw_only=True)
class TextMeasures:
    """All measures of a text from one pass; NaN where a measure does not apply."""

    measures: Float[np.ndarray, "measure layer head"]
    shares: Float[np.ndarray, "share layer head"]
    """Shares above chance by the shares of the roles: 0 for uniform attention, 1 for all attention inside the sieve."""
    uniform: Float[np.ndarray, "reference layer"]
    greatest: Float[np.ndarray, "reference layer"]
    roles: RoleSet = USUAL
    after_first: "TextMeasures | None" = None
    """Of a decoder the same with the first token in no sieve."""


def joined(parts: Sequence[TextMeasures]) -> TextMeasures:
    """The measures of one text for the roles of several parts, in the order of the roles."""
    if len(parts) == 1:
        return parts[0]
    roles = RoleSet(known_roles(name for part in parts for name in part.roles.names))

    def rows(array: str, axis: str) -> Float[np.ndarray, "_ layer *head"]:
        by_name = {name: row for part in parts for name, row in zip(getattr(part.roles, axis), getattr(part, array))}
        return np.stack([by_name[name] for name in getattr(roles, axis)])

    after_first = [part.after_first for part in parts if part.after_first is not None]
    return TextMeasures(
        roles=roles,
        measures=rows("measures", "measures"),
        shares=rows("shares", "shares"),
        uniform=rows("uniform", "references"),
        greatest=rows("greatest", "references"),
        after_first=joined(after_first) if len(after_first) == len(parts) else None,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleScores:
    """Scores of texts by role, with their references; NaN where a role does not apply to a text."""

    roles: tuple[str, ...]
    scores: Float[np.ndarray, "text role layer head"]
    uniform: Float[np.ndarray, "text role layer"]
    """Score of uniform attention on the same text."""
    greatest: Float[np.ndarray, "text role layer"]
    """Greatest possible score on the same text."""
    scale: Scale = "score"
    after_first: "RoleScores | None" = None
    """Of a decoder the same with the first token in no sieve."""

    def mean_references(self) -> tuple[Float[np.ndarray, "role layer"], Float[np.ndarray, "role layer"]]:
        """Means of `uniform` and `greatest` over the texts to which a role applies; NaN without any."""
        return moments(self.uniform)[1], moments(self.greatest)[1]

    def out_of_reach(self, tau: float) -> Int[np.ndarray, " role"]:
        """Number of texts on which no attention can reach tau, by role, because they are too short."""
        return (self.greatest < tau).all(axis=2).sum(axis=0)

    def subset(self, rows: Int[np.ndarray, " row"]) -> "RoleScores":
        """The scores of some of the texts."""
        return replace(
            self,
            scores=self.scores[rows],
            uniform=self.uniform[rows],
            greatest=self.greatest[rows],
            after_first=self.after_first and self.after_first.subset(rows),
        )


@dataclass(frozen=True)
class ScoreSettings:
    """Which roles are scored, and which of their measures are the scores.

    Raises: AnalysisError for an unknown role, direction or scale.
    """

    direction: Annotated[
        SyntacticDirection,
        "syntactic roles: attention from the dependent to its head, from the head to its dependent, or the mean of "
        "both",
    ] = "dependent-to-head"
    block_entropy: Annotated[
        bool, "leave the entropy of the attention row out of the block score; the authors' code multiplies by it"
    ] = True
    """The entropy is in nats. A share has no weight."""
    scale: Annotated[
        Scale, "attention as a multiple of uniform attention (score), or as a share above chance, from 0 to 1 (share)"
    ] = "score"
    """"score" is that of the paper; a share does not grow with the length of the text."""
    roles: tuple[str, ...] = ROLES
    """In the order of `attention_sieve.core.roles.roles.known_roles`."""
    permuted: int | None = None
    """Seed of a random order of the keys of every row of attention, as a control; None for the attention as it is."""
    parses: bool = True
    """Whether texts without trees are parsed; otherwise no syntactic role applies to them."""

    def __post_init__(self) -> None:
        for name, value, known in (("direction", self.direction, SyntacticDirection), ("scale", self.scale, Scale)):
            if value not in get_args(known):
                raise AnalysisError(f"{value!r} is not a {name}. Choose one of: {', '.join(get_args(known))}.")
        known_roles(self.roles)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        weighted = "yes" if self.block_entropy else "no"
        return {"direction": self.direction, "block entropy": weighted, "scale": self.scale, **self.rules}

    @property
    def rules(self) -> dict[str, str]:
        """The same of roles that a reader has written, of which files show the names alone."""
        return {f"{WRITTEN}{role_title(name)}": role_named(name).rule for name in self.roles if role_named(name).rule}


def role_scores(texts: Sequence[TextMeasures], settings: ScoreSettings) -> RoleScores:
    """Scores by role, with their references, from the measures of each text; all were measured for the same roles.

    In a causal model only one word of a pair can attend to the other; `both` is then the score of that direction.
    """
    after_first = [text.after_first for text in texts if text.after_first is not None]
    scored = _role_scores(texts, settings)
    if len(after_first) < len(texts):
        return scored
    return replace(scored, after_first=_role_scores(after_first, settings))


def _role_scores(texts: Sequence[TextMeasures], settings: ScoreSettings) -> RoleScores:
    roles = texts[0].roles
    if settings.scale == "share":
        shares = np.stack([text.shares for text in texts])
        scores = np.stack([shares[:, roles.shares.index(_directed(role, settings))] for role in roles.records], axis=1)
        applies = np.where(np.isnan(scores).all(axis=3), np.nan, 0)
        return RoleScores(roles=roles.names, scores=scores, uniform=applies, greatest=applies + 1, scale="share")
    measures = np.stack([text.measures for text in texts])
    references = [roles.references.index(_reference_of(role, settings)) for role in roles.records]
    return RoleScores(
        roles=roles.names,
        scores=np.stack([_role_score(measures, roles, role, settings) for role in roles.records], axis=1),
        uniform=np.stack([text.uniform for text in texts])[:, references],
        greatest=np.stack([text.greatest for text in texts])[:, references],
    )


def _directed(role: Role, settings: ScoreSettings) -> str:
    return f"{role.name} {settings.direction}" if role.directions else role.name


def _reference_of(role: Role, settings: ScoreSettings) -> str:
    is_plain = role.weight != "none" and not settings.block_entropy
    return unweighted(role.name) if is_plain else _directed(role, settings)


def _role_score(
    measures: Float[np.ndarray, "text measure layer head"], roles: RoleSet, role: Role, settings: ScoreSettings
) -> Float[np.ndarray, "text layer head"]:
    if settings.direction != "both" or not role.directions:
        return measures[:, roles.measures.index(_reference_of(role, settings))]
    return mean_of_known(
        measures[:, [roles.measures.index(f"{role.name} {direction}") for direction in role.directions]]
    )


def mean_of_known(values: Float[np.ndarray, "text direction *cell"]) -> Float[np.ndarray, "text *cell"]:
    """Mean over directions, ignoring NaN; NaN where all are."""
    is_known = ~np.isnan(values)
    n_known = is_known.sum(axis=1)
    total = np.where(is_known, values, 0).sum(axis=1)
    return np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan).astype(values.dtype)
