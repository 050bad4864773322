"""The exact combinations of roles, with counts and names, for the Venn diagram and its table."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from attention_sieve.dashboard.figures.appearance import LOOKS

NO_ROLE: Final = "no role"


@dataclass(frozen=True)
class Combination:
    """Heads that hold exactly these roles and none of the others."""

    roles: tuple[str, ...]
    """In the order of the given roles; empty for heads without a role."""
    heads: int
    """Number of heads, at least 1."""


def ordered(roles: Sequence[str], combinations: Mapping[frozenset[str], int]) -> list[Combination]:
    """The combinations that have heads, most common first, then those of fewer roles, then by the order of the roles.

    Args:
        roles: The roles that are counted.
        combinations: Number of heads by the exact set of their roles.

    Raises:
        ValueError: If a combination has a role that is not in `roles`, or a negative count.
    """
    for held, heads in combinations.items():
        if heads < 0 or not held <= set(roles):
            raise ValueError(
                f"Got {heads} heads for {sorted(held)}; expected 0 or more heads and roles of {list(roles)}."
            )
    result = [
        Combination(tuple(role for role in roles if role in held), heads)
        for held, heads in combinations.items()
        if heads > 0
    ]
    return sorted(
        result,
        key=lambda combination: (
            -combination.heads,
            len(combination.roles),
            [roles.index(role) for role in combination.roles],
        ),
    )


def code(roles: Sequence[str], held: Iterable[str]) -> int:
    """The roles as a bit mask: bit k is set if role k is held."""
    return sum(1 << roles.index(role) for role in held)


def exact_name(held: Sequence[str]) -> str:
    """A combination as text, such as "local and delimiter only"."""
    labels = [LOOKS[role].label for role in held]
    if not labels:
        return NO_ROLE
    start = ", ".join(labels[:-1])
    return f"{start} and {labels[-1]} only" if start else f"{labels[-1]} only"


def heads_phrase(heads: int) -> str:
    """A number of heads as text, such as "1 head"."""
    return "1 head" if heads == 1 else f"{heads} heads"


def total(role: str, combinations: Mapping[frozenset[str], int], untested: Collection[str] = ()) -> int | str:
    """Number of heads that hold a role, alone or with others; a dash for one of the `untested` roles."""
    return "–" if role in untested else sum(heads for held, heads in combinations.items() if role in held)
