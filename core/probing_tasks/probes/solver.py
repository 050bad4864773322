"""Many logistic regressions at once: one batched L-BFGS over all vectors and all strengths of the penalty."""

import math
from copy import copy
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TOLERANCE: Final = 1e-6
"""Greatest entry of the gradient of the mean loss at which a problem counts as solved."""
MOST_ITERATIONS: Final = 1_000
REMEMBERED: Final = 10
"""Steps from which the curvature is estimated."""
WHOLE_COLUMNS: Final = 512
"""Columns up to which the first guess of the curvature is a whole matrix; its diagonal beyond, where
products with a matrix would take longer than the steps that they save."""
DECREASE: Final = 1e-4
"""Share of the decrease that the gradient promises which a step must bring (Armijo's condition)."""
MOST_HALVINGS: Final = 40
WORTH_LEAVING: Final = 0.75
"""Share of the vectors left at which the solved ones are left out, which may copy the features of the others."""
BLOCK: Final = 64
"""Rows whose greatest probabilities are multiplied before the logarithm is taken; of up to 2^15 classes, their product
is not too small for float64."""
ROUNDING: Final = 16 * torch.finfo(torch.float64).eps
"""Increase of a loss, relative to it, that counts as none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Weights at which the penalised losses are least."""

    weights: Float[Tensor, "vector strength output column"]
    """The last column is the intercept. Two classes have one output, the logit of the second."""
    loss: Float[Tensor, "vector strength"]
    """Mean over the rows of the cross-entropy in nats, plus the penalty over the number of rows."""
    gradient: Float[Tensor, "vector strength"]
    """Greatest absolute entry of the gradient of this loss."""


def minimise(
    features: Float[Tensor, "vector row column"],
    targets: Float[Tensor, "row class"],
    strengths: Float[Tensor, "vector strength"],
    *,
    penalises_intercept: bool = False,
    start: Float[Tensor, "vector strength output column"] | None = None,
) -> Solution:
    """Minimise the cross-entropy plus strength / 2 times the squared weights, for every vector and strength.

    All problems take steps together; one that is solved stays where it is, and vectors and strengths whose problems are
    all solved take no more time. The first guess of the curvature is that at
    zero weights, so that up to WHOLE_COLUMNS correlated columns need no more steps than others.

    Args:
        features: of each row in float64; the last column is all ones, for the intercept.
        targets: share of each class in each row, rows summing to 1.
        strengths: positive; 1 / C of scikit-learn's `LogisticRegression`.
        penalises_intercept: whether the intercept counts as a weight; scikit-learn's does not.
        start: weights to begin with; None for zero.

    Source: Nocedal and Wright 2006, algorithms 7.4 and 7.5; two classes have one vector of weights, as in
    scikit-learn.
    """
    problem = whole = _Problem(features, targets, strengths, penalises_intercept)
    weights, loss, gradient = whole.at_zero() if start is None else (start.clone(), *whole.loss(start))
    curvature = _Curvature(whole.curvature())
    # State of the vectors and strengths that are left, and of all of them.
    now, ends = (weights, loss, gradient), (weights.clone(), loss.clone(), gradient.clone())
    at = torch.arange(len(strengths))[:, None], torch.arange(strengths.shape[1])
    for _ in range(MOST_ITERATIONS):
        unsolved = now[2].abs().amax((-1, -2)) > TOLERANCE
        if not bool(unsolved.all()):
            rows, columns = unsolved.any(1).nonzero()[:, 0], unsolved.any(0).nonzero()[:, 0]
            if not len(rows):
                break
            if len(rows) > WORTH_LEAVING * len(unsolved):
                rows = torch.arange(len(unsolved))
            if (len(rows), len(columns)) != unsolved.shape:
                _put(ends, at, now)
                part, at = (rows[:, None], columns), (at[0][rows], at[1][columns])
                now, unsolved = (now[0][part], now[1][part], now[2][part]), unsolved[part]
                curvature, problem = curvature.part(rows, columns), problem.part(rows, columns)
        direction = curvature.direction(now[2]).masked_fill_(~unsolved[..., None, None], 0)
        moved = _step(problem, *now, direction)
        step = moved[0] - now[0]
        curvature.remember(step, moved[2] - now[2])
        now = moved
        if not bool(step.any()):
            break
    _put(ends, at, now)
    weights, loss, gradient = ends
    return Solution(weights=weights, loss=loss, gradient=gradient.abs().amax((-1, -2)))


