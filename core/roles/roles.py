"""The roles that a head can have, and statistics of which heads have which."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.texts.relations import RELATIONS

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
    """The coarse and the finer roles to display for a checkpoint.

    If no text has a delimiter, the attention sink on the first token replaces it among the coarse roles. Otherwise the
    sink is a finer role, if applicable.

    Args:
        scores: scores of one text, or means over several; NaN where a role is not applicable.
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
    """The coarse and the finer roles to display for several checkpoints: the union, coarse if coarse for any of them.

    Args:
        means: mean scores of each checkpoint; numbers of layers and heads may differ.
        roles: names along the role axis.
    """
    shown = [shown_roles(of_checkpoint, roles) for of_checkpoint in means]
    coarse = tuple(role for role in ROLES if any(role in of_checkpoint[0] for of_checkpoint in shown))
    return coarse, tuple(
        role for role in ROLES if role not in coarse and any(role in of_checkpoint[1] for of_checkpoint in shown)
    )


def combinations(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> dict[frozenset[str], tuple[tuple[int, int], ...]]:
    """Heads by their exact combination of roles: the regions of a Venn diagram.

    Args:
        holds: which head has which role.
        roles: names along the role axis.
        of: the roles to combine; roles that are not in `roles` are treated as roles of no head.

    Returns: combination -> its heads as (layer, head), in reading order. Every head is in exactly one combination,
        possibly the empty one; combinations without heads are left out.
    Source: Pande et al. 2021, Venn diagrams per task.
    """
    heads_of: defaultdict[frozenset[str], list[tuple[int, int]]] = defaultdict(list)
    for layer, head in np.ndindex(holds.shape[1:]):
        held = {role for role, is_held in zip(roles, holds[:, layer, head], strict=True) if is_held}
        heads_of[frozenset(held.intersection(of))].append((layer, head))
    return {combination: tuple(heads) for combination, heads in heads_of.items()}


def roles_per_layer(holds: Bool[np.ndarray, "role layer head"]) -> Int[np.ndarray, "role layer"]:
    """Number of heads of each layer that have each role.

    Source: Pande et al. 2021, roles across layers.
    """
    return holds.sum(axis=2)


def heads_with_several(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> Int[np.ndarray, "layer"]:
    """Number of heads of each layer that have two or more of some roles.

    With the coarse roles, finer roles do not count: a head with the roles delimiter and delimiter:cls has one role.
    Source: Pande et al. 2021, multi-functional heads.
    """
    coarse = [role in of for role in roles]
    return (holds[coarse].sum(axis=0) >= 2).sum(axis=1)


def similar_heads(
    mean_scores: Float[np.ndarray, "role layer head"], head: tuple[int, int], *, logarithmic: bool = True
) -> list[tuple[tuple[int, int], float]]:
    """The other heads, sorted by the distance between mean scores, most similar first.

    Args:
        mean_scores: means over texts; a role with NaN for any head is ignored.
        head: layer and head to compare with.
        logarithmic: whether to compare log2(1 + score), which keeps a role with high scores, such as delimiter, from
            deciding alone; shares above chance, of which none is above 1, are compared as they are.

    Returns: (layer, head) and the root mean square difference over the roles: 0 for equal means.
    """
    known = ~np.isnan(mean_scores).any(axis=(1, 2))
    if not known.any():
        return []
    profiles = np.log2(1 + mean_scores[known]) if logarithmic else mean_scores[known]
    distances = np.sqrt(np.square(profiles - profiles[:, head[0], head[1], None, None]).mean(axis=0))
    order = np.argsort(distances, axis=None, kind="stable")
    indices = (np.unravel_index(flat, distances.shape) for flat in order)
    return [((int(i), int(j)), float(distances[i, j])) for i, j in indices if (i, j) != head]
