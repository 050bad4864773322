"""Changes of roles between two checkpoints: which heads gain, lose and keep them, and in which layers."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head, head_names, highest_head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.roles import BY_NAME, COARSE_ROLES, combinations, role_title


@dataclass(frozen=True)
class Transition:
    """Heads that change from one set of roles to another."""

    before: frozenset[str]
    after: frozenset[str]
    heads: tuple[Head, ...]


@dataclass(frozen=True)
class RoleChange:
    """Numbers of heads that gain, lose and keep one role."""

    role: str
    before: int
    after: int
    gained: int
    lost: int
    kept: int
    where_gained: tuple[int, int, int] | None
    """Layers with most of the heads that gain it: first, last and number of heads, as in `busiest_layers`."""
    where_lost: tuple[int, int, int] | None
    """The same for the heads that lose it."""

    @property
    def changed(self) -> int:
        """Number of heads that gain or lose it."""
        return self.gained + self.lost

    @property
    def p(self) -> float:
        """McNemar's exact test, two-sided: are heads as likely to gain as to lose the role? 1 if none does either."""
        from scipy.stats import binomtest  # takes half a second, only needed for p

        return float(binomtest(min(self.gained, self.lost), self.changed).pvalue) if self.changed else 1.0


def transitions(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
    chosen: tuple[str, ...] = COARSE_ROLES,
) -> tuple[Transition, ...]:
    """Heads by their exact sets of roles before and after.

    Args:
        holds_a, holds_b: which head has which role under the reference, and under the compared checkpoint.
        roles: names along the role axis.
        chosen: the roles to consider; roles that are not in `roles` are treated as roles of no head.

    Returns: transitions; every head is in exactly one of them, sorted by layer and head. Real changes come first, then
        by number of heads, then in the order of the roles.
    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    before, after = (
        {head: role_set for role_set, heads in combinations(holds, roles, chosen).items() for head in heads}
        for holds in (holds_a, holds_b)
    )
    by_change: defaultdict[tuple[frozenset[str], frozenset[str]], list[Head]] = defaultdict(list)
    for head, role_set in before.items():
        by_change[role_set, after[head]].append(head)
    groups = [Transition(*sides, tuple(sorted(heads))) for sides, heads in by_change.items()]

    def sort_key(transition: Transition) -> tuple[bool, int, list[int], list[int]]:
        before, after = (sorted(chosen.index(role) for role in side) for side in (transition.before, transition.after))
        return transition.before == transition.after, -len(transition.heads), before, after

    return tuple(sorted(groups, key=sort_key))


def role_changes(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
) -> tuple[RoleChange, ...]:
    """How many heads gain, lose and keep each role, with McNemar's exact test.

    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    Source: McNemar 1947, with the binomial distribution instead of the approximation by chi-squared.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    return tuple(_role_change(role, before, after) for role, before, after in zip(roles, holds_a, holds_b))


def _role_change(
    role: str, before: Bool[np.ndarray, "layer head"], after: Bool[np.ndarray, "layer head"]
) -> RoleChange:
    gained, lost = after & ~before, before & ~after
    return RoleChange(
        role=role,
        before=int(before.sum()),
        after=int(after.sum()),
        gained=int(gained.sum()),
        lost=int(lost.sum()),
        kept=int((before & after).sum()),
        where_gained=busiest_layers(gained),
        where_lost=busiest_layers(lost),
    )


def role_moved_most(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role layer head"],
    difference: Float[np.ndarray, "role layer head"],
    roles: tuple[str, ...],
    choices: tuple[str, ...],
) -> str:
    """The role that most heads gain or lose; ties are resolved by the difference of scores.

    Args:
        holds_a, holds_b: which head has which role under the reference, and under the compared checkpoint.
        difference: mean of b - a; NaN where a role is not applicable.
        roles: names along the role axis.
        choices: the roles to choose from, at least one; of roles that tie in both, the first is taken.

    Returns: one of `choices`. The difference of a role's scores is the mean over heads of their absolute difference.
    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    """
    n_changed = {change.role: change.changed for change in role_changes(holds_a, holds_b, roles)}
    sizes = np.nan_to_num(np.abs(difference)).mean(axis=(1, 2))
    return max(choices, key=lambda role: (n_changed[role], sizes[roles.index(role)]))


