"""Comparisons of checkpoints as tables: paired tests, role transitions, and changes of each role."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool

from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.comparison.transitions import RoleChange, Transition
from attention_sieve.core.roles.roles import BY_NAME, role_title
from attention_sieve.core.roles.tables import by_head

PAIRED_FIELDS: Final = ("texts", "mean_a", "mean_b", "difference", "t", "p", "p_adjusted", "wilcoxon_p", "effect")
CHANGE_FIELDS: Final = ("role", "before", "after", "gained", "lost", "kept", "p")


def comparison_table(
    tests: PairedTests,
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role layer head"],
) -> pd.DataFrame:
    """Table of paired tests by role, layer and head, and whether the head has the role under each checkpoint."""
    columns = {name: getattr(tests, name) for name in PAIRED_FIELDS}
    return by_head(tests.roles, {**columns, "holds_a": holds_a, "holds_b": holds_b})


def facts_of_both(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, str]:
    """Metadata of a comparison: what is known of both sides, and, named after its side, where they differ."""
    names = [name for name in {**a, **b} if name not in PAIRED_FIELDS]
    shared = {name: a[name] for name in names if a.get(name) == b.get(name)}
    own = {
        f"{name} {side}": facts[name]
        for name in names
        for side, facts in (("a", a), ("b", b))
        if name not in shared and name in facts
    }
    return own | shared


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
