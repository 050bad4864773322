"""Whether the concatenated vectors of a few heads predict a task better than the output of the best layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.labels import labels_of, score
from attention_sieve.core.knowledge.report import ALPHA, Estimate, TaskReport, features_of, interval
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import Vectors

EVERY: Final = 2
"""Every number of heads is tried up to those of this many layers; beyond that, numbers grow by GROWTH."""
GROWTH: Final = 1.1
RESAMPLES: Final = 2_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Gain:
    """Gain in score of the best n heads over the best layer, relative to the layer, in percent."""

    n_heads: int
    percent: float
    low: float
    high: float
    """Percentile interval of the paired bootstrap over the test examples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reconstruction:
    """Probes of the concatenated vectors of the best n heads."""

    task: str
    is_regression: bool
    heads: tuple[Head, ...]
    """All heads, the best on the validation part first."""
    n_heads: Int[np.ndarray, " step"]
    """How many of them are concatenated."""
    strength: Float[np.ndarray, " step"]
    validation: Float[np.ndarray, " step"]
    accuracy: Float[np.ndarray, " step"]
    low: Float[np.ndarray, " step"]
    high: Float[np.ndarray, " step"]
    """On the test part, as in a `TaskReport`."""
    predicted: Float[np.ndarray, "step test"]
    gold: Float[np.ndarray, " test"]
    n_choosing: int
    """Number of examples of the validation part, or without it, of the training part."""
    n_unsolved: int

    @property
    def enough(self) -> int:
        """The smallest number of heads whose validation score is within one standard error of the best.

        Source: the one-standard-error rule, Breiman et al. 1984.
        """
        best = self.validation.max()
        spread = (1 - best**2) ** 2 if self.is_regression else best * (1 - best)
        return int(self.n_heads[self.validation >= best - np.sqrt(spread / self.n_choosing)].min())

    def step_of(self, n_heads: int) -> int:
        """Index of a number of heads among those that were probed."""
        return int(np.flatnonzero(self.n_heads == n_heads)[0])

    def estimate(self, n_heads: int) -> Estimate:
        """Score of the best n heads together with its interval."""
        step = self.step_of(n_heads)
        return Estimate(float(self.accuracy[step]), float(self.low[step]), float(self.high[step]))


def usual_steps(n_heads: int, per_layer: int, every: int = EVERY, growth: float = GROWTH) -> tuple[int, ...]:
    """Numbers of heads to try: every one up to those of some layers, then ever larger steps, then all.

    Args:
        n_heads: number of heads of the checkpoint.
        per_layer: number of heads of a layer.
        every: of how many layers.
        growth: factor from one larger number to the next.
    """
    steps = list(range(1, min(n_heads, every * per_layer) + 1))
    while (following := round(steps[-1] * growth)) < n_heads:
        steps.append(max(following, steps[-1] + 1))
    return tuple(sorted({*steps, n_heads}))


def reconstruct(task: Task, vectors: Vectors, report: TaskReport, steps: Sequence[int] | None = None) -> Reconstruction:
    """Probe the concatenated vectors of the best n heads for growing n.

    Args:
        task, vectors: as for `attention_sieve.core.knowledge.report.task_report`.
        report: on both; heads are ranked by its scores on the validation part, ties by index.
        steps: numbers of heads, ascending; None for `usual_steps`.

    Raises: AnalysisError for a number of heads that the checkpoint does not have.
    Source: Jo and Myaeng 2020.
    """
    from attention_sieve.core.knowledge.probes.probe import growing

    labels, ranked = labels_of(task), ranking(report)
    counts = tuple(usual_steps(len(ranked), vectors.shape[1]) if steps is None else steps)
    if not counts or not 1 <= min(counts) <= max(counts) <= len(ranked):
        raise AnalysisError(f"The numbers of heads are {counts}. Choose numbers from 1 to {len(ranked)}.")
    heads, _ = features_of(task, vectors)
    ranked_vectors = heads[:, report.layer[ranked], report.head[ranked]]
    probed = growing(ranked_vectors, labels, counts)
    gold = labels.gold[labels.test]
    accuracy = score(probed.predicted, gold, task.is_regression)
    low, high = interval(accuracy, len(gold), task.is_regression)
    return Reconstruction(
        task=task.name,
        is_regression=task.is_regression,
        heads=tuple(map(report.head_at, ranked.tolist())),
        n_heads=np.array(counts),
        strength=probed.strength,
        validation=probed.validation,
        accuracy=accuracy,
        low=low,
        high=high,
        predicted=probed.predicted,
        gold=gold,
        n_choosing=labels.n_choosing,
        n_unsolved=probed.n_unsolved,
    )


def ranking(report: TaskReport) -> Int[np.ndarray, " rank"]:
    """Places of the heads that the checkpoint has, the best on the validation part first; ties by index."""
    heads = np.flatnonzero(report.is_head & ~np.isnan(report.strength))
    return heads[np.argsort(-np.nan_to_num(report.validation[heads], nan=-np.inf), kind="stable")]


def gain(reconstruction: Reconstruction, report: TaskReport, n_heads: int) -> Gain:
    """Gain of the best n heads over the layer that is best on the validation part.

    Args:
        reconstruction: with n_heads among its steps.
        report: of the same task and checkpoint.
        n_heads: number of heads; in the paper, as many as a layer has.

    Source: Jo and Myaeng 2020, which has no interval.
    """
    step = reconstruction.step_of(n_heads)
    predicted = np.stack([reconstruction.predicted[step], report.predicted[report.best_layer]])
    rng, n_rows = np.random.default_rng(0), len(reconstruction.gold)
    if reconstruction.is_regression:
        rows = rng.integers(0, n_rows, (RESAMPLES, n_rows))
        scores = np.array([score(predicted[:, resample], reconstruction.gold[resample], True) for resample in rows]).T
    else:
        scores = _resampled(predicted == reconstruction.gold, rng)
    top, layer = score(predicted, reconstruction.gold, reconstruction.is_regression)
    shares = percent_gain(*scores)
    low, high = np.nanquantile(shares, [ALPHA / 2, 1 - ALPHA / 2])
    return Gain(n_heads=n_heads, percent=float(percent_gain(top, layer)), low=float(low), high=float(high))


def _resampled(
    correct: Bool[np.ndarray, "probe test"], rng: np.random.Generator
) -> Float[np.ndarray, "probe resample"]:
    """Accuracies of two probes on the same test examples, drawn with replacement.

    These depend only on how many examples the first, the second, both or neither classifies correctly.
    """
    kinds = correct[0] * 2 + correct[1]
    counts = rng.multinomial(len(kinds), np.bincount(kinds, minlength=4) / len(kinds), RESAMPLES)
    return np.stack([counts[:, 2] + counts[:, 3], counts[:, 1] + counts[:, 3]]) / len(kinds)


def percent_gain(
    top: Float[np.ndarray, "*any"] | float, layer: Float[np.ndarray, "*any"] | float
) -> Float[np.ndarray, "*any"]:
    """(top - layer) / layer in percent; NaN where the layer's score is 0.

    Source: Jo and Myaeng 2020.
    """
    upper, lower = np.asarray(top, float), np.asarray(layer, float)
    return np.divide(100 * (upper - lower), lower, out=np.full(upper.shape, np.nan), where=lower != 0)
