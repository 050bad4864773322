"""The labels of a task as numbers: what a probe is fitted to, and what it is judged by."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Float32, Int

from core.probing_tasks.task import PARTS, Task

N_BINS: Final = 5
"""Values between which the labels of a regression are shared out; as for the similarity of sentences in the paper. The
probe's loss is the cross-entropy of these shares; the paper's code takes their squared error."""
STRENGTHS: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Half the weight of the squared weights, beside the sum of the rows' losses; 1 / C of scikit-learn."""
FOLDS: Final = 5
"""Of a cross-validation, as in SentEval."""
MAJORITY: Final = "majority"
LENGTH: Final = "length"
WORDS: Final = "bag of words"
"""Names of the baselines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels:
    """Labels of the examples of a task, in their order."""

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]
    """Indices of the examples of each part."""
    targets: Float32[np.ndarray, "example class"]
    """Share of each class in the label of each example: all in one, or for a regression in the two nearest bins."""
    bins: Float[np.ndarray, " class"] | None = None
    """For a regression, the value that each class stands for."""
    values: Float[np.ndarray, " example"] | None = None
    """For a regression, the label of each example."""

    @property
    def n_choosing(self) -> int:
        """Number of examples by which strengths and heads are chosen: the validation part, or without it, training."""
        return len(self.validation) or len(self.train)

    @property
    def n_classes(self) -> int:
        """Number of classes, or of bins."""
        return self.targets.shape[1]

    @property
    def gold(self) -> Float[np.ndarray, " example"]:
        """What should be predicted for each example: the index of its class, or its value."""
        return self.targets.argmax(axis=1).astype(float) if self.values is None else self.values

    def permuted(self, seed: int) -> "Labels":
        """The same labels given to other examples of the same part."""
        rng, order = np.random.default_rng(seed), np.arange(len(self.targets))
        for rows in (self.train, self.validation, self.test):
            order[rows] = rng.permutation(rows)
        values = None if self.values is None else self.values[order]
        return Labels(
            train=self.train,
            validation=self.validation,
            test=self.test,
            targets=self.targets[order],
            bins=self.bins,
            values=values,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """What a baseline predicts for the test part."""

    name: str
    score: float
    """Accuracy, or for a regression Pearson's correlation, NaN where it predicts one value."""
    predicted: Float[np.ndarray, " test"]


def labels_of(task: Task) -> Labels:
    """The labels of a task that `check_task` has accepted."""
    of_part = np.array([example.part for example in task.examples])
    train, validation, test = (np.flatnonzero(of_part == part) for part in PARTS)
    written = [example.label for example in task.examples]
    if task.is_regression:
        values = np.array([float(label) for label in written])
        bins = np.linspace(values[train].min(), values[train].max(), N_BINS)
        targets = _shares(values, bins)
        return Labels(train=train, validation=validation, test=test, targets=targets, bins=bins, values=values)
    place = {name: index for index, name in enumerate(task.classes)}
    targets = np.zeros((len(written), len(place)), np.float32)
    targets[np.arange(len(written)), [place[label] for label in written]] = 1
    return Labels(train=train, validation=validation, test=test, targets=targets)


def score(
    predicted: Float[np.ndarray, "*any row"], gold: Float[np.ndarray, " row"], is_regression: bool
) -> Float[np.ndarray, "*any"]:
    """Accuracy, or Pearson's correlation; NaN where nothing is predicted, or all predictions are the same."""
    if not is_regression:
        return np.where(np.isnan(predicted).any(axis=-1), np.nan, (predicted == gold).mean(axis=-1))
    centred, of_gold = predicted - predicted.mean(axis=-1, keepdims=True), gold - gold.mean()
    sizes = np.sqrt((centred**2).sum(axis=-1) * (of_gold**2).sum())
    varies = (np.ptp(predicted, axis=-1) > 0) & (sizes > 0)
    return np.divide(centred @ of_gold, sizes, out=np.full(sizes.shape, np.nan), where=varies)


def _shares(values: Float[np.ndarray, " example"], bins: Float[np.ndarray, " class"]) -> Float32[np.ndarray, "..."]:
    """Each value as shares of the two bins around it, so that their mean is the value; beyond the bins, of the last.

    Source: Tai et al. 2015, section 4.2, as in SentEval.
    """
    step = (bins[-1] - bins[0]) / (len(bins) - 1)
    place = np.clip((values - bins[0]) / step, 0, len(bins) - 1)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(len(bins)))).astype(np.float32)
