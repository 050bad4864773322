"""A probing task: labelled texts in three parts, checks whether a probe can be trained and tested on them, and a split.

Source: Conneau et al. 2018, "What you can cram into a single vector", and the files of SentEval.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from random import Random
from typing import Final

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import NUMBER
from attention_sieve.core.texts.text import Text

PARTS: Final = ("train", "validation", "test")
"""For fitting; for selecting strengths and heads; for testing."""
SHARES: Final = (4, 1, 1)
"""Relative sizes of PARTS; SentEval has 10, 1 and 1, but ten times as many rows."""
LEAST_ROWS: Final = 10
"""Minimum number of examples in a part."""
FEW_TEST_ROWS: Final = 100
"""With fewer, the 95% interval of an accuracy can be about 20 points wide, or wider."""
FEW_ROWS_OF_A_CLASS: Final = 10
"""With fewer training examples, a class is reported as rare."""
MANY_CLASSES: Final = 100
MAX_CLASSES: Final = 1_000
"""As in the word content task of SentEval."""
SHOWN_CLASSES: Final = 5
Cell = tuple[str, str]
"""Label and stratum."""


@dataclass(frozen=True)
class TaskExample:
    """One labelled text of a task."""

    text: Text
    """One segment, or two for a task about pairs."""
    label: str
    """Name of its class; for a regression, its value as text."""
    part: str
    """One of PARTS."""


@dataclass(frozen=True)
class Task:
    """A probing task."""

    name: str
    examples: tuple[TaskExample, ...]
    is_regression: bool = False
    source: str = ""
    """Provenance of the task, in one line."""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The distinct labels, sorted by value where all are numbers, else by name."""
        labels = {example.label for example in self.examples}
        if all(NUMBER.fullmatch(label) for label in labels):
            return tuple(sorted(labels, key=lambda label: (float(label), label)))
        return tuple(sorted(labels))

    def examples_in(self, part: str) -> tuple[TaskExample, ...]:
        """The examples of a part, in their order."""
        return tuple(example for example in self.examples if example.part == part)

    def count(self, part: str) -> int:
        """Number of examples of a part."""
        return sum(example.part == part for example in self.examples)

    def class_counts(self, part: str) -> tuple[int, ...]:
        """Number of examples of each of `classes` in a part."""
        counts = Counter(example.label for example in self.examples if example.part == part)
        return tuple(counts[label] for label in self.classes)


def check_task(task: Task) -> tuple[str, ...]:
    """Raise if no probe can be trained and tested on a task.

    Returns: notes, in full sentences, on why its results are weak; may be empty.
    Raises: AnalysisError for an unknown part, no examples for training or test, or fewer than LEAST_ROWS in a part; for
        a single class, more than MAX_CLASSES, or a class that has no training example; for a regression with a label
        that is no finite number, or with only one value in a part.
    """
    _check_parts(task)
    notes = _regression_notes(task) if task.is_regression else _class_notes(task)
    if not task.count("validation"):
        notes.append(
            "There is no validation part: heads and penalties are chosen by cross-validation on the training part."
        )
    n_test = task.count("test")
    if n_test < FEW_TEST_ROWS:
        notes.append(
            f"The test part has {n_test:,} examples: intervals are wide. Give at least {FEW_TEST_ROWS}, better 1,000."
        )
    return tuple(notes + _repeated_note(task))


def _check_parts(task: Task) -> None:
    unknown = next((example.part for example in task.examples if example.part not in PARTS), None)
    if unknown is not None:
        raise AnalysisError(f'{task.name}: there is no part "{unknown[:40]}". Choose from {", ".join(PARTS)}.')
    for part in PARTS:
        n_rows = task.count(part)
        if not n_rows and part == "validation":
            continue  # strengths are then selected by cross-validation
        if not n_rows:
            raise AnalysisError(
                f"{task.name}: the part {part} is empty. A probe is trained on train and evaluated on test: give "
                "examples of both."
            )
        if n_rows < LEAST_ROWS:
            raise AnalysisError(
                f"{task.name}: the part {part} has {n_rows} example{'' if n_rows == 1 else 's'} and at least "
                f"{LEAST_ROWS} are needed. Add examples."
            )


