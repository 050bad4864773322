"""Probing tasks from labelled tables, .csv or .tsv, with parts from a column or from a split made here."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from attention_sieve.core.errors import TextError
from attention_sieve.core.finetuning.data import column_names, table_of
from attention_sieve.core.knowledge.files.senteval import are_targets, labelled_examples
from attention_sieve.core.knowledge.task import PARTS, Cell, Task, TaskExample, split_units
from attention_sieve.core.texts.text import Text, read_labelled, read_parted

LABEL_COLUMN: Final = "label"
PART_COLUMNS: Final = ("part", "split", "partition")
"""Columns that are recognised as parts if none is given."""
NAMES_OF_PARTS: Final = {
    "tr": "train", "train": "train", "training": "train",
    "va": "validation", "val": "validation", "valid": "validation", "validation": "validation", "dev": "validation",
    "te": "test", "test": "test",
}  # fmt: skip


@dataclass(frozen=True)
class TaskColumns:
    """Which columns of a labelled table hold what."""

    texts: tuple[str, ...] | None = None
    """One, or two for pairs; None to recognise a known header."""
    label: str = LABEL_COLUMN
    part: str | None = None
    """None to use one of PART_COLUMNS, or else to split the rows here."""

    def __post_init__(self) -> None:
        columns = [*(self.texts or ()), self.label, *([self.part] if self.part else [])]
        repeated = next((column for column in columns if columns.count(column) > 1), None)
        if repeated is not None:
            raise TextError(
                f'The column "{repeated}" cannot have two meanings at once. Pick another for texts, labels or parts.'
            )

    @classmethod
    def named(cls, texts: str | None, label: str, part: str | None) -> "TaskColumns":
        """These columns, those of the texts separated by a comma.

        Raises: TextError for a column with two meanings.
        """
        return cls(tuple(name.strip() for name in texts.split(",")) if texts else None, label, part)


USUAL_COLUMNS: Final = TaskColumns()


def read_labelled_task(
    name: str,
    content: bytes,
    columns: TaskColumns = USUAL_COLUMNS,
    *,
    is_regression: bool | None = None,
    seed: int = 0,
) -> Task:
    """Read a task from a labelled table.

    Without a column of parts, rows are split in the proportions of `attention_sieve.core.knowledge.task.SHARES`
    within each class; rows that share a sentence, also in pairs, go into the same part.

    Args:
        name: of the file: .csv or .tsv, also gzipped.
        content: bytes of the file; at most 20 MB when unpacked.
        is_regression: None to decide by the labels.

    Returns: examples in the order of the rows.
    Raises: ColumnsNeeded for an unknown header; TextError, with the line.
    """
    table, suffix = table_of(name, content)
    names = column_names(name, content)
    if columns.part is None:
        columns = replace(columns, part=next((column for column in names if column.lower() in PART_COLUMNS), None))
    if columns.part is None:
        rows = read_labelled(table, suffix, columns.texts, columns.label)
        examples = _split(_checked((*row, "") for row in rows), seed)
        source = f"the labelled table {name}, split into parts by sentence with seed {seed}"
    else:
        examples = _checked(_parted(read_parted(table, suffix, columns.texts, columns.label, columns.part)))
        source = f"the labelled table {name}, parts from its column {columns.part}"
    if is_regression is None:
        is_regression = are_targets(examples)
    return Task(name.partition(".")[0], examples, is_regression, source)


def _checked(rows: Iterable[tuple[int, Text, str, str]]) -> tuple[TaskExample, ...]:
    examples = labelled_examples(rows)
    if not examples:
        raise TextError("The table has a header but no rows. Add one row per text.")
    return examples


def _parted(rows: Iterable[tuple[int, Text, str, str]]) -> Iterator[tuple[int, Text, str, str]]:
    for line, text, label, part in rows:
        if part.lower() not in NAMES_OF_PARTS:
            raise TextError(f'Line {line:,}: the part is "{part[:40]}". Write {", ".join(PARTS)}, or tr, va or te.')
        yield line, text, label, NAMES_OF_PARTS[part.lower()]


def _split(examples: tuple[TaskExample, ...], seed: int) -> tuple[TaskExample, ...]:
    units = _groups([example.text.segments for example in examples])
    is_regression = are_targets(examples)
    cells: dict[str, Counter[Cell]] = defaultdict(Counter)
    for unit, example in zip(units, examples):
        cells[unit]["" if is_regression else example.label, ""] += 1
    part_of = split_units(cells, Random(seed))
    if len(cells) < len(examples) and set(part_of.values()) != set(PARTS):
        raise TextError(
            f"The rows share so many sentences that they fall into {len(cells):,} groups of different size, and no "
            "split gives every part some of them. Add a column with the part of each row."
        )
    return tuple(TaskExample(example.text, example.label, part_of[unit]) for unit, example in zip(units, examples))


def _groups(texts: Sequence[tuple[str, ...]]) -> list[str]:
    """A group name for each text; texts that share a sentence, directly or through other texts, are in one group."""
    parents: dict[str, str] = {}

    def root(sentence: str) -> str:
        while (parent := parents.setdefault(sentence, sentence)) != sentence:
            parents[sentence] = parents.setdefault(parent, parent)
            sentence = parents[sentence]
        return sentence

    for segments in texts:
        for segment in segments[1:]:
            parents[root(segment)] = root(segments[0])
    return [root(segments[0]) for segments in texts]
