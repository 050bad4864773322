"""Labelled texts, with labels mapped to a checkpoint's classes. Does not import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, ColumnsNeeded, TextError
from attention_sieve.core.finetuning.data import TrainingData, column_names, read_training_data
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.texts.tables import KNOWN_COLUMNS
from attention_sieve.core.texts.text import Text

SHOWN_CLASSES = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTexts:
    """Texts with their correct labels."""

    texts: tuple[Text, ...]
    values: Float[np.ndarray, " text"]
    """Index of the class among the checkpoint's classes, or value of a regression."""
    n_classes: int
    """Of the checkpoint; 0 for a regression."""

    @property
    def items(self) -> tuple[LabelledText, ...]:
        """The texts, each with its label."""
        return tuple(map(LabelledText, self.texts, self.values.tolist()))


def read_labels(
    checkpoint: Checkpoint, name: str, content: bytes, text_columns: tuple[str, ...] | None, label_column: str
) -> LabelledTexts:
    """Read labelled texts from a table.

    Args:
        checkpoint: a classifier or a regression.
        name: of the file: .csv or .tsv, also gzipped.
        content: bytes of the file.
        text_columns: one column, or two for pairs; None to recognise a known header.
        label_column: the column with the labels: names of the checkpoint's classes, their numbers, or values.

    Raises: ColumnsNeeded for an unknown header; TextError for a table that cannot be read; AnalysisError for labels
        that the checkpoint does not know.
    """
    config = checkpoint.full_model.config
    if config.problem_type == "multi_label_classification":
        raise AnalysisError(
            f"{checkpoint.files.name} gives each text several labels, for which there is no score here. Choose the "
            "metric output."
        )
    is_regression = config.num_labels == 1 or config.problem_type == "regression"
    columns = _known_columns(column_names(name, content)) if text_columns is None else text_columns
    data = read_training_data(name, content, columns, label_column, task="regression" if is_regression else "classes")
    if is_regression:
        return LabelledTexts(texts=data.texts, values=np.array(data.labels), n_classes=0)
    indices = class_indices(checkpoint.files.name, config.id2label, data)
    return LabelledTexts(
        texts=data.texts,
        values=np.array([indices[int(label)] for label in data.labels], float),
        n_classes=len(config.id2label),
    )


def class_indices(checkpoint: str, names: Mapping[int, str], data: TrainingData) -> list[int]:
    """Index among a checkpoint's classes of each class of a table, by its name or by its number.

    Raises: AnalysisError for a class that the checkpoint does not know.
    """
    by_name = {str(label): int(index) for index, label in names.items()}
    by_number = {str(index): int(index) for index in names}
    known = by_name if set(data.classes) & set(by_name) else by_number
    unknown = [label for label in data.classes if label not in known]
    if unknown:
        some = ", ".join(f'"{label}"' for label in list(by_name)[:SHOWN_CLASSES])
        more = ", ..." if len(by_name) > SHOWN_CLASSES else ""
        raise AnalysisError(
            f'The table has the label "{unknown[0]}", but {checkpoint} knows {len(by_name)} classes: {some}{more}. '
            "Pick another label column, or a checkpoint that was fine-tuned on such labels."
        )
    return [known[label] for label in data.classes]


def _known_columns(names: Sequence[str]) -> tuple[str, ...]:
    lower_case = [name.lower() for name in names]
    for columns in KNOWN_COLUMNS:
        if set(columns) <= set(lower_case):
            return tuple(names[lower_case.index(column)] for column in columns)
    raise ColumnsNeeded(
        "The first line names no column known to hold texts. Pick the one or two columns.", tuple(names)
    )


def check_label_column(metric: str, label_column: str | None) -> None:
    """Raise TextError if the metric labels has no label column, or if another metric has one."""
    if metric == "labels" and label_column is None:
        raise TextError("The metric labels needs to know which column holds the labels. Option: --label-column.")
    if metric != "labels" and label_column is not None:
        raise TextError(f"The metric {metric} uses no labels. Choose --metric labels, or leave out --label-column.")
