"""How good a measure of importance is over many planted models, of the program or of another tool."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.planted.grades.ranks import (
    auroc_of,
    changes,
    exact_rises,
    idle,
    in_sets,
    is_nothing,
    is_opposite,
)
from benchmarks.planted.grades.rates import Mean, Rate, mean_over, rate
from benchmarks.planted.grades.records import ByHead, ModelGrades
from benchmarks.planted.truth import Truth

TOLD: Final = 0.5
"""Part of a set's rise that the sum over its heads has to be at least, to tell it."""


@dataclass(frozen=True)
class Scored:
    """The values of one measure in one model."""

    truth: Truth
    values: ByHead
    is_signed: bool


@dataclass(frozen=True)
class Singly:
    """What a measure says of heads whose effect alone is exact."""

    auroc: Mean
    """Of needed heads against idle ones, mean over the models that have no set of redundant heads."""
    missed: Rate
    """Needed heads that do nothing by it."""
    opposite: Rate
    """Heads that change the loss, of which it says the opposite; of no heads where it has no sign."""
    silent: Rate
    """The same heads, of which it says nothing."""


@dataclass(frozen=True)
class Together:
    """What a measure says of heads that are needed only together."""

    redundant: Mean
    """AUROC of heads of redundant sets against idle ones, without backups."""
    backups: Mean
    """AUROC of heads that wait for another one to be off, against idle ones."""
    told: Rate
    """Sets whose rise is at most twice the sum over their heads."""


def by_measure(models: Iterable[ModelGrades]) -> dict[str, list[Scored]]:
    """The values of each measure of the program, in the order in which it gives them."""
    found = dict[str, list[Scored]]()
    for model in models:
        for measure in model.measures:
            found.setdefault(measure.measure, []).append(Scored(model.truth, measure.values, measure.is_signed))
    return found


def singly(scored: Sequence[Scored]) -> Singly:
    """How well values tell needed heads from idle ones, and the sign of each effect.

    Args:
        scored: Of one measure, by model.
    """
    alone = [each for each in scored if not in_sets(each.truth)]
    opposite, silent = list[tuple[int, int]](), list[tuple[int, int]]()
    for each in scored:
        exact = exact_rises(each.truth)
        counted = changes(exact) & each.is_signed
        opposite.append((int((is_opposite(each.values, exact) & counted).sum()), int(counted.sum())))
        silent.append((int((is_nothing(each.values) & counted).sum()), int(counted.sum())))
    missed = [
        (sum(bool(nothing[place]) for place in each.truth.needed), len(each.truth.needed))
        for each, nothing in ((each, is_nothing(each.values)) for each in scored)
    ]
    auroc = mean_over(auroc_of(each.values, each.truth.needed, idle(each.truth)) for each in alone)
    return Singly(auroc, rate(missed), rate(opposite), rate(silent))


def together(scored: Sequence[Scored]) -> Together:
    """How well values tell heads that are needed only together.

    Args:
        scored: Of one measure, by model.
    """
    redundant, backups, told = list[float](), list[float](), list[tuple[int, int]]()
    for each in scored:
        others, later = idle(each.truth), [pair.backup for pair in each.truth.backups]
        members = {place for heads in each.truth.redundant_sets for place in heads}
        if later:
            backups.append(auroc_of(each.values, later, others))
        elif members:
            redundant.append(auroc_of(each.values, sorted(members), others))
        sums = _sums(each) if each.is_signed else []
        told.append((sum(total >= TOLD * rise for total, rise in sums), len(sums)))
    return Together(mean_over(redundant), mean_over(backups), rate(told))


def _sums(scored: Scored) -> list[tuple[float, float]]:
    """Of each redundant set the sum over its heads, and the rise of the loss without all of them."""
    rises: Mapping[frozenset[tuple[int, int]], float] = {
        frozenset(effect.heads): effect.rise for effect in scored.truth.effects.sets
    }
    values = np.array(scored.values, float)
    return [
        (float(sum(values[place] for place in heads)), rises[frozenset(heads)]) for heads in scored.truth.redundant_sets
    ]
