"""How well values of heads tell which heads a model needs, and whether the loss rises or falls without each."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from benchmarks.planted.grades.records import ByHead
from benchmarks.planted.statements import LEAST_RISE
from benchmarks.planted.truth import Head, Truth

MISSED: Final = 0.01
"""Part of a measure's greatest value up to which it says that a head does nothing."""
NOTHING: Final = 1e-9
"""Greatest value of a measure that says so of all heads."""


def auroc(values: Sequence[float], is_positive: Sequence[bool]) -> float:
    """The probability that a positive one has a higher value than another one, where equal ones count half.

    Returns: From 0 to 1; NaN without any of either.
    """
    positive = np.array(is_positive, bool)
    n_positive, n_other = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_other:
        return float("nan")
    ranks = rankdata(np.array(values, float))
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_other))


def auroc_of(values: ByHead, positive: Collection[Head], others: Collection[Head]) -> float:
    """The same of heads at their places."""
    places = [*positive, *others]
    return auroc([values[layer][head] for layer, head in places], [True] * len(positive) + [False] * len(others))


def is_nothing(values: ByHead) -> Bool[np.ndarray, "layer head"]:
    """Heads that do nothing by a measure."""
    array = np.array(values, float)
    greatest = np.nanmax(np.abs(array))
    return np.abs(array) <= max(MISSED * greatest, NOTHING)


def is_opposite(values: ByHead, exact: Float[np.ndarray, "layer head"]) -> Bool[np.ndarray, "layer head"]:
    """Heads by which the loss changes, of which a measure says the opposite, and not nothing."""
    array = np.array(values, float)
    return ~is_nothing(values) & (np.sign(array) != np.sign(exact)) & changes(exact)


def changes(exact: Float[np.ndarray, "layer head"]) -> Bool[np.ndarray, "layer head"]:
    """Heads without which the loss is another one, by more than what noise does."""
    return np.abs(exact) >= LEAST_RISE


def exact_rises(truth: Truth) -> Float[np.ndarray, "layer head"]:
    """The rise of the loss without each head, in nats per scored token, by hooks on plain transformers."""
    return np.array(truth.effects.single)


def in_sets(truth: Truth) -> set[Head]:
    """Heads that can go alone, but not together with others."""
    backups = {place for pair in truth.backups for place in (pair.main, pair.backup)}
    return {place for heads in truth.redundant_sets for place in heads} | backups


def idle(truth: Truth) -> list[Head]:
    """Heads that the task needs neither alone nor together with others, and that do no harm."""
    busy = {*truth.needed, *truth.harmful, *in_sets(truth)}
    rises = exact_rises(truth)
    return [head.place for head in truth.heads if head.place not in busy and abs(rises[head.place]) < LEAST_RISE]
