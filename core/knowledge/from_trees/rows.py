"""Turns candidates of a task into rows: split into parts, balanced over the classes, reproducible by seed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from attention_sieve.core.knowledge.task import PARTS, SHARES, Cell, TaskExample, split_units
from attention_sieve.core.texts.text import Text

LEAST_ROWS_OF_A_TASK: Final = 300
"""Minimum number of rows of all parts together, which leaves 50 for testing."""
LEAST_OF_A_CLASS: Final = 60
"""Minimum number of rows per class, if the classes can be selected; 10 of them are for testing."""
WANTED_ROWS: Final = 2_000
"""Number of rows to reach, if possible, when the classes are selected."""


@dataclass(frozen=True)
class Candidate:
    """A sentence, original or changed, that may become a row of a task."""

    words: tuple[str, ...]
    label: str
    unit: str
    """Document or form of the key word; all candidates of a unit go into the same part."""
    stratum: str = ""
    """Within each stratum every class has the same number of rows, so that the stratum does not predict the class."""
    part: str | None = None
    """Part, if the task itself determines it; None to split by unit."""


def balanced_rows(candidates: Sequence[Candidate], most: int, rng: Random) -> tuple[TaskExample, ...]:
    """The rows of a task.

    Candidates that repeat an earlier text are dropped. Units are split into parts in the proportions of SHARES;
    then, in each part and stratum, as many candidates of each class are drawn as the rarest class has there.

    Args:
        candidates: in a reproducible order.
        most: maximum number of rows of all parts together.

    Returns: rows by part, shuffled within each; empty if all candidates are of one class.
    """
    distinct = list({candidate.words: candidate for candidate in reversed(candidates)}.values())[::-1]
    labels = sorted({candidate.label for candidate in distinct})
    if len(labels) == 1:
        return ()
    units: dict[str, Counter[Cell]] = defaultdict(Counter)
    for candidate in distinct:
        if candidate.part is None:
            units[candidate.unit][candidate.label, candidate.stratum] += 1
    part_of = split_units(units, rng)
    rows: list[TaskExample] = []
    for part, share in zip(PARTS, SHARES):
        part_candidates = [
            candidate for candidate in distinct if (candidate.part or part_of.get(candidate.unit)) == part
        ]
        drawn = _drawn(part_candidates, labels, most * share // sum(SHARES), rng)
        rng.shuffle(drawn)
        rows += [TaskExample(Text((" ".join(candidate.words),)), candidate.label, part) for candidate in drawn]
    return tuple(rows)


def at_most_of_a_unit(candidates: Sequence[Candidate], share: float, rng: Random) -> list[Candidate]:
    """Candidates limited so that no unit has more than a share of its class; excess ones are dropped at random."""
    class_counts = Counter(candidate.label for candidate in candidates)
    cell_counts: Counter[Cell] = Counter()
    indices = []
    for index in rng.sample(range(len(candidates)), len(candidates)):
        candidate = candidates[index]
        cell = candidate.label, candidate.unit
        if cell_counts[cell] < max(1, share * class_counts[candidate.label]):
            cell_counts[cell] += 1
            indices.append(index)
    return [candidates[index] for index in sorted(indices)]


def most_classes(choices: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Select the classes of a task: the most classes among choices with WANTED_ROWS rows, else those with most rows.

    Args:
        choices: number of balanced rows for each choice of classes; at least LEAST_OF_A_CLASS per class are needed.

    Returns: classes; empty if no choice has enough rows.
    """
    choices = {classes: rows for classes, rows in choices.items() if rows >= LEAST_OF_A_CLASS * len(classes)}
    enough = {classes: rows for classes, rows in choices.items() if rows >= WANTED_ROWS}
    if enough:
        return max(enough, key=lambda classes: (len(classes), enough[classes]))
    return max(choices, key=lambda classes: (choices[classes], len(classes)), default=())


def _drawn(candidates: Sequence[Candidate], labels: Sequence[str], most: int, rng: Random) -> list[Candidate]:
    """Draw the same number of candidates of each class within each stratum."""
    by_cell: dict[Cell, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_cell[candidate.label, candidate.stratum].append(candidate)
    strata = sorted({stratum for _, stratum in by_cell})
    fewest = {stratum: min(len(by_cell[label, stratum]) for label in labels) for stratum in strata}
    n_rows = len(labels) * sum(fewest.values())
    share = min(1.0, most / n_rows) if n_rows else 0.0
    return [
        candidate
        for stratum in strata
        for label in labels
        for candidate in rng.sample(by_cell[label, stratum], int(share * fewest[stratum]))
    ]
