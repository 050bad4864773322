"""The roles a head can hold, which heads hold which, and how roles overlap."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

RELATIONS: Final = ("nsubj", "dobj", "amod", "advmod")
COARSE_ROLES: Final = ("local", "syntactic", "delimiter", "block")
ROLES: Final = (
    "local",
    "syntactic",
    "delimiter",
    "block",
    "sink",
    "delimiter:cls",
    "delimiter:sep",
    *(f"syntactic:{relation}" for relation in RELATIONS),
)
FINE_ROLES: Final = ROLES[len(COARSE_ROLES) :]


def shown_roles(
    scores: Float[np.ndarray, "role layer head"], roles: tuple[str, ...] = ROLES
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coarse and the finer roles to show of a checkpoint.

    Where no text has a delimiter, the attention sink on the first token takes its place among the coarse ones. Else
    the sink is a finer role, where it applies at all.

    Args:
        scores: of one text, or means over several; NaN where a role is not applicable.
        roles: names along the role axis.
    """
    applies = {role for role, of_role in zip(roles, scores, strict=True) if np.isfinite(of_role).any()}
    if "sink" in applies and "delimiter" not in applies:
        coarse = tuple("sink" if role == "delimiter" else role for role in COARSE_ROLES)
        return coarse, tuple(role for role in FINE_ROLES if role not in coarse and not role.startswith("delimiter"))
    return COARSE_ROLES, tuple(role for role in FINE_ROLES if role != "sink" or role in applies)


def shown_roles_of_all(
    means: Iterable[Float[np.ndarray, "role _ _"]], roles: tuple[str, ...] = ROLES
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coarse and the finer roles to show of several checkpoints together: those of any, coarse where any has it so.

    Args:
        means: mean scores of each checkpoint; their layers and heads may differ in number.
        roles: names along the role axis.
    """
    shown = [shown_roles(of_one, roles) for of_one in means]
    coarse = tuple(role for role in ROLES if any(role in of_one[0] for of_one in shown))
    return coarse, tuple(role for role in ROLES if role not in coarse and any(role in of_one[1] for of_one in shown))


@dataclass(frozen=True)
class Overlap:
    """How many heads two roles share, counted and as shares in [0, 1]; a share of no heads is NaN."""

    first: int
    """Heads that hold the first role."""
    second: int
    """Heads that hold the second role."""
    both: int
    """Heads that hold both."""
    of_first: float
    """Share of the first role's heads that hold both."""
    of_second: float
    """Share of the second role's heads that hold both."""
    of_union: float
    """Share of the heads with either role that hold both."""


def overlap(holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], first: str, second: str) -> Overlap:
    """Heads that hold both of two roles, over every denominator a reader may mean.

    Raises:
        ValueError: a role that `roles` does not name.
    Source: Pande et al. 2021, overlap of local and syntactic heads. The denominator of their 42 % to 88 % (89 % in
        their article) is not recoverable, so all three are given.
    """
    in_first, in_second = holds[roles.index(first)], holds[roles.index(second)]
    of_one, of_other = int(in_first.sum()), int(in_second.sum())
    both, either = int((in_first & in_second).sum()), int((in_first | in_second).sum())
    return Overlap(of_one, of_other, both, *(both / n if n else float("nan") for n in (of_one, of_other, either)))


def combinations(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> dict[frozenset[str], tuple[tuple[int, int], ...]]:
    """Heads by the exact combination of roles they hold: the regions of a Venn diagram.

    Args:
        holds: which head holds which role.
        roles: names along the role axis.
        of: the roles asked about; any of them that `roles` does not name is held by no head.

    Returns: combination -> its heads as (layer, head), in reading order. Every head stands in exactly one combination,
        one that holds none of the roles in the empty one; combinations without heads are left out.
    Source: Pande et al. 2021, Venn diagrams per task.
    """
    found: defaultdict[frozenset[str], list[tuple[int, int]]] = defaultdict(list)
    for layer, head in np.ndindex(holds.shape[1:]):
        held = {role for role, is_held in zip(roles, holds[:, layer, head], strict=True) if is_held}
        found[frozenset(held.intersection(of))].append((layer, head))
    return {combination: tuple(heads) for combination, heads in found.items()}


def roles_per_layer(holds: Bool[np.ndarray, "role layer head"]) -> Int[np.ndarray, "role layer"]:
    """Number of heads of each layer that hold each role.

    Source: Pande et al. 2021, roles across layers.
    """
    return holds.sum(axis=2)


def heads_with_several(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> Int[np.ndarray, "layer"]:
    """Number of heads of each layer that hold two or more of some roles.

    With the coarse roles finer kinds do not count: a head for delimiters and for [CLS] holds one role.
    Source: Pande et al. 2021, multi-functional heads.
    """
    coarse = [role in of for role in roles]
    return (holds[coarse].sum(axis=0) >= 2).sum(axis=1)


def similar_heads(
    mean_scores: Float[np.ndarray, "role layer head"], head: tuple[int, int]
) -> list[tuple[tuple[int, int], float]]:
    """The other heads, most similar first, by how far their mean scores are apart.

    Args:
        mean_scores: over some texts; NaN where a role is not applicable, which leaves the role out for all heads.
        head: layer and head to compare with.

    Returns: (layer, head) and the root mean square difference of log2(1 + score) over the roles: 0 for equal means.
        The logarithm keeps a role with high scores, such as delimiter, from deciding alone.
    """
    known = ~np.isnan(mean_scores).any(axis=(1, 2))
    if not known.any():
        return []
    profiles = np.log2(1 + mean_scores[known])
    distances = np.sqrt(np.square(profiles - profiles[:, head[0], head[1], None, None]).mean(axis=0))
    order = np.argsort(distances, axis=None, kind="stable")
    places = (np.unravel_index(flat, distances.shape) for flat in order)
    return [((int(i), int(j)), float(distances[i, j])) for i, j in places if (i, j) != head]