def head_moved_most(difference: Float[np.ndarray, "layer head"]) -> Head:
    """The head with the largest absolute difference, NaN counting as 0; of ties the first by layer and head."""
    return highest_head(np.nan_to_num(np.abs(difference)))


def changes_per_layer(
    holds_a: Bool[np.ndarray, "role layer head"], holds_b: Bool[np.ndarray, "role_b layer_b head_b"]
) -> tuple[Int[np.ndarray, "role layer"], Int[np.ndarray, "role layer"]]:
    """Number of heads of each layer that gain, and that lose, each role.

    Raises: AnalysisError for different layers or heads; ValueError for different roles.
    """
    check_heads(holds_a.shape, holds_b.shape)
    return (holds_b & ~holds_a).sum(axis=2), (holds_a & ~holds_b).sum(axis=2)


def changed_heads(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
    chosen: tuple[str, ...] = COARSE_ROLES,
) -> Bool[np.ndarray, "layer head"]:
    """Heads that gain or lose any of some roles.

    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    return (holds_a != holds_b)[[role in chosen for role in roles]].any(axis=0)


def busiest_layers(changed: Bool[np.ndarray, "layer head"]) -> tuple[int, int, int] | None:
    """The shortest range of layers with at least two thirds of the changed heads.

    Returns: first layer, last layer and number of changed heads; None if no head changed. Of several ranges of that
        length, the one with the most heads, then the first.
    """
    per_layer = changed.sum(axis=1)
    total = int(per_layer.sum())
    if not total:
        return None
    runs = (np.convolve(per_layer, np.ones(length, int), "valid") for length in range(1, len(per_layer) + 1))
    counts = next(counts_of_runs for counts_of_runs in runs if 3 * counts_of_runs.max() >= 2 * total)
    first = int(counts.argmax())
    return first, first + len(per_layer) - len(counts), int(counts[first])


def depths(n_layers: int) -> Float[np.ndarray, " layer"]:
    """Relative depth of each layer: 0 next to the input, 1 at the output; 0.5 for a single layer."""
    return np.linspace(0, 1, n_layers) if n_layers > 1 else np.full(n_layers, 0.5)


def check_heads(a: tuple[int, ...], b: tuple[int, ...], roles: tuple[str, ...] | None = None) -> None:
    """Raise if two checkpoints differ in shape, so that their heads do not correspond.

    Args:
        a, b: shapes, the reference first.
        roles: names along the role axis.

    Raises: AnalysisError for different layers or heads; ValueError for a wrong number of role names.
    """
    if a[1:] != b[1:]:
        raise AnalysisError(
            f"The reference has {a[1]} layers x {a[2]} heads and the compared checkpoint {b[1]} x {b[2]}, so there are "
            "no pairs of heads to compare. Compare them by layer, or choose two of one shape."
        )
    n_roles = {a[0], b[0]} | ({len(roles)} if roles is not None else set())
    if len(n_roles) > 1:
        raise ValueError(f"{a[0]} and {b[0]} roles for the role names {roles}.")


CHANGE_FIELDS: Final = ("role", "before", "after", "gained", "lost", "kept", "p")


def transition_table(transitions: Sequence[Transition]) -> pd.DataFrame:
    """Table of transitions: roles before and after, and the number and names of the heads."""
    rows = [
        (
            _role_names(transition.before),
            _role_names(transition.after),
            len(transition.heads),
            head_names(transition.heads),
        )
        for transition in transitions
    ]
    return pd.DataFrame(rows, columns=["before", "after", "heads", "which"])


def role_change_table(changes: Sequence[RoleChange]) -> pd.DataFrame:
    """Table of the changes of each role, one row per role; p of McNemar's exact test."""
    return pd.DataFrame(
        [[getattr(change, name) for name in CHANGE_FIELDS] for change in changes], columns=CHANGE_FIELDS
    ).assign(role=[role_title(change.role) for change in changes])


def _role_names(roles: Collection[str]) -> str:
    known = [role for role in BY_NAME if role in roles]
    return ", ".join([*known, *sorted(map(role_title, set(roles) - set(known)))]) or "no role"
