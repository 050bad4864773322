"""What becomes of the roles: which heads gain, lose and keep them, and in which layers."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from core.errors import AnalysisError
from core.roles import COARSE_ROLES, combinations

Head = tuple[int, int]


@dataclass(frozen=True)
class Transition:
    """Heads that go from one set of roles to another."""

    before: frozenset[str]
    after: frozenset[str]
    heads: tuple[Head, ...]


@dataclass(frozen=True)
class RoleChange:
    """What becomes of one role's heads."""

    role: str
    before: int
    after: int
    gained: int
    lost: int
    kept: int
    p: float
    """McNemar's exact test, two-sided: are heads as likely to gain as to lose the role? 1 where none does either."""


def transitions(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
    of: tuple[str, ...] = COARSE_ROLES,
) -> tuple[Transition, ...]:
    """Heads by the exact roles they hold before and after.

    Args:
        holds_a, holds_b: which head holds which role under the reference, and under the compared checkpoint.
        roles: names along the role axis.
        of: the roles asked about; any of them that `roles` does not name is held by no head.

    Returns: every head stands in exactly one transition, heads in reading order. Those that change anything come first,
        then by number of heads, then in the order of the roles.
    Raises: AnalysisError for other layers or heads; ValueError for roles that do not name the role axis.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    before, after = (
        {head: held for held, heads in combinations(holds, roles, of).items() for head in heads}
        for holds in (holds_a, holds_b)
    )
    found: defaultdict[tuple[frozenset[str], frozenset[str]], list[Head]] = defaultdict(list)
    for head, held in before.items():
        found[held, after[head]].append(head)
    made = [Transition(*sides, tuple(sorted(heads))) for sides, heads in found.items()]

    def order(one: Transition) -> tuple[bool, int, list[int], list[int]]:
        first, second = (sorted(of.index(role) for role in side) for side in (one.before, one.after))
        return one.before == one.after, -len(one.heads), first, second

    return tuple(sorted(made, key=order))


def role_changes(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
) -> tuple[RoleChange, ...]:
    """How many heads gain, lose and keep each role, with McNemar's exact test.

    Raises: AnalysisError for other layers or heads; ValueError for roles that do not name the role axis.
    Source: McNemar 1947, with the binomial distribution instead of the approximation by chi-squared.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    return tuple(_role_change(*of_role) for of_role in zip(roles, holds_a, holds_b))


def _role_change(
    role: str, before: Bool[np.ndarray, "layer head"], after: Bool[np.ndarray, "layer head"]
) -> RoleChange:
    from scipy.stats import binomtest  # half a second, which a page that compares nothing need not wait for

    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return RoleChange(
        role=role,
        before=int(before.sum()),
        after=int(after.sum()),
        gained=gained,
        lost=lost,
        kept=int((before & after).sum()),
        p=float(binomtest(min(gained, lost), gained + lost).pvalue) if gained + lost else 1.0,
    )


def changes_per_layer(
    holds_a: Bool[np.ndarray, "role layer head"], holds_b: Bool[np.ndarray, "role_b layer_b head_b"]
) -> tuple[Int[np.ndarray, "role layer"], Int[np.ndarray, "role layer"]]:
    """Heads of each layer that gain, and that lose, each role.

    Raises: AnalysisError for other layers or heads; ValueError for other roles.
    """
    check_heads(holds_a.shape, holds_b.shape)
    return (holds_b & ~holds_a).sum(axis=2), (holds_a & ~holds_b).sum(axis=2)


def changed_heads(
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role_b layer_b head_b"],
    roles: tuple[str, ...],
    of: tuple[str, ...] = COARSE_ROLES,
) -> Bool[np.ndarray, "layer head"]:
    """Heads that gain or lose any of some roles.

    Raises: AnalysisError for other layers or heads; ValueError for roles that do not name the role axis.
    """
    check_heads(holds_a.shape, holds_b.shape, roles)
    return (holds_a != holds_b)[[role in of for role in roles]].any(axis=0)


def busiest_layers(changed: Bool[np.ndarray, "layer head"]) -> tuple[int, int, int] | None:
    """The shortest run of layers with two thirds of the changed heads: first, last, and how many it holds.

    Returns: None where no head changed. Of runs of one length the one with most heads, then the first.
    """
    per_layer = changed.sum(axis=1)
    total = int(per_layer.sum())
    if not total:
        return None
    runs = (np.convolve(per_layer, np.ones(length, int), "valid") for length in range(1, len(per_layer) + 1))
    held = next(of_runs for of_runs in runs if 3 * of_runs.max() >= 2 * total)
    first = int(held.argmax())
    return first, first + len(per_layer) - len(held), int(held[first])


def depths(n_layers: int) -> Float[np.ndarray, " layer"]:
    """Relative depth of each layer: 0 next to the input, 1 at the output; 0.5 for a single layer."""
    return np.linspace(0, 1, n_layers) if n_layers > 1 else np.full(n_layers, 0.5)


def shares_per_layer(holds: Bool[np.ndarray, "role layer head"]) -> Float[np.ndarray, "role layer"]:
    """Share of each layer's heads that hold each role, 0 to 1, for checkpoints of different shapes."""
    return holds.mean(axis=2)


def check_heads(a: tuple[int, ...], b: tuple[int, ...], roles: tuple[str, ...] | None = None) -> None:
    """Refuse arrays [role layer head] of two checkpoints whose entries do not face each other.

    Args:
        a, b: shapes, the reference first.
        roles: names along the role axis.

    Raises: AnalysisError for other layers or heads; ValueError for roles that do not name the role axis.
    """
    if a[1:] != b[1:]:
        raise AnalysisError(
            f"The reference has {a[1]} layers x {a[2]} heads and the compared checkpoint {b[1]} x {b[2]}, so there are "
            "no same heads to compare. Compare them by layer, or choose two of one shape."
        )
    n_roles = {a[0], b[0]} | ({len(roles)} if roles is not None else set())
    if len(n_roles) > 1:
        raise ValueError(f"{a[0]} and {b[0]} roles for the role names {roles}.")
