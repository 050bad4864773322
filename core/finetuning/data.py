"""Labelled texts to fine-tune with: read from a table, checked, and split into training and validation texts."""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from math import isfinite
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.errors import TextError, shortened
from attention_sieve.core.texts.text import MAX_BYTES, Text, read_columns, read_labelled

Task = Literal["classes", "regression"]
MAX_LABELLED: Final = 100_000
MAX_CLASSES: Final = 1_000
MOST_CLASSES_OF_NUMBERS: Final = 10
"""Numeric labels are class names if there are at most this many different values, and otherwise regression targets."""
FEWEST_TEXTS: Final = 4
MAX_LABEL_CHARACTERS: Final = 100
SHOWN_LINES: Final = 5
"""Lines without a label that a message names."""
NAME_OF_A_TABLE: Final = re.compile(r"(\.csv|\.tsv)(\.gz)?$", re.IGNORECASE)
NUMBER: Final = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class TrainingData:
    """Texts with their labels."""

    name: str
    """Name of the file."""
    sha256: str
    """Digest of its bytes."""
    texts: tuple[Text, ...]
    task: Task
    labels: tuple[float, ...]
    """Index into `classes`, or regression target."""
    classes: tuple[str, ...]
    """Names of the classes in order; empty for a regression."""
    text_columns: tuple[str, ...]
    label_column: str

    def subset(self, rows: Bool[np.ndarray, " text"]) -> "TrainingData":
        """Some of the texts, in their order."""
        indices = np.flatnonzero(rows)
        texts, labels = tuple(self.texts[i] for i in indices), tuple(self.labels[i] for i in indices)
        return replace(self, texts=texts, labels=labels)


def read_training_data(
    name: str, content: bytes, text_columns: tuple[str, ...], label_column: str, *, task: Task | None = None
) -> TrainingData:
    """Labelled texts of a table.

    Args:
        name: name of the file: .csv or .tsv, also gzipped (.csv.gz, .tsv.gz).
        content: its bytes, at most 20 MB when unpacked.
        text_columns: one column, or two for pairs.
        label_column: the column with the label of each text.
        task: None to infer it from the labels: numbers with more than 10 different values are regression targets, all
            other labels are classes.

    Returns: texts in the order of the rows; classes sorted by name, or by value if all are numbers.
    Raises: TextError with the line.
    """
    table, suffix = table_of(name, content)
    if label_column in text_columns:
        raise TextError(f'The column "{label_column}" cannot be text and label at once. Pick another for the labels.')
    rows = _rows(table, suffix, text_columns, label_column)
    labels = [(line, label) for line, _, label in rows]
    are_numbers = all(NUMBER.fullmatch(label) for _, label in labels)
    values = [float(label) for _, label in labels] if are_numbers else None
    if task is None:
        is_regression = values is not None and len(set(values)) > MOST_CLASSES_OF_NUMBERS
        task = "regression" if is_regression else "classes"
    classes: tuple[str, ...] = ()
    if task == "regression":
        numbers = _regression_labels(labels, values)
    else:
        classes = _class_names(labels, values)
        index = {name: float(number) for number, name in enumerate(classes)}
        numbers = tuple(index[label] for _, label in labels)
    texts = tuple(text for _, text, _ in rows)
    sha256 = hashlib.sha256(content).hexdigest()
    return TrainingData(name, sha256, texts, task, numbers, classes, text_columns, label_column)


def column_names(name: str, content: bytes) -> tuple[str, ...]:
    """Names of the columns of a table of labelled texts.

    Raises: TextError for a file that is not a table, is empty, or has an unreadable header or a single column.
    """
    names = read_columns(*table_of(name, content))
    if len(names) == 1:
        raise TextError(
            f'The table has one column, "{shortened(names[0])}", and texts and labels need a column each. Add the '
            "labels, or the commas or tabs between the columns."
        )
    return names


def held_out_texts(data: TrainingData, share: float, seed: int) -> Bool[np.ndarray, " text"]:
    """Random stratified validation split; at least one text, and never all texts of a class.

    Args:
        share: between 0 and 1.
    """
    groups = np.zeros(len(data.texts)) if data.task == "regression" else np.array(data.labels)
    names, sizes = np.unique(groups, return_counts=True)
    expected = share * sizes
    counts = np.floor(expected).astype(np.int64)
    n_remaining = max(1, round(share * len(groups))) - counts.sum()
    counts[np.argsort(counts - expected, kind="stable")[:n_remaining]] += 1
    order = np.random.default_rng(seed).permutation(len(groups))
    held_out = np.zeros(len(groups), dtype=bool)
    for name, count in zip(names, np.minimum(counts, sizes - 1)):
        held_out[order[groups[order] == name][:count]] = True
    return held_out


