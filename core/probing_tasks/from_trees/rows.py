"""From candidates of a task to its rows: split into parts, balanced over the classes, the same for the same seed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from core.probing_tasks.parts import SHARES, Cell, split_units
from core.probing_tasks.task import PARTS, Example
from core.texts.text import Text

LEAST_ROWS_OF_A_TASK: Final = 300
"""Of all parts together, so that 50 are tested on."""
LEAST_OF_A_CLASS: Final = 60
"""Rows of each class, where the classes can be chosen; 10 of them are tested on."""
WANTED_ROWS: Final = 2_000
"""Classes are chosen so that a task has as many rows, if it can be."""


@dataclass(frozen=True)
class Candidate:
    """A sentence, as it stands in the corpus or changed, that may become a row of a task."""

    words: tuple[str, ...]
    label: str
    unit: str
    """Its document, or its key word form: all candidates of a unit come into the same part."""
    stratum: str = ""
    """Inside each stratum every class gets the same number of rows, so that the stratum tells nothing of the class."""
    part: str | None = None
    """Where the task itself decides; None to go by the unit."""


def balanced_rows(candidates: Sequence[Candidate], most: int, chance: Random) -> tuple[Example, ...]:
    """The rows of a task.

    Of candidates with the same text the first is kept. Units are split into parts in the shares of SHARES; then, in
    each part and stratum, as many candidates of each class are drawn as the rarest class has there.

    Args:
        candidates: in any order that does not depend on chance elsewhere.
        most: rows of all parts together, at most.
        chance: random numbers.

    Returns: rows by part, shuffled inside each; none where all candidates are of one class.
    """
    distinct = list({candidate.words: candidate for candidate in reversed(candidates)}.values())[::-1]
    labels = sorted({candidate.label for candidate in distinct})
    if len(labels) == 1:
        return ()
    part_of = split_units(_cells([one for one in distinct if one.part is None]), chance)
    rows: list[Example] = []
    for part, share in zip(PARTS, SHARES):
        own = [candidate for candidate in distinct if (candidate.part or part_of.get(candidate.unit)) == part]
        drawn = _drawn(own, labels, most * share // sum(SHARES), chance)
        chance.shuffle(drawn)
        rows += [Example(Text((" ".join(candidate.words),)), candidate.label, part) for candidate in drawn]
    return tuple(rows)


def at_most_of_a_unit(candidates: Sequence[Candidate], share: float, chance: Random) -> list[Candidate]:
    """Candidates of which no unit has more than a share of its class; what is too much is left out by chance."""
    of_class = Counter(candidate.label for candidate in candidates)
    of_unit: Counter[Cell] = Counter()
    kept = []
    for place in chance.sample(range(len(candidates)), len(candidates)):
        candidate = candidates[place]
        cell = candidate.label, candidate.unit
        if of_unit[cell] < max(1, share * of_class[candidate.label]):
            of_unit[cell] += 1
            kept.append(place)
    return [candidates[place] for place in sorted(kept)]


def most_classes(choices: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Which classes a task has, out of several choices: the most with WANTED_ROWS rows, else those with most rows.

    Args:
        choices: balanced rows that each choice of classes would give; less than LEAST_OF_A_CLASS a class are too few.

    Returns: classes; none if there are no choices.
    """
    choices = {classes: rows for classes, rows in choices.items() if rows >= LEAST_OF_A_CLASS * len(classes)}
    enough = {classes: rows for classes, rows in choices.items() if rows >= WANTED_ROWS}
    if enough:
        return max(enough, key=lambda classes: (len(classes), enough[classes]))
    return max(choices, key=lambda classes: (choices[classes], len(classes)), default=())


def _cells(candidates: Sequence[Candidate]) -> dict[str, Counter[Cell]]:
    units: dict[str, Counter[Cell]] = defaultdict(Counter)
    for candidate in candidates:
        units[candidate.unit][candidate.label, candidate.stratum] += 1
    return units


def _drawn(candidates: Sequence[Candidate], labels: Sequence[str], most: int, chance: Random) -> list[Candidate]:
    """As many candidates of each class as of the others, in each stratum."""
    by_cell: dict[Cell, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_cell[candidate.label, candidate.stratum].append(candidate)
    strata = sorted({stratum for _, stratum in by_cell})
    fewest = {stratum: min(len(by_cell[label, stratum]) for label in labels) for stratum in strata}
    n_rows = len(labels) * sum(fewest.values())
    kept = min(1.0, most / n_rows) if n_rows else 0.0
    return [
        candidate
        for stratum in strata
        for label in labels
        for candidate in chance.sample(by_cell[label, stratum], int(kept * fewest[stratum]))
    ]
