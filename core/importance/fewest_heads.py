"""A small set of heads without which a model says another word: a greedy search, and sets drawn at random beside it.

Does not import torch: what the model says is measured by whoever searches.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import Head

MOST_HEADS: Final = 5
"""Of a set."""
N_GOING_ON: Final = 3
"""Sets of each size, those with the smallest lead of the word, to which a further head is added."""
N_ADDED: Final = 24
"""Heads that are tried as a further one: those without which, alone, the lead of the word is smallest."""
N_DRAWN: Final = 20
"""Sets drawn at random."""
Heads = tuple[Head, ...]
Measure = Callable[[Sequence[Heads]], Sequence[float]]
"""Lead of the word without each of some sets: its logit minus the highest of the others."""


@dataclass(frozen=True)
class FewestHeads:
    """The smallest set that the search has found."""

    heads: Heads
    """Sorted; none if no set that was tried changes the word."""
    n_tried: int
    """Sets that were measured; among them every head alone."""


def fewest_heads(
    shape: tuple[int, int], measure: Measure, report: Callable[[int, int], None] = lambda done, total: None
) -> FewestHeads:
    """Search for the fewest heads without which a model says another word.

    Every head is tried alone. If none is enough, heads are added to the sets that leave the word the smallest lead, one
    at a time, until the word changes. The search is greedy: from two heads on, it does not try all sets.

    Args:
        shape: number of layers, and of heads in each.
        report: called with the number of sets measured, and of all that may have to be.
    """
    n_layers, n_heads = shape
    most = n_layers * n_heads + (MOST_HEADS - 1) * N_GOING_ON * N_ADDED
    tried: dict[Heads, float] = {}

    def measured(sets: Iterable[Heads]) -> list[Heads]:
        """These sets, that with the smallest lead first."""
        new = [heads for heads in dict.fromkeys(sets) if heads not in tried]
        for layer in sorted({heads[0][0] for heads in new}):  # those that share a first layer share passes
            alike = [heads for heads in new if heads[0][0] == layer]
            tried.update(zip(alike, measure(alike), strict=True))
            report(len(tried), most)
        return sorted(new, key=tried.__getitem__)

    going_on = alone = measured(((layer, head),) for layer in range(n_layers) for head in range(n_heads))
    further = [head for (head,) in alone[:N_ADDED]]
    for n_in_set in range(1, min(MOST_HEADS, len(alone)) + 1):
        if n_in_set > 1:
            grown = [(heads, head) for heads in going_on[:N_GOING_ON] for head in further if head not in heads]
            going_on = measured(tuple(sorted((*heads, head))) for heads, head in grown)
        if tried[going_on[0]] < 0:
            break
    best = min(tried, key=tried.__getitem__)
    return FewestHeads(best if tried[best] < 0 else (), len(tried))


def drawn_at_random(n_in_set: int, shape: tuple[int, int], seed: int = 0) -> list[Heads]:
    """Sets of as many different heads, each drawn from all heads of the model; the same for the same seed."""
    generator = np.random.default_rng(seed)
    n_layers, n_heads = shape
    drawn = (generator.choice(n_layers * n_heads, size=n_in_set, replace=False) for _ in range(N_DRAWN))
    return [tuple(sorted(divmod(int(place), n_heads) for place in places)) for places in drawn]
