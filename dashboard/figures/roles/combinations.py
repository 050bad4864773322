"""The exact combinations of roles, as the Venn diagram and its table count and name them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.figures.appearance import LOOKS


@dataclass(frozen=True)
class Combination:
    """Heads that hold exactly these roles and none of the others."""

    roles: tuple[str, ...]
    """In the order in which the roles were asked for; empty for heads without a role."""
    heads: int
    """How many heads, at least 1."""


def ordered(roles: Sequence[str], combinations: Mapping[frozenset[str], int]) -> list[Combination]:
    """The combinations that have heads, most common first, then those of fewer roles, then by the order of the roles.

    Args:
        roles: The roles that are counted.
        combinations: How many heads hold exactly which roles.

    Raises:
        ValueError: A combination names a role that is not among `roles`, or counts less than nothing.
    """
    for held, heads in combinations.items():
        if heads < 0 or not held <= set(roles):
            raise ValueError(
                f"Got {heads} heads for {sorted(held)}; expected 0 or more heads and roles of {list(roles)}."
            )
    listed = [
        Combination(tuple(role for role in roles if role in held), heads)
        for held, heads in combinations.items()
        if heads > 0
    ]
    return sorted(listed, key=lambda each: (-each.heads, len(each.roles), [roles.index(role) for role in each.roles]))


def code(roles: Sequence[str], held: Iterable[str]) -> int:
    """The number whose bit k is set when role k is held."""
    return sum(1 << roles.index(role) for role in held)


def exact_name(held: Sequence[str]) -> str:
    """A combination in words, such as "local and delimiter only"."""
    labels = [LOOKS[role].label for role in held]
    if not labels:
        return "no role"
    start = ", ".join(labels[:-1])
    return f"{start} and {labels[-1]} only" if start else f"{labels[-1]} only"


def heads_phrase(heads: int) -> str:
    """A number of heads in words, such as "1 head"."""
    return "1 head" if heads == 1 else f"{heads} heads"


def total(role: str, combinations: Mapping[frozenset[str], int]) -> int:
    """How many heads hold a role, whatever else they hold."""
    return sum(heads for held, heads in combinations.items() if role in held)
