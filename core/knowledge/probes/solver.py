"""Many logistic regressions at once: one batched L-BFGS over all vectors and penalty strengths."""

import math
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TOLERANCE: Final = 1e-6
"""Largest absolute entry of the gradient of the mean loss at which a problem counts as solved."""
MOST_ITERATIONS: Final = 1_000
HISTORY_STEPS: Final = 10
"""Number of last steps from which the curvature is estimated."""
WHOLE_COLUMNS: Final = 512
"""Maximum number of columns for which the initial curvature is a full matrix; beyond that it is the diagonal, as matrix
products would take longer than the steps that they save."""
DECREASE: Final = 1e-4
"""Share of the decrease predicted by the gradient that a step must achieve (Armijo's condition)."""
MOST_HALVINGS: Final = 40
COMPACT_BELOW: Final = 0.75
"""Share of unsolved vectors below which solved ones are dropped, as this may copy the features of the others."""
BLOCK: Final = 64
"""Rows whose largest probabilities are multiplied before the logarithm is taken; with up to 2^15 classes, their product
does not underflow in float64."""
between_steps: Final[ContextVar[Callable[[], None]]] = ContextVar("between_steps", default=lambda: None)
"""Called before each step of `minimise`; may raise, which ends the work."""
ROUNDING: Final = 16 * torch.finfo(torch.float64).eps
"""Relative increase of a loss that counts as rounding error."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Weights that minimise the penalised losses."""

    weights: Float[Tensor, "vector strength output column"]
    """The last column is the intercept. Two classes have one output, the logit of the second."""
    loss: Float[Tensor, "vector strength"]
    """Mean over the rows of the cross-entropy in nats, plus the penalty over the number of rows."""
    gradient: Float[Tensor, "vector strength"]
    """Largest absolute entry of the gradient of this loss."""


def minimise(
    features: Float[Tensor, "vector row column"],
    targets: Float[Tensor, "row class"],
    strengths: Float[Tensor, "vector strength"],
    *,
    penalises_intercept: bool = False,
    start: Float[Tensor, "vector strength output column"] | None = None,
) -> Solution:
    """Minimise the cross-entropy plus strength / 2 times the squared weights, for every vector and strength.

    All problems take steps together; solved ones no longer move, and vectors and strengths with only solved problems
    are dropped. The initial curvature is that at zero weights, so that up to WHOLE_COLUMNS correlated columns need no
    more steps than others.

    Args:
        features: of each row in float64; the last column is all ones, for the intercept.
        targets: share of each class in each row, rows summing to 1.
        strengths: positive; 1 / C of scikit-learn's `LogisticRegression`.
        penalises_intercept: whether the intercept counts as a weight; scikit-learn's does not.
        start: initial weights; None for zero.

    Source: Nocedal and Wright 2006, algorithms 7.4 and 7.5; two classes have one vector of weights, as in
    scikit-learn.
    """
    problem = full_problem = _Problem(features, targets, strengths, penalises_intercept)
    weights, loss, gradient = full_problem.at_zero() if start is None else (start.clone(), *full_problem.loss(start))
    curvature = _Curvature(full_problem.curvature())
    # State of the remaining vectors and strengths, and of all of them.
    state, final = (weights, loss, gradient), (weights.clone(), loss.clone(), gradient.clone())
    index = torch.arange(len(strengths))[:, None], torch.arange(strengths.shape[1])
    for _ in range(MOST_ITERATIONS):
        between_steps.get()()
        unsolved = state[2].abs().amax((-1, -2)) > TOLERANCE
        if not bool(unsolved.all()):
            rows, columns = unsolved.any(1).nonzero()[:, 0], unsolved.any(0).nonzero()[:, 0]
            if not len(rows):
                break
            # Solved vectors stay for a while: dropping them copies the features of all others.
            if len(rows) > COMPACT_BELOW * len(unsolved):
                rows = torch.arange(len(unsolved))
            if (len(rows), len(columns)) != unsolved.shape:
                _put(final, index, state)
                part, index = (rows[:, None], columns), (index[0][rows], index[1][columns])
                state, unsolved = (state[0][part], state[1][part], state[2][part]), unsolved[part]
                curvature, problem = curvature.part(rows, columns), problem.part(rows, columns)
        # Solved problems stand still, so that the answer to one does not depend on those beside it.
        direction = curvature.direction(state[2]).masked_fill_(~unsolved[..., None, None], 0)
        new_state = _step(problem, *state, direction)
        step = new_state[0] - state[0]
        curvature.remember(step, new_state[2] - state[2])
        state = new_state
        # No problem can lower its loss by more than rounding errors: more steps would repeat this one.
        if not bool(step.any()):
            break
    _put(final, index, state)
    weights, loss, gradient = final
    return Solution(weights=weights, loss=loss, gradient=gradient.abs().amax((-1, -2)))


