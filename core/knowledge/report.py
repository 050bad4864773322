"""Accuracy of probes on the vectors of heads and layers for a task, with intervals, baselines and controls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.labels import BaselinePredictions, TaskLabels, labels_of, score
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import Vectors, pair_features
from attention_sieve.core.statistics.cases import beats_by_chance
from attention_sieve.core.statistics.means import Correction, adjusted, half_interval, moments, wilson
from attention_sieve.core.texts.text import Text

LAYER: Final = -1
"""Marks the output of a whole layer, in place of a head's index."""
ALPHA: Final = 0.05
"""Level of tests; intervals cover 1 - ALPHA."""


class Estimate(NamedTuple):
    """A score on the test part, and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Selectivity:
    """Accuracy of a probe on a task, compared with its accuracy on a control task."""

    control: Float[np.ndarray, " place"]
    """Score of the same probe with labels permuted within each part. This controls for the probe's capacity; there are
    no types of texts whose labels it could memorise."""
    selectivity: Float[np.ndarray, " place"]
    """Accuracy minus that on the control task."""
    low: Float[np.ndarray, " place"]
    high: Float[np.ndarray, " place"]
    """t interval of the mean difference over the test examples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskReport:
    """Probing results of each head and layer of a checkpoint for a task. A place is a head or the output of a layer."""

    task: str
    is_regression: bool
    """If so, scores are Pearson's correlations instead of accuracies."""
    n_train: int
    n_validation: int
    n_test: int
    layer: Int[np.ndarray, " place"]
    head: Int[np.ndarray, " place"]
    """LAYER for the output of a layer."""
    strength: Float[np.ndarray, " place"]
    """Selected on the validation part; NaN, as are all following values, for a removed head."""
    validation: Float[np.ndarray, " place"]
    accuracy: Float[np.ndarray, " place"]
    """On the test part."""
    low: Float[np.ndarray, " place"]
    high: Float[np.ndarray, " place"]
    """Wilson interval; for a correlation, by Fisher's z."""
    predicted: Float[np.ndarray, "place test"]
    gold: Float[np.ndarray, " test"]
    baselines: tuple[BaselinePredictions, ...]
    p_values: Float[np.ndarray, "baseline place"]
    """One-sided, of "no better than the baseline": McNemar's exact test, not corrected; NaN for a regression."""
    n_unsolved: int
    """Number of probes that did not converge."""

    @property
    def is_head(self) -> Bool[np.ndarray, " place"]:
        """Whether a place is a head."""
        return self.head != LAYER

    @property
    def right(self) -> Bool[np.ndarray, "place test"]:
        """Whether each test example is classified correctly."""
        return self.predicted == self.gold

    @property
    def best_head(self) -> int:
        """Place of the head that is best on the validation part."""
        return self._best(self.is_head)

    @property
    def best_layer(self) -> int:
        """Place of the layer whose output is best on the validation part."""
        return self._best(~self.is_head)

    @property
    def rivals(self) -> Bool[np.ndarray, " place"]:
        """Heads that may be as good as the best one: on the test part it is not significantly better than they are.

        By McNemar's exact one-sided test at ALPHA; all comparisons have to be significant for the best head to be
        settled, so none is corrected. For a regression, heads whose interval reaches the correlation of the best.
        """
        best = self.best_head
        others = self.is_head & ~np.isnan(self.accuracy)
        others[best] = False
        if self.is_regression:
            return others & (self.high >= self.accuracy[best])
        by_chance = np.array([beats_by_chance(self.right[best], right) for right in self.right])
        return others & ~(by_chance < ALPHA)

    def _best(self, is_candidate: Bool[np.ndarray, " place"]) -> int:
        return int(np.where(is_candidate & ~np.isnan(self.validation), self.validation, -np.inf).argmax())

    def head_at(self, place: int) -> Head:
        """Layer and head of a place that is a head."""
        return int(self.layer[place]), int(self.head[place])

    def estimate(self, place: int) -> Estimate:
        """Score of a place with its interval."""
        return Estimate(float(self.accuracy[place]), float(self.low[place]), float(self.high[place]))

    def grid(self, values: Float[np.ndarray, " place"]) -> Float[np.ndarray, "layer head"]:
        """Values of the heads as a grid."""
        grid = np.full((self.layer.max() + 1, self.head.max() + 1), np.nan)
        grid[self.layer[self.is_head], self.head[self.is_head]] = values[self.is_head]
        return grid


