"""Tables of what changes between two checkpoints: transitions between roles, and changes of each role."""

from collections.abc import Collection, Sequence
from typing import Final

import pandas as pd

from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.comparison.transitions import RoleChange, Transition
from attention_sieve.core.roles.roles import BY_NAME, role_title

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
