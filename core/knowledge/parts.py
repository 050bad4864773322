"""Splits examples into the parts of a task by whole units: sentences, documents or word forms."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Final

from attention_sieve.core.knowledge.task import PARTS

SHARES: Final = (4, 1, 1)
"""Relative sizes of PARTS; SentEval has 10, 1 and 1, but ten times as many rows."""

Cell = tuple[str, str]
"""Label and stratum."""


def split_units(units: Mapping[str, Mapping[Cell, int]], rng: Random) -> dict[str, str]:
    """Assign units to parts so that the candidates of every cell are divided in the proportions of SHARES.

    Units are assigned in descending order of size, ties shuffled; each goes to the part that lacks the greatest share
    of its target in the unit's cells.

    Args:
        units: number of candidates in each cell, for each unit.
        rng: random number generator.

    Returns: part of each unit.
    """
    totals: Counter[Cell] = Counter()
    for cells in units.values():
        totals.update(cells)
    targets = {
        part: {cell: n * share / sum(SHARES) for cell, n in totals.items()} for part, share in zip(PARTS, SHARES)
    }
    counts: dict[str, Counter[Cell]] = {part: Counter() for part in PARTS}
    order = sorted(units)
    rng.shuffle(order)
    part_of = {}
    for unit in sorted(order, key=lambda unit: -sum(units[unit].values())):
        lacking = {
            part: sum(n * (1 - counts[part][cell] / targets[part][cell]) for cell, n in units[unit].items())
            for part in PARTS
        }
        part_of[unit] = max(PARTS, key=lacking.__getitem__)
        counts[part_of[unit]].update(units[unit])
    return part_of