def texts_of(task: Task) -> tuple[Text, ...]:
    """The texts that a pass reads; for a task about pairs, all first segments, then all second ones."""
    if all(len(example.text.segments) == 1 for example in task.examples):
        return tuple(example.text for example in task.examples)
    if any(len(example.text.segments) != 2 for example in task.examples):
        raise AnalysisError(f"{task.name} mixes single texts and pairs. Give one or the other.")
    return tuple(Text((example.text.segments[side],)) for side in (0, 1) for example in task.examples)


def features_of(
    task: Task, vectors: Vectors
) -> tuple[Float[np.ndarray, "example layer head column"], Float[np.ndarray, "example layer hidden"]]:
    """Features of each example: its vectors, or for a pair, `pair_features` of the vectors of both texts.

    Args:
        vectors: of `texts_of(task)`.

    Returns: features of heads, and of layers.
    """
    n_examples = len(task.examples)
    if vectors.n_texts == n_examples:
        return vectors.heads, vectors.layers
    heads, layers = (
        pair_features(values[:n_examples], values[n_examples:]) for values in (vectors.heads, vectors.layers)
    )
    return heads, layers


def task_report(task: Task, vectors: Vectors) -> TaskReport:
    """Probe every head and every layer for a task.

    Args:
        task: that `attention_sieve.core.knowledge.task.check_task` accepts.
        vectors: of `texts_of(task)`.

    Source: Jo and Myaeng 2020. Their classifier is trained by RMSprop until the validation accuracy
    stops increasing; here the penalised loss is minimised.
    """
    from attention_sieve.core.knowledge.probes.baselines import baselines

    labels = labels_of(task)
    layer, head = places(vectors.shape)
    strength_and_validation, predicted, n_unsolved = _probed(task, vectors, labels)
    gold = labels.gold[labels.test]
    accuracy = score(predicted, gold, task.is_regression)
    low, high = interval(accuracy, len(gold), task.is_regression)
    found_baselines = baselines(task, labels)
    p_values = np.full((len(found_baselines), len(predicted)), np.nan)
    if not task.is_regression:
        p_values[:] = [beats_by_chance(predicted == gold, baseline.predicted == gold) for baseline in found_baselines]
        p_values[:, np.isnan(accuracy)] = np.nan
    return TaskReport(
        task=task.name,
        is_regression=task.is_regression,
        n_train=len(labels.train),
        n_validation=len(labels.validation),
        n_test=len(labels.test),
        layer=layer,
        head=head,
        strength=strength_and_validation[0],
        validation=strength_and_validation[1],
        accuracy=accuracy,
        low=low,
        high=high,
        predicted=predicted,
        gold=gold,
        baselines=found_baselines,
        p_values=p_values,
        n_unsolved=n_unsolved,
    )


def places(shape: tuple[int, int]) -> tuple[Int[np.ndarray, " place"], Int[np.ndarray, " place"]]:
    """Layer and head of each place: all heads, then the outputs of all layers."""
    n_layers, n_heads = shape
    layers = np.arange(n_layers)
    heads = np.concatenate([np.tile(np.arange(n_heads), n_layers), np.full(n_layers, LAYER)])
    return np.concatenate([np.repeat(layers, n_heads), layers]), heads