def _put(final: tuple[Tensor, ...], index: tuple[Tensor, Tensor], state: tuple[Tensor, ...]) -> None:
    for target, values in zip(final, state):
        target[index] = values


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
        self._features_by_target = (outputs.T @ features / self._n_rows)[:, None]
        penalty = strengths[..., None, None].repeat(1, 1, 1, features.shape[2]) / self._n_rows
        if not penalises_intercept:
            penalty[..., -1] = 0
        self._penalty = penalty

    def part(self, vectors: Int[Tensor, " part"], strengths: Int[Tensor, " some"]) -> "_Problem":
        """The same problem for some vectors and strengths."""
        part = copy(self)
        part._penalty = self._penalty[vectors[:, None], strengths]
        if len(vectors) < len(self._features):
            first, last = int(vectors[0]), int(vectors[-1])
            if last - first == len(vectors) - 1:
                part._features = self._features[first : last + 1]
            else:
                # Indexed via the transpose, so that columns stay contiguous.
                part._features = self._features.mT[vectors].mT
            part._features_by_target = self._features_by_target[vectors]
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
        gradient = self._features.mean(1)[:, None, None] / n_classes - self._features_by_target
        weights = self._penalty.new_zeros((n_vectors, n_strengths, self._n_outputs, n_columns))
        loss = self._penalty.new_full((n_vectors, n_strengths), math.log(n_classes))
        return weights, loss, gradient.expand_as(weights).clone()

    def curvature(self) -> Float[Tensor, "vector strength column *column"]:
        """Second derivative at zero weights with respect to those of one output, as a matrix or its diagonal."""
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
        # Log-sum-exp of a row from its largest logit and largest probability, without further exponentials.
        if n_outputs == 1:
            # Of two logits, x and 0, the larger is (x + |x|) / 2; of two probabilities, |p - 1/2| + 1/2.
            probabilities = logits.sigmoid()
            largest = (logits.sum(-1) + torch.linalg.vector_norm(logits, 1, dim=-1))[:, :, 0] / 2
            share = (probabilities - 0.5).abs_().add_(0.5)[:, :, 0]
        else:
            probabilities = torch.softmax(logits, 2)
            largest, share = logits.amax(2).sum(-1), probabilities.amax(2)
        # Transposed, as columns are contiguous: faster than the direct product.
        expected = (self._features.mT @ probabilities.view(n_vectors, n_strengths * n_outputs, self._n_rows).mT).mT
        gradient = expected.reshape(weights.shape) / self._n_rows - self._features_by_target + self._penalty * weights
        linear = _dot(weights, self._features_by_target - self._penalty * weights / 2)
        return (largest - _sum_of_logs(share)) / self._n_rows - linear, gradient


def _sum_of_logs(shares: Float[Tensor, "vector strength row"]) -> Float[Tensor, "vector strength"]:
    """Sum of logarithms over the rows, by way of products, which are much faster than logarithms."""
    n_whole = shares.shape[-1] // BLOCK * BLOCK
    blocks, remainder = shares[..., :n_whole].unflatten(-1, (-1, BLOCK)), shares[..., n_whole:]
    return blocks.prod(-1).log_().sum(-1) + remainder.prod(-1).log_()


