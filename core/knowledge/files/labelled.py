"""Probing tasks from files in SentEval's format (a part, a label and a sentence in each line, separated by tabs) and
from labelled tables, with parts from a column or from a split made here.

Source: the probing sets of Conneau et al. 2018, as facebookresearch/SentEval reads them.
"""

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.finetuning.data import (
    MOST_CLASSES_OF_NUMBERS,
    NUMBER,
    check_label,
    column_names,
    refuse_unlabelled,
    table_of,
)
from attention_sieve.core.knowledge.task import PARTS, Cell, Task, TaskExample, split_units
from attention_sieve.core.texts.text import Text, decoded, read_labelled, read_parted, text_of

MAX_ROWS: Final = 200_000
"""Maximum number of rows; SentEval's files have 120,000."""
MARKS: Final = dict(zip(("tr", "va", "te"), PARTS))
"""First cell of a line -> name of the part."""
_N_CELLS: Final = 3
LABEL_COLUMN: Final = "label"
PART_COLUMNS: Final = ("part", "split", "partition")
"""Columns that are recognised as parts if none is given."""
NAMES_OF_PARTS: Final = {
    "tr": "train", "train": "train", "training": "train",
    "va": "validation", "val": "validation", "valid": "validation", "validation": "validation", "dev": "validation",
    "te": "test", "test": "test",
}  # fmt: skip


def read_senteval(name: str, content: bytes, *, is_regression: bool | None = None) -> Task:
    """Read a task from a file in SentEval's format.

    Args:
        content: bytes of the file, UTF-8, unpacked.
        is_regression: None to decide by the labels, as `are_targets` does.

    Raises: TextError, with the line.
    """
    examples = labelled_examples(_rows(decoded(content)))
    if not examples:
        raise TextError("The file has no rows. Write a part (tr, va or te), a label and a sentence in each line.")
    if is_regression is None:
        is_regression = are_targets(examples)
    return Task(name, examples, is_regression, f"a file in SentEval's format, {name}")


def is_senteval(content: bytes) -> bool:
    """Whether the first line of a file looks as in SentEval's format."""
    cells = content.split(b"\n", 1)[0].split(b"\t")
    return len(cells) == _N_CELLS and cells[0].decode("utf-8", errors="replace").lstrip("\ufeff") in MARKS


def write_senteval(task: Task) -> str:
    """A task as the content of a file in SentEval's format, part by part.

    Raises: AnalysisError for a task about pairs, which the format does not support.
    """
    pair = next((example for example in task.examples if len(example.text.segments) != 1), None)
    if pair is not None:
        raise AnalysisError(f"{task.name} is about pairs, and SentEval's format has one sentence in a line.")
    return "".join(
        f"{mark}\t{example.label}\t{example.text.segments[0]}\n"
        for mark, part in MARKS.items()
        for example in task.examples_in(part)
    )


def are_targets(examples: tuple[TaskExample, ...]) -> bool:
    """Whether labels are regression targets: numbers with more than MOST_CLASSES_OF_NUMBERS distinct values."""
    labels = {example.label for example in examples}
    return all(map(NUMBER.fullmatch, labels)) and len(set(map(float, labels))) > MOST_CLASSES_OF_NUMBERS


def labelled_examples(rows: Iterable[tuple[int, Text, str, str]]) -> tuple[TaskExample, ...]:
    """The examples of a file.

    Args:
        rows: line, text, label and part of each.

    Raises: TextError for too many rows, and for rows without a label or with one that cannot be shown, with the line.
    """
    examples: list[TaskExample] = []
    unlabelled: list[int] = []
    for line, text, label, part in rows:
        if len(examples) == MAX_ROWS:
            raise TextError(f"There are more than {MAX_ROWS:,} rows. Choose fewer.")
        if not label:
            unlabelled.append(line)
            continue
        check_label(line, label)
        if not label.isprintable():
            raise TextError(
                f"Line {line:,}: the label has characters that cannot be shown. Write a plain name or number."
            )
        examples.append(TaskExample(text, label, part))
    refuse_unlabelled(unlabelled)
    return tuple(examples)


def _rows(content: str) -> Iterator[tuple[int, Text, str, str]]:
    for line, row in enumerate(io.StringIO(content, newline=None), start=1):
        if not row.strip():
            continue
        cells = row.removesuffix("\n").split("\t")
        if len(cells) != _N_CELLS:
            raise TextError(
                f"Line {line:,} has {len(cells):,} cell{'' if len(cells) == 1 else 's'} and {_N_CELLS} are expected: "
                "a part, a label and a sentence, separated by tabs."
            )
        mark, label, sentence = cells
        if mark.strip() not in MARKS:
            raise TextError(f'Line {line:,}: the part is "{mark[:40]}". Write tr, va or te.')
        yield line, text_of([sentence], f"Line {line:,}"), label.strip(), MARKS[mark.strip()]


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
