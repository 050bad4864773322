"""The labels of a task as numbers, for fitting and evaluating probes."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Float32, Int

from attention_sieve.core.knowledge.task import PARTS, Task

N_BINS: Final = 5
"""Bins over which the labels of a regression are distributed, as for sentence similarity in the paper. The probe's loss
is the cross-entropy of these shares; the paper's code takes their squared error."""
STRENGTHS: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""L2 penalty: half of it times the squared weights is added to the sum of losses over rows; 1 / C of scikit-learn."""
FOLDS: Final = 5
"""Folds of a cross-validation, as in SentEval."""
MAJORITY: Final = "majority"
LENGTH: Final = "length"
WORDS: Final = "bag of words"
"""Names of the baselines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskLabels:
    """Labels of the examples of a task, in the order of the examples."""

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]
    """Indices of the examples of each part."""
    targets: Float32[np.ndarray, "example class"]
    """Share of each class in the label of each example: one class, or for a regression the two nearest bins."""
    bins: Float[np.ndarray, " class"] | None = None
    """For a regression, the value of each bin."""
    values: Float[np.ndarray, " example"] | None = None
    """For a regression, the label of each example."""

    @property
    def n_choosing(self) -> int:
        """Number of examples that select strengths and heads: the validation part, or without it, the training part."""
        return len(self.validation) or len(self.train)

    @property
    def n_classes(self) -> int:
        """Number of classes, or of bins."""
        return self.targets.shape[1]

    @property
    def gold(self) -> Float[np.ndarray, " example"]:
        """Correct prediction for each example: the index of its class, or its value."""
        return self.targets.argmax(axis=1).astype(float) if self.values is None else self.values

    def permuted(self, seed: int) -> "TaskLabels":
        """The same labels, permuted within each part."""
        rng, order = np.random.default_rng(seed), np.arange(len(self.targets))
        for rows in (self.train, self.validation, self.test):
            order[rows] = rng.permutation(rows)
        values = None if self.values is None else self.values[order]
        return replace(self, targets=self.targets[order], values=values)


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselinePredictions:
    """Predictions of a baseline for the test part."""

    name: str
    score: float
    """Accuracy, or for a regression Pearson's correlation, NaN if the predictions are constant."""
    predicted: Float[np.ndarray, " test"]


def labels_of(task: Task) -> TaskLabels:
    """The labels of a task that `check_task` has accepted."""
    parts = np.array([example.part for example in task.examples])
    train, validation, test = (np.flatnonzero(parts == part) for part in PARTS)
    names = [example.label for example in task.examples]
    if task.is_regression:
        values = np.array([float(label) for label in names])
        bins = np.linspace(values[train].min(), values[train].max(), N_BINS)
        targets = _shares(values, bins)
        return TaskLabels(train=train, validation=validation, test=test, targets=targets, bins=bins, values=values)
    class_index = {name: index for index, name in enumerate(task.classes)}
    targets = np.zeros((len(names), len(class_index)), np.float32)
    targets[np.arange(len(names)), [class_index[label] for label in names]] = 1
    return TaskLabels(train=train, validation=validation, test=test, targets=targets)


def score(
    predicted: Float[np.ndarray, "*any row"], gold: Float[np.ndarray, " row"], is_regression: bool
) -> Float[np.ndarray, "*any"]:
    """Accuracy, or Pearson's correlation; NaN without predictions, or for a correlation if they are constant."""
    if not is_regression:
        return np.where(np.isnan(predicted).any(axis=-1), np.nan, (predicted == gold).mean(axis=-1))
    centred, centred_gold = predicted - predicted.mean(axis=-1, keepdims=True), gold - gold.mean()
    sizes = np.sqrt((centred**2).sum(axis=-1) * (centred_gold**2).sum())
    varies = (np.ptp(predicted, axis=-1) > 0) & (sizes > 0)
    return np.divide(centred @ centred_gold, sizes, out=np.full(sizes.shape, np.nan), where=varies)


def _shares(values: Float[np.ndarray, " example"], bins: Float[np.ndarray, " class"]) -> Float32[np.ndarray, "..."]:
    """Each value as shares of the two nearest bins, whose weighted mean is the value; values outside are clipped.

    Source: Tai et al. 2015, section 4.2, as in SentEval.
    """
    step = (bins[-1] - bins[0]) / (len(bins) - 1)
    position = np.clip((values - bins[0]) / step, 0, len(bins) - 1)
    return np.maximum(0, 1 - np.abs(position[:, None] - np.arange(len(bins)))).astype(np.float32)