def _put(ends: tuple[Tensor, ...], at: tuple[Tensor, Tensor], now: tuple[Tensor, ...]) -> None:
    for end, state in zip(ends, now):
        end[at] = state


class _Problem:
    """The loss of all vectors and strengths as a function of all weights."""

    def __init__(
        self,
        features: Float[Tensor, "vector row column"],
        targets: Float[Tensor, "row class"],
        strengths: Float[Tensor, "vector strength"],
        penalises_intercept: bool,
    ) -> None:
        self._features, self._n_rows = features, features.shape[1]
        # Two classes: the logit of the first is 0.
        outputs = targets[:, 1:] if targets.shape[1] == 2 else targets
        self._n_outputs = outputs.shape[1]
        self._fixed = (outputs.T @ features / self._n_rows)[:, None]
        penalty = strengths[..., None, None].repeat(1, 1, 1, features.shape[2]) / self._n_rows
        if not penalises_intercept:
            penalty[..., -1] = 0
        self._penalty = penalty

    def part(self, vectors: Int[Tensor, " part"], strengths: Int[Tensor, " some"]) -> "_Problem":
        """The same for some vectors and strengths."""
        part = copy(self)
        part._penalty = self._penalty[vectors[:, None], strengths]
        if len(vectors) < len(self._features):
            first, last = int(vectors[0]), int(vectors[-1])
            if last - first == len(vectors) - 1:
                part._features = self._features[first : last + 1]
            else:
                # The transposed, since each column is contiguous and should stay so.
                part._features = self._features.mT[vectors].mT
            part._fixed = self._fixed[vectors]
        return part

    def at_zero(
        self,
    ) -> tuple[
        Float[Tensor, "vector strength output column"],
        Float[Tensor, "vector strength"],
        Float[Tensor, "vector strength output column"],
    ]:
        """Weights that give every class the same probability, with their loss and gradient."""
        n_vectors, n_strengths, _, n_columns = self._penalty.shape
        n_classes = max(2, self._n_outputs)
        gradient = self._features.mean(1)[:, None, None] / n_classes - self._fixed
        weights = self._penalty.new_zeros((n_vectors, n_strengths, self._n_outputs, n_columns))
        loss = self._penalty.new_full((n_vectors, n_strengths), math.log(n_classes))
        return weights, loss, gradient.expand_as(weights).clone()

    def curvature(self) -> Float[Tensor, "vector strength column *column"]:
        """Second derivative at zero weights by those of one output, as a matrix or its diagonal."""
        share = (1 / 4 if self._n_outputs == 1 else 1 / self._n_outputs) / self._n_rows
        penalty = self._penalty[:, :, 0]
        if penalty.shape[-1] > WHOLE_COLUMNS:
            return share * self._features.square().sum(1)[:, None] + penalty
        return share * (self._features.mT @ self._features)[:, None] + torch.diag_embed(penalty)

    def loss(
        self, weights: Float[Tensor, "vector strength output column"]
    ) -> tuple[Float[Tensor, "vector strength"], Float[Tensor, "vector strength output column"]]:
        """Loss and gradient. The part of the loss that is linear in the weights needs no pass over the rows."""
        n_vectors, n_strengths, n_outputs, n_columns = weights.shape
        flat = weights.reshape(n_vectors, n_strengths * n_outputs, n_columns)
        logits = (flat @ self._features.mT).view(n_vectors, n_strengths, n_outputs, self._n_rows)
        # The largest entry of a row alone tells its log-sum-exp, without an exponential per entry.
        if n_outputs == 1:
            probabilities = logits.sigmoid()
            largest = (logits.sum(-1) + torch.linalg.vector_norm(logits, 1, dim=-1))[:, :, 0] / 2
            share = (probabilities - 0.5).abs_().add_(0.5)[:, :, 0]
        else:
            probabilities = torch.softmax(logits, 2)
            largest, share = logits.amax(2).sum(-1), probabilities.amax(2)
        # By columns, which are contiguous: faster than the product the other way round.
        expected = (self._features.mT @ probabilities.view(n_vectors, n_strengths * n_outputs, self._n_rows).mT).mT
        gradient = expected.reshape(weights.shape) / self._n_rows - self._fixed + self._penalty * weights
        linear = _dot(weights, self._fixed - self._penalty * weights / 2)
        return (largest - _sum_of_logs(share)) / self._n_rows - linear, gradient


