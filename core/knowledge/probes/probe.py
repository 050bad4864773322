"""L2-regularised logistic regression on many vectors of the same texts, with strengths selected on the validation part.

Without a validation part, strengths are selected by cross-validation on the training part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.checkpoints.threads import each_on_one_thread
from attention_sieve.core.knowledge.labels import FOLDS, STRENGTHS, TaskLabels, score
from attention_sieve.core.knowledge.probes.solver import TOLERANCE, minimise

ENTRIES: Final = 1 << 24
"""Limit of entries of features and logits in memory at once."""
ENTRIES_OF_THREAD: Final = 3 << 20
"""Entries per thread: with fewer, the overhead of each step dominates, and with more, memory access."""
ROWS_TRANSPOSED: Final = 512
"""Rows transposed at once, so that they fit into the CPU cache."""
CONSTANT: Final = 1e-6
"""Standard deviation of a column, relative to its size, up to which it counts as constant and is not scaled."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """Fitted probes of several vectors at several strengths."""

    mean: Float[Tensor, "vector 1 column"]
    scale: Float[Tensor, "vector 1 column"]
    """Mean and standard deviation of each column over the fitted rows, which standardise the features."""
    weights: Float[Tensor, "vector strength output column_and_one"]
    """As in `attention_sieve.core.knowledge.probes.solver.Solution`."""
    loss: Float[Tensor, "vector strength"]
    """Mean cross-entropy in nats plus penalty, on the fitted rows."""
    gradient: Float[Tensor, "vector strength"]
    """Largest absolute entry of the gradient of the loss."""

    @property
    def n_unsolved(self) -> int:
        """Number of probes that did not converge."""
        return int((self.gradient > TOLERANCE).sum())

    def log_probabilities(
        self, features: Float[np.ndarray, "row vector column"]
    ) -> Float[Tensor, "vector strength class row"]:
        """Natural logarithm of the probability of each class."""
        n_vectors, n_strengths, n_outputs, n_columns = self.weights.shape
        design = _with_ones(features)
        design[..., :-1].sub_(self.mean).div_(self.scale)
        flat = self.weights.reshape(n_vectors, n_strengths * n_outputs, n_columns) @ design.mT
        logits = flat.view(n_vectors, n_strengths, n_outputs, len(features))
        if n_outputs == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=2)
        return logits.log_softmax(2)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbePredictions:
    """Predictions of the probes of many vectors, each at its best strength on the validation part."""

    strength: Float[np.ndarray, " vector"]
    validation: Float[np.ndarray, " vector"]
    """Accuracy, or for a regression Pearson's correlation, on the validation part; without one, by cross-validation."""
    predicted: Float[np.ndarray, "vector test"]
    """Index of the most likely class of each test example, or the expected value."""
    n_unsolved: int
    """Number of probes that did not converge, over all vectors and strengths."""


def fit(
    features: Float[np.ndarray, "row vector column"],
    targets: Float[np.ndarray, "row class"],
    strengths: Float[np.ndarray, "vector strength"],
    *,
    penalises_intercept: bool = False,
    start: Float[Tensor, "vector strength output column_and_one"] | None = None,
) -> Fitted:
    """Fit a probe to each vector at each strength in float64, several vectors per problem and one problem per thread.

    Args:
        features: of each row; every column is standardised to mean 0 and standard deviation 1 over these rows.
        targets: share of each class in the label of each row.
        strengths: one or more for each vector.
        penalises_intercept: as for `attention_sieve.core.knowledge.probes.solver.minimise`.
    """
    n_rows, n_vectors, n_columns = features.shape
    size = max(1, ENTRIES_OF_THREAD // (n_rows * (n_columns + strengths.shape[1] * targets.shape[1])))
    outputs = torch.from_numpy(np.asarray(targets)).double()

    def fit_part(part: slice) -> Fitted:
        part_start = None if start is None else start[part]
        return _fit(features[:, part], outputs, strengths[part], penalises_intercept, part_start)

    parts = each_on_one_thread(fit_part, [slice(first, first + size) for first in range(0, n_vectors, size)])
    return Fitted(**{field.name: torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Fitted)})


def _fit(
    features: Float[np.ndarray, "row vector column"],
    targets: Float[Tensor, "row class"],
    strengths: Float[np.ndarray, "vector strength"],
    penalises_intercept: bool,
    start: Float[Tensor, "vector strength output column_and_one"] | None,
) -> Fitted:
    design = _with_ones(features)
    columns = design[..., :-1]
    mean = columns.mean(1, keepdim=True)
    deviation = torch.linalg.vector_norm(columns.sub_(mean), dim=1, keepdim=True) / len(features) ** 0.5
    scale = torch.where(deviation > CONSTANT * mean.abs(), deviation, 1)
    columns.div_(scale)
    solution = minimise(
        design,
        targets,
        torch.from_numpy(np.asarray(strengths)).double(),
        penalises_intercept=penalises_intercept,
        start=start,
    )
    return Fitted(mean=mean, scale=scale, weights=solution.weights, loss=solution.loss, gradient=solution.gradient)


