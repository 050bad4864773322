"""The exact combinations of roles, with counts and names, for the Venn diagram and its table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from attention_sieve.dashboard.figures.appearance import LOOKS, RoleLook

NO_ROLE: Final = "no role"


@dataclass(frozen=True)
class Combination:
    """Heads that hold exactly these roles and none of the others."""

    roles: tuple[str, ...]
    """In the order of the given roles; empty for heads without a role."""
    heads: int
    """Number of heads, at least 1."""


@dataclass(frozen=True, kw_only=True)
class Overlaps:
    """Which roles are held by the same heads."""

    roles: Sequence[str]
    """Those that could be tested: of another one it is unknown which heads hold it, which is not that none does."""
    combinations: Mapping[frozenset[str], int]
    """The empty set counts heads without a role."""
    none: str = NO_ROLE
    """What heads without any of these roles are called."""
    looks: Mapping[str, RoleLook] = field(default_factory=lambda: LOOKS)
    """How each of them is drawn and called."""

    @property
    def rows(self) -> list[Combination]:
        """Those that have heads: most common first, then those of fewer roles, then in the roles' order."""
        rows = [
            Combination(tuple(role for role in self.roles if role in held), heads)
            for held, heads in self.combinations.items()
            if heads > 0
        ]
        return sorted(
            rows, key=lambda row: (-row.heads, len(row.roles), [self.roles.index(role) for role in row.roles])
        )

    def total(self, role: str) -> int:
        """Number of heads that hold a role, alone or with others."""
        return sum(heads for held, heads in self.combinations.items() if role in held)


def code(roles: Sequence[str], held: Iterable[str]) -> int:
    """A bit mask: bit k is set if role k is held."""
    return sum(1 << roles.index(role) for role in held)


def exact_name(held: Sequence[str], looks: Mapping[str, RoleLook] = LOOKS) -> str:
    labels = [looks[role].label for role in held]
    if not labels:
        return NO_ROLE
    start = ", ".join(labels[:-1])
    return f"{start} and {labels[-1]} only" if start else f"{labels[-1]} only"


def heads_phrase(heads: int) -> str:
    return "1 head" if heads == 1 else f"{heads} heads"
