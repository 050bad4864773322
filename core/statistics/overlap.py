"""How far two sets of heads overlap."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool


@dataclass(frozen=True)
class Overlap:
    """How many heads two roles share: counts, and proportions in [0, 1] (NaN if the denominator is 0)."""

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
    """Heads that hold both of two roles, as a proportion of each possible denominator.

    Raises:
        ValueError: for a role that is not in `roles`.
    Source: Pande et al. 2021, overlap of local and syntactic heads. The denominator of their 42% to 88% (89% in
        their article) is not recoverable, so all three are given.
    """
    in_first, in_second = holds[roles.index(first)], holds[roles.index(second)]
    n_first, n_second = int(in_first.sum()), int(in_second.sum())
    n_both, n_either = int((in_first & in_second).sum()), int((in_first | in_second).sum())
    return Overlap(
        n_first, n_second, n_both, *(n_both / n if n else float("nan") for n in (n_first, n_second, n_either))
    )