def probe(
    features: Float[np.ndarray, "example vector column"], labels: TaskLabels, strengths: Sequence[float] = STRENGTHS
) -> ProbePredictions:
    """Fit a probe to each vector on the training part, select its strength on validation, and predict the test part.

    Ties are resolved in favour of the stronger penalty.

    Args:
        features: of all examples of the task; may be mapped from a file.
    """
    grid, results = np.sort(np.asarray(strengths, float))[::-1].copy(), list[ProbePredictions]()
    for chunk in turns_of(features, labels, len(grid)):
        own = features[:, chunk]
        fitted = fit(own[labels.train], labels.targets[labels.train], np.tile(grid, (own.shape[1], 1)))
        results.append(_selected(fitted, own, labels, grid))
    return _joined(results)


def growing(
    features: Float[np.ndarray, "example vector column"],
    labels: TaskLabels,
    steps: Sequence[int],
    strengths: Sequence[float] = STRENGTHS,
) -> ProbePredictions:
    """Probe the first n vectors together, for growing n, each starting from the weights of the one before.

    Args:
        features: of all examples, the vectors in their order.
        steps: numbers of vectors, ascending.

    Returns: one entry for each step.
    """
    grid = np.sort(np.asarray(strengths, float))[::-1].copy()
    results, fitted, n_columns = list[ProbePredictions](), None, features.shape[2]
    for n_vectors in steps:
        concatenated = features[:, :n_vectors].reshape(len(features), 1, n_vectors * n_columns)
        start = None if fitted is None else _with_more_columns(fitted.weights, n_vectors * n_columns)
        fitted = fit(concatenated[labels.train], labels.targets[labels.train], grid[None], start=start)
        results.append(_selected(fitted, concatenated, labels, grid))
    return _joined(results)


def _with_more_columns(
    weights: Float[Tensor, "vector strength output column_and_one"], n_columns: int
) -> Float[Tensor, "vector strength output more_and_one"]:
    """Insert zero weights for new columns before that of the intercept."""
    padded = torch.nn.functional.pad(weights[..., :-1], (0, n_columns + 1 - weights.shape[-1]))
    return torch.cat([padded, weights[..., -1:]], dim=-1)


def _joined(parts: Sequence[ProbePredictions]) -> ProbePredictions:
    return ProbePredictions(
        strength=np.concatenate([part.strength for part in parts]),
        validation=np.concatenate([part.validation for part in parts]),
        predicted=np.concatenate([part.predicted for part in parts]),
        n_unsolved=sum(part.n_unsolved for part in parts),
    )


def turns_of(
    features: Float[np.ndarray, "example vector column"], labels: TaskLabels, n_strengths: int
) -> Iterator[slice]:
    """Chunks of vectors that are processed at once."""
    _, n_vectors, n_columns = features.shape
    entries_of_vector = len(labels.train) * (n_columns + n_strengths * labels.n_classes)
    size = max(1, ENTRIES // entries_of_vector)
    return (slice(start, min(start + size, n_vectors)) for start in range(0, n_vectors, size))


def _selected(
    fitted: Fitted,
    features: Float[np.ndarray, "example vector column"],
    labels: TaskLabels,
    grid: Float[np.ndarray, " strength"],
) -> ProbePredictions:
    scores = _scores(fitted, features, labels, grid)
    best = np.nan_to_num(scores, nan=-np.inf).argmax(axis=1)
    vectors = np.arange(len(best))
    return ProbePredictions(
        strength=grid[best],
        validation=scores[vectors, best],
        predicted=predictions(fitted, features[labels.test], labels)[vectors, best],
        n_unsolved=fitted.n_unsolved,
    )


def _scores(
    fitted: Fitted,
    features: Float[np.ndarray, "example vector column"],
    labels: TaskLabels,
    grid: Float[np.ndarray, " strength"],
) -> Float[np.ndarray, "vector strength"]:
    rows = labels.validation
    if len(rows):
        predicted = predictions(fitted, features[rows], labels)
    else:
        rows = np.random.default_rng(0).permutation(labels.train)
        strengths = np.tile(grid, (features.shape[1], 1))
        parts = []
        for fold in np.array_split(rows, FOLDS):
            other_rows = np.setdiff1d(labels.train, fold)
            fold_fit = fit(features[other_rows], labels.targets[other_rows], strengths, start=fitted.weights)
            parts.append(predictions(fold_fit, features[fold], labels))
        predicted = np.concatenate(parts, axis=-1)
    return score(predicted, labels.gold[rows], labels.bins is not None)


def predictions(
    fitted: Fitted, features: Float[np.ndarray, "row vector column"], labels: TaskLabels
) -> Float[np.ndarray, "vector strength row"]:
    """Index of the most likely class of each row, or for a regression the expected value."""
    logs = fitted.log_probabilities(features)
    if labels.bins is None:
        return logs.argmax(2).double().numpy()
    return np.einsum("vscr,c->vsr", logs.exp().numpy(), labels.bins)


def _with_ones(features: Float[np.ndarray, "row vector column"]) -> Float[Tensor, "vector row column_and_one"]:
    """Features in float64 with a last column of ones; columns are contiguous, which makes products with few weights
    several times faster.
    """
    n_rows, n_vectors, n_columns = features.shape
    design = torch.empty((n_vectors, n_columns + 1, n_rows), dtype=torch.float64)
    design[:, n_columns] = 1
    for start in range(0, n_rows, ROWS_TRANSPOSED):
        rows = slice(start, start + ROWS_TRANSPOSED)
        design[:, :n_columns, rows] = torch.from_numpy(np.ascontiguousarray(features[rows])).permute(1, 2, 0)
    return design.mT