def table_of(name: str, content: bytes) -> tuple[bytes, str]:
    """The unpacked bytes of a table, and its suffix: .csv or .tsv.

    Raises: TextError for another kind of file, and for a file that is empty or cannot be unpacked.
    """
    kind = NAME_OF_A_TABLE.search(name)
    if kind is None:
        raise TextError(f'"{name}" is not a table. Choose a file that ends in .csv, .tsv, .csv.gz or .tsv.gz.')
    table = unpacked(content) if kind[2] else content
    if not table.strip():
        raise TextError("The file is empty. Choose a table with a header and one row per text.")
    return table, kind[1].lower()


def unpacked(content: bytes) -> bytes:
    """The bytes of a gzipped file, up to MAX_BYTES and one more, so that decoding rejects a file that is too large.

    Raises: TextError for a file that cannot be unpacked.
    """
    try:
        with gzip.open(BytesIO(content)) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"The file cannot be unpacked ({error}). Pack it again with gzip, or give it plain.") from None


def _rows(content: bytes, suffix: str, columns: tuple[str, ...], label: str) -> list[tuple[int, Text, str]]:
    rows: list[tuple[int, Text, str]] = []
    unlabelled: list[int] = []
    for line, text, labelled in read_labelled(content, suffix, columns, label):
        if not labelled:
            unlabelled.append(line)
            continue
        check_label(line, labelled)
        if len(rows) == MAX_LABELLED:
            raise TextError(f"There are more than {MAX_LABELLED:,} texts. Choose fewer.")
        rows.append((line, text, labelled))
    refuse_unlabelled(unlabelled)
    if len(rows) < FEWEST_TEXTS:
        raise TextError(f"Labelled texts: {len(rows)}. At least {FEWEST_TEXTS} are needed, so add some.")
    return rows


def refuse_unlabelled(lines: Sequence[int]) -> None:
    """Raise if there are rows without a label.

    Args:
        lines: on which they start, in ascending order.

    Raises: TextError that names the first SHOWN_LINES of them.
    """
    if not lines:
        return
    some, n_more = ", ".join(f"{line:,}" for line in lines[:SHOWN_LINES]), len(lines) - SHOWN_LINES
    more = f" and {n_more:,} more" if n_more > 0 else ""
    many = len(lines) > 1
    raise TextError(
        f"Line{'s' if many else ''} {some}{more}: the label is empty. Fill {'them' if many else 'it'} in or remove the "
        f"row{'s' if many else ''}."
    )


def check_label(line: int, label: str) -> None:
    """Check the label of a row, which is not empty.

    Raises: TextError for a very long one.
    """
    if len(label) > MAX_LABEL_CHARACTERS:
        raise TextError(
            f"Line {line:,}: the label has {len(label):,} characters and at most {MAX_LABEL_CHARACTERS} are "
            "read. Pick the column that holds the labels."
        )


def _class_names(labels: list[tuple[int, str]], values: list[float] | None) -> tuple[str, ...]:
    if values is not None:
        _check_finite(labels, values)
    texts_of = Counter(label for _, label in labels)
    if len(texts_of) == 1:
        raise TextError(
            f'All {len(labels):,} texts have the label "{labels[0][1]}". Add texts of another class, or pick another '
            "column for the labels."
        )
    if len(texts_of) > MAX_CLASSES:
        raise TextError(
            f"There are {len(texts_of):,} classes and at most {MAX_CLASSES:,} can be learned. Pick the column that "
            "holds the labels, or, for numbers to predict, the task regression."
        )
    single = next(((line, label) for line, label in labels if texts_of[label] == 1), None)
    if single is not None:
        raise TextError(
            f'Line {single[0]:,}: the class "{single[1]}" has this text alone, and each needs one for training and '
            "one for validation. Add texts of that class, or, for numbers to predict, choose the task regression."
        )
    return tuple(sorted(texts_of, key=lambda label: (float(label) if values is not None else 0.0, label)))


def _regression_labels(labels: list[tuple[int, str]], values: list[float] | None) -> tuple[float, ...]:
    if values is None:
        line, label = next((line, label) for line, label in labels if not NUMBER.fullmatch(label))
        raise TextError(
            f'Line {line:,}: the label "{label}" is not a number. Correct it, or, for names of classes, choose the '
            "task classes."
        )
    _check_finite(labels, values)
    if len(set(values)) == 1:
        raise TextError(f"All {len(values):,} labels are {labels[0][1]}. Add texts with other values.")
    return tuple(values)


def _check_finite(labels: list[tuple[int, str]], values: list[float]) -> None:
    for (line, label), value in zip(labels, values):
        if not isfinite(value):
            raise TextError(f'Line {line:,}: the label "{label}" is not a finite number. Correct it or remove the row.')