def selectivity(task: Task, vectors: Vectors, report: TaskReport, seed: int = 0) -> Selectivity:
    """Train the same probes on permuted labels.

    Args:
        task, vectors: as for `task_report`; a task of classes.

    Source: Hewitt and Liang 2019, whose control task gives every word type a label.
    """
    permuted = labels_of(task).permuted(seed)
    _, predicted, _ = _probed(task, vectors, permuted)
    control_correct = predicted == permuted.gold[permuted.test]
    absent = np.isnan(report.accuracy)
    difference = np.where(absent, np.nan, (report.right.astype(float) - control_correct).T)
    n_rows, mean, squares = moments(difference)
    half = half_interval(n_rows, squares, ALPHA)
    return Selectivity(
        control=np.where(absent, np.nan, control_correct.mean(axis=1)),
        selectivity=mean,
        low=mean - half,
        high=mean + half,
    )


def code_lengths(task: Task, vectors: Vectors, seed: int = 0) -> tuple[Float[np.ndarray, " place"], float]:
    """Online code length of the training labels given each place, and that of the uniform code, in bits.

    Args:
        task, vectors: as for `task_report`; a task of classes.
        seed: of the order of the rows.
    """
    from attention_sieve.core.knowledge.probes.code_length import code_length

    labels, bits = labels_of(task), np.full(len(places(vectors.shape)[0]), np.nan)
    uniform = np.nan
    for rows, features in _groups(task, vectors):
        bits[rows], uniform = code_length(features, labels, seed)
    return bits, uniform


def corrected(
    reports: Sequence[TaskReport], baseline: int = 0, correction: Correction = "holm"
) -> list[Float[np.ndarray, " place"]]:
    """p-values of all heads on all tasks, corrected as one family; NaN for layers.

    Args:
        reports: of one checkpoint.
        baseline: index of the baseline that heads are compared with.
    """
    by_report = [np.where(report.is_head, report.p_values[baseline], np.nan) for report in reports]
    adjusted_values = adjusted(np.concatenate(by_report), correction)
    return np.split(adjusted_values, np.cumsum([len(part) for part in by_report])[:-1])


def interval(
    accuracy: Float[np.ndarray, "*place"], n_rows: int, is_regression: bool
) -> tuple[Float[np.ndarray, "*place"], Float[np.ndarray, "*place"]]:
    """Wilson intervals of accuracies, or of correlations by Fisher's z, low and high; NaN where a score is NaN."""
    if not is_regression:
        low, high = wilson(np.nan_to_num(accuracy) * n_rows, n_rows, ALPHA)
        return np.where(np.isnan(accuracy), np.nan, low), np.where(np.isnan(accuracy), np.nan, high)
    from scipy.stats import norm  # takes half a second

    half = norm.isf(ALPHA / 2) / np.sqrt(n_rows - 3)
    middle = np.arctanh(np.clip(accuracy, -1, 1))
    return np.tanh(middle - half), np.tanh(middle + half)


def _groups(
    task: Task, vectors: Vectors
) -> list[tuple[Int[np.ndarray, " vector"], Float[np.ndarray, "example vector column"]]]:
    """Places whose vectors have the same length, and their features: the heads that are present, and the layers."""
    heads, layers = features_of(task, vectors)
    flat = heads.reshape(len(heads), -1, heads.shape[-1])
    present = np.flatnonzero(~np.isnan(flat[0]).any(axis=-1))
    head_features = flat if len(present) == flat.shape[1] else flat[:, present]
    return [(present, head_features), (flat.shape[1] + np.arange(layers.shape[1]), layers)]


def _probed(
    task: Task, vectors: Vectors, labels: TaskLabels
) -> tuple[Float[np.ndarray, "2 place"], Float[np.ndarray, "place test"], int]:
    """Strength and validation score of each place, its predictions, and the number of probes that did not converge."""
    from attention_sieve.core.knowledge.probes.probe import probe

    n_places = len(places(vectors.shape)[0])
    strength_and_validation, predicted = np.full((2, n_places), np.nan), np.full((n_places, len(labels.test)), np.nan)
    n_unsolved = 0
    for rows, features in _groups(task, vectors):
        probed = probe(features, labels)
        strength_and_validation[:, rows], predicted[rows] = (probed.strength, probed.validation), probed.predicted
        n_unsolved += probed.n_unsolved
    return strength_and_validation, predicted, n_unsolved
