"""The role, and the head for a role, that change most between two checkpoints: what to look at first."""

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.comparison.transitions import role_changes


def role_moved_most(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role layer head"],
    difference: Float[np.ndarray, "role layer head"],
    roles: tuple[str, ...],
    of: tuple[str, ...],
) -> str:
    """The role that most heads gain or lose; ties are resolved by the difference of scores.

    Args:
        holds_a, holds_b: which head has which role under the reference, and under the compared checkpoint.
        difference: mean of b - a; NaN where a role is not applicable.
        roles: names along the role axis.
        of: the roles to choose from, at least one; of roles that tie in both, the first is taken.

    Returns: one of `of`. The difference of a role's scores is the mean over heads of their absolute difference.
    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    """
    n_changed = {change.role: change.changed for change in role_changes(holds_a, holds_b, roles)}
    sizes = np.nan_to_num(np.abs(difference)).mean(axis=(1, 2))
    return max(of, key=lambda role: (n_changed[role], sizes[roles.index(role)]))


def head_moved_most(difference: Float[np.ndarray, "layer head"]) -> Head:
    """The head with the largest absolute difference, NaN counting as 0; of ties the first by layer and head."""
    return highest_head(np.nan_to_num(np.abs(difference)))
