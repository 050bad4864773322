"""Functions of the remaining heads while heads are removed. Does not import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.importance.verdicts import ALPHA


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptFunction:
    """How many of the heads with a function remain at each step of an order."""

    name: str
    n_removed: Int[np.ndarray, " step"]
    """Heads removed, with this function or without."""
    kept: Int[np.ndarray, " step"]
    expected: Float[np.ndarray, " step"]
    """Mean number that would remain if as many heads were removed at random."""
    low: Int[np.ndarray, " step"]
    high: Int[np.ndarray, " step"]
    """Range of the number that remains in 95% of random removals."""


def kept_functions(
    functions: Mapping[str, Bool[np.ndarray, "layer head"]],
    order: Int[np.ndarray, "removed 2"],
    counts: Sequence[int],
    is_there: Bool[np.ndarray, "layer head"],
) -> list[KeptFunction]:
    """How many heads with each function remain; functions that no head has are left out.

    Args:
        functions: whether each head has it; a head may have several.
        order: layer and head of the heads to remove, in this order.
        counts: heads removed at each step.
        is_there: heads that exist before any of these is removed.

    Source: Voita et al. 2019, figure 8. Their heads are removed by gates during training, and there is no control; the
        random removal here draws from all heads alike (hypergeometric).
    """
    from scipy.stats import hypergeom

    n_removed, n_heads = np.asarray(counts), int(is_there.sum())
    results = []
    for name, has_function in functions.items():
        n_with = int((has_function & is_there).sum())
        if not n_with:
            continue
        removed_has_function = has_function[order[:, 0], order[:, 1]]
        n_lost = np.concatenate([[0], np.cumsum(removed_has_function)])[n_removed]
        random = hypergeom(n_heads, n_with, n_heads - n_removed)
        results.append(
            KeptFunction(
                name=name,
                n_removed=n_removed,
                kept=n_with - n_lost,
                expected=n_with * (n_heads - n_removed) / n_heads,
                low=random.ppf(ALPHA / 2).astype(int),
                high=random.ppf(1 - ALPHA / 2).astype(int),
            )
        )
    return results
