"""Splits examples into the parts of a task, whole units together: sentences, documents or word forms."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Final

from core.probing_tasks.task import PARTS

SHARES: Final = (4, 1, 1)
"""Of PARTS; SentEval has 10, 1 and 1, but of ten times as many rows."""

Cell = tuple[str, str]
"""Label and stratum."""


def split_units(units: Mapping[str, Mapping[Cell, int]], chance: Random) -> dict[str, str]:
    """The part of each unit, so that the candidates of every cell are divided in the shares of SHARES.

    Units come in the order of their sizes, equal ones shuffled; each goes to the part that lacks, of the unit's cells,
    the greatest share of what it should get.

    Args:
        units: number of candidates in each cell, of each unit.
        chance: random numbers.
    """
    totals: Counter[Cell] = Counter()
    for cells in units.values():
        totals.update(cells)
    wanted = {part: {cell: n * share / sum(SHARES) for cell, n in totals.items()} for part, share in zip(PARTS, SHARES)}
    given: dict[str, Counter[Cell]] = {part: Counter() for part in PARTS}
    order = sorted(units)
    chance.shuffle(order)
    part_of = {}
    for unit in sorted(order, key=lambda unit: -sum(units[unit].values())):
        lacking = {
            part: sum(n * (1 - given[part][cell] / wanted[part][cell]) for cell, n in units[unit].items())
            for part in PARTS
        }
        part_of[unit] = max(PARTS, key=lacking.__getitem__)
        given[part_of[unit]].update(units[unit])
    return part_of