def _sum_of_logs(shares: Float[Tensor, "vector strength row"]) -> Float[Tensor, "vector strength"]:
    """Sum over the rows; a logarithm takes several times as long as the exponential of a logit, a product hardly any
    time."""
    n_whole = shares.shape[-1] // BLOCK * BLOCK
    blocks, rest = shares[..., :n_whole].unflatten(-1, (-1, BLOCK)), shares[..., n_whole:]
    return blocks.prod(-1).log_().sum(-1) + rest.prod(-1).log_()


class _Curvature:
    """The inverse curvature: that at zero weights, mended by what the last steps showed."""

    def __init__(self, first: Float[Tensor, "vector strength column *column"]) -> None:
        smallest = first.shape[2] * torch.finfo(first.dtype).eps
        if first.dim() == 3:
            self._inverse = 1 / (first + smallest * first.amax(-1, keepdim=True))
        else:
            largest = first.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
            factor = torch.linalg.cholesky(first + smallest * largest * torch.eye(first.shape[2]).to(first))
            self._inverse = torch.cholesky_inverse(factor)
        self._pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self._scale: Tensor | None = None

    def part(self, vectors: Int[Tensor, " part"], strengths: Int[Tensor, " some"]) -> "_Curvature":
        """The same for some vectors and strengths."""
        at, part = (vectors[:, None], strengths), copy(self)
        part._inverse = self._inverse[at]
        part._pairs = [(step[at], change[at], inverse[at]) for step, change, inverse in self._pairs]
        part._scale = None if self._scale is None else self._scale[at]
        return part

    def remember(self, step: Tensor, change: Tensor) -> None:
        """Take a step and the change of the gradient along it; problems that did not move, or not uphill, have none."""
        product, changes = _dot(step, change), _dot(change, change)
        counts = product > torch.finfo(product.dtype).eps * changes
        inverse = torch.where(counts, 1 / product, 0)
        scale = torch.where(counts, product / _dot(change, self._at_first(change)), 1)
        self._scale = scale if self._scale is None else torch.where(counts, scale, self._scale)
        pair = step.flatten(2), change.flatten(2), inverse[..., None]
        self._pairs = [*self._pairs[1 - REMEMBERED :], pair]

    def direction(self, gradient: Tensor) -> Tensor:
        """Where the loss is expected to be least."""
        left, shares = gradient.flatten(2).clone(), list[Tensor]()
        for step, change, inverse in reversed(self._pairs):
            shares.append((step * left).sum(-1, keepdim=True).mul_(inverse))
            left.addcmul_(shares[-1], change, value=-1)
        found = self._at_first(left.view_as(gradient))
        if self._scale is not None:
            found *= self._scale[..., None, None]
        flat = found.flatten(2)
        for (step, change, inverse), share in zip(self._pairs, reversed(shares)):
            flat.addcmul_(share - (change * flat).sum(-1, keepdim=True).mul_(inverse), step)
        found = flat.view_as(gradient)
        downhill = _dot(found, gradient) > 0
        if not bool(downhill.all()):
            found = torch.where(downhill[..., None, None], found, self._at_first(gradient))
        return found.neg_()

    def _at_first(self, values: Tensor) -> Tensor:
        return values * self._inverse[:, :, None] if self._inverse.dim() == 3 else values @ self._inverse


def _step(
    problem: _Problem, weights: Tensor, loss: Tensor, gradient: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Go as far along a direction as the loss falls enough; a problem where it falls nowhere stays.

    Returns: weights, loss and gradient there.
    """
    slope, allowed = _dot(gradient, direction), ROUNDING * loss.abs()
    size, strengths = torch.ones_like(loss), torch.arange(loss.shape[1])
    moved = weights + direction
    new_loss, new_gradient = problem.loss(moved)
    for _ in range(MOST_HALVINGS):
        falls: Bool[Tensor, "vector strength"] = new_loss <= loss + DECREASE * size * slope + allowed
        vectors = (~falls).any(1).nonzero()[:, 0]
        if not len(vectors):
            return moved, new_loss, new_gradient
        size = torch.where(falls, size, size / 2)
        moved[vectors] = weights[vectors] + size[vectors][..., None, None] * direction[vectors]
        new_loss[vectors], new_gradient[vectors] = problem.part(vectors, strengths).loss(moved[vectors])
    stays = ~falls
    where = stays[..., None, None]
    return (
        torch.where(where, weights, moved),
        torch.where(stays, loss, new_loss),
        torch.where(where, gradient, new_gradient),
    )


def _dot(one: Tensor, other: Tensor) -> Float[Tensor, "vector strength"]:
    return (one * other).sum((-1, -2))