class _Curvature:
    """Inverse curvature: that at zero weights, updated by the last steps (L-BFGS)."""

    def __init__(self, first: Float[Tensor, "vector strength column *column"]) -> None:
        # Positive definite by its penalty, but where that is lost in rounding beside large features.
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
        """The same curvature for some vectors and strengths."""
        index, part = (vectors[:, None], strengths), copy(self)
        part._inverse = self._inverse[index]
        part._pairs = [(step[index], change[index], inverse[index]) for step, change, inverse in self._pairs]
        part._scale = None if self._scale is None else self._scale[index]
        return part

    def remember(self, step: Tensor, change: Tensor) -> None:
        """Add a step and its change of the gradient; a problem without positive curvature along it ignores the step."""
        product, changes = _dot(step, change), _dot(change, change)
        # Only with positive curvature does the estimate stay positive definite, and its direction downhill.
        is_valid = product > torch.finfo(product.dtype).eps * changes
        inverse = torch.where(is_valid, 1 / product, 0)
        scale = torch.where(is_valid, product / _dot(change, self._times_initial(change)), 1)
        self._scale = scale if self._scale is None else torch.where(is_valid, scale, self._scale)
        pair = step.flatten(2), change.flatten(2), inverse[..., None]
        self._pairs = [*self._pairs[1 - HISTORY_STEPS :], pair]

    def direction(self, gradient: Tensor) -> Tensor:
        """Direction of the next step, by the L-BFGS two-loop recursion."""
        remainder, shares = gradient.flatten(2).clone(), list[Tensor]()
        for step, change, inverse in reversed(self._pairs):
            shares.append((step * remainder).sum(-1, keepdim=True).mul_(inverse))
            remainder.addcmul_(shares[-1], change, value=-1)
        result = self._times_initial(remainder.view_as(gradient))
        if self._scale is not None:
            result *= self._scale[..., None, None]
        flat = result.flatten(2)
        for (step, change, inverse), share in zip(self._pairs, reversed(shares)):
            flat.addcmul_(share - (change * flat).sum(-1, keepdim=True).mul_(inverse), step)
        result = flat.view_as(gradient)
        # Rounding can still turn a direction uphill; the initial curvature never does.
        downhill = _dot(result, gradient) > 0
        if not bool(downhill.all()):
            result = torch.where(downhill[..., None, None], result, self._times_initial(gradient))
        return result.neg_()

    def _times_initial(self, values: Tensor) -> Tensor:
        return values * self._inverse[:, :, None] if self._inverse.dim() == 3 else values @ self._inverse


def _step(
    problem: _Problem, weights: Tensor, loss: Tensor, gradient: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Backtracking line search along a direction; problems whose loss does not fall stay where they are.

    Returns: new weights, loss and gradient.
    """
    # Near the minimum the decrease is smaller than the rounding errors of the loss, and would never be found.
    slope, allowed = _dot(gradient, direction), ROUNDING * loss.abs()
    size, strengths = torch.ones_like(loss), torch.arange(loss.shape[1])
    # A whole step first: close to the minimum it is right, since the curvature scales it.
    new_weights = weights + direction
    new_loss, new_gradient = problem.loss(new_weights)
    for _ in range(MOST_HALVINGS):
        falls: Bool[Tensor, "vector strength"] = new_loss <= loss + DECREASE * size * slope + allowed
        vectors = (~falls).any(1).nonzero()[:, 0]
        if not len(vectors):
            return new_weights, new_loss, new_gradient
        size = torch.where(falls, size, size / 2)
        new_weights[vectors] = weights[vectors] + size[vectors][..., None, None] * direction[vectors]
        new_loss[vectors], new_gradient[vectors] = problem.part(vectors, strengths).loss(new_weights[vectors])
    stays = ~falls
    unchanged = stays[..., None, None]
    return (
        torch.where(unchanged, weights, new_weights),
        torch.where(stays, loss, new_loss),
        torch.where(unchanged, gradient, new_gradient),
    )


def _dot(a: Tensor, b: Tensor) -> Float[Tensor, "vector strength"]:
    return (a * b).sum((-1, -2))