def _class_notes(task: Task) -> list[str]:
    classes = task.classes
    if len(classes) == 1:
        raise AnalysisError(
            f'{task.name}: all {len(task.examples):,} examples have the label "{classes[0]}". Add examples of another '
            "class, or pick another column for the labels."
        )
    if len(classes) > MAX_CLASSES:
        raise AnalysisError(
            f"{task.name}: there are {len(classes):,} classes and at most {MAX_CLASSES:,} can be learned. Pick the "
            "column that holds the labels, or, for numbers to predict, make it a regression."
        )
    in_train, *others = (task.class_counts(part) for part in PARTS)
    if unseen := [name for name, n_rows in zip(classes, in_train) if not n_rows]:
        raise AnalysisError(
            f"{task.name}: a probe cannot learn a class without training examples. {_named(unseen)} no training "
            "example. Add some, or remove the other examples."
        )
    notes = []
    if len(classes) >= MANY_CLASSES:
        notes.append(
            f"There are {len(classes):,} classes: fitting may take many seconds for each head, at {MAX_CLASSES:,} "
            "classes and thousands of examples some minutes, and an accuracy says little about any one class."
        )
    if rare := [name for name, n_rows in zip(classes, in_train) if n_rows < FEW_ROWS_OF_A_CLASS]:
        notes.append(f"{_named(rare)} fewer than {FEW_ROWS_OF_A_CLASS} training examples.")
    for part, counts in zip(PARTS[1:], others):
        absent = [name for name, n_rows in zip(classes, counts) if not n_rows]
        if absent and any(counts):
            notes.append(f"{_named(absent)} no example in the part {part}.")
    return notes


def _regression_notes(task: Task) -> list[str]:
    for example in task.examples:
        if not NUMBER.fullmatch(example.label) or not isfinite(float(example.label)):
            raise AnalysisError(
                f'{task.name}: the label "{example.label[:40]}" is not a finite number. Correct it, or make it a task '
                "of classes."
            )
    for part in PARTS:
        values = {float(example.label) for example in task.examples_in(part)}
        if len(values) == 1:
            raise AnalysisError(
                f"{task.name}: all labels of the part {part} are {values.pop():g}, and a single value leaves nothing "
                "to predict. Add examples with other values."
            )
    return []


def _repeated_note(task: Task) -> list[str]:
    parts_of: dict[tuple[str, ...], set[str]] = {}
    for example in task.examples:
        parts_of.setdefault(example.text.segments, set()).add(example.part)
    n_repeated = sum(len(parts) > 1 for parts in parts_of.values())
    if not n_repeated:
        return []
    return [
        f"{n_repeated:,} text{' appears' if n_repeated == 1 else 's appear'} in more than one part, so a probe may "
        "memorise what it should predict. Remove them from all parts but one."
    ]


def _named(classes: Sequence[str]) -> str:
    """Some classes and their verb, at the beginning of a sentence."""
    if len(classes) == 1:
        return f'The class "{classes[0]}" has'
    shown = ", ".join(f'"{name}"' for name in classes[:SHOWN_CLASSES])
    more = f" and {len(classes) - SHOWN_CLASSES:,} more" if len(classes) > SHOWN_CLASSES else ""
    return f"{len(classes):,} classes ({shown}{more}) have"


def split_units(units: Mapping[str, Mapping[Cell, int]], rng: Random) -> dict[str, str]:
    """Assign units to parts so that the candidates of every cell are divided in the proportions of SHARES.

    Units are assigned in descending order of size, ties shuffled; each goes to the part that lacks the greatest share
    of its target in the unit's cells.

    Args:
        units: number of candidates in each cell, for each unit.

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
