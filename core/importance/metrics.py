"""Metrics that importance is measured for: outcomes of single texts, and scores computed from them; imports no torch.

A score is a function of sums over texts, so that a bootstrap over texts is one matrix product: each text contributes
a few numbers, such as which class it has and which is predicted, and the score follows from their sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.statistics.means import ratio

ScoreName = Literal["change", "loss", "accuracy", "matthews", "f1", "pearson"]
SCORE_NAMES: Final[dict[Metric, tuple[ScoreName, ...]]] = {
    "output": ("change",),
    "lm": ("loss",),
    "labels": ("accuracy", "loss", "matthews", "f1", "pearson"),
}
"""By metric, the default first."""
COUNTS: Final = ("right", "true", "predicted")
"""Counts that classification scores are computed from, by class: texts correctly predicted as it, of it, predicted as
it."""
_ByClass = Float[np.ndarray, "*cell class"]
SMALLER_IS_BETTER: Final = ("change", "loss")


@dataclass(frozen=True, eq=False, kw_only=True)
class TextOutcomes:
    """Outcome of one text with all heads on, and with each head ablated in turn."""

    full: Float[np.ndarray, " part"]
    """Output: 0. Language model: its loss in nats per token. Labels: the logits of the classes, or the value."""
    without: Float[np.ndarray, "*cell part"]
    """The same with this head off, or with it alone on in its layer: "layer head part"; or with one head of each layer
    on, of which head and layer make one cell: "layer part"."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """A score of outcomes: the contribution of each text, and the score as a function of their sums."""

    name: ScoreName
    contributions: Callable[[Float[np.ndarray, "text *cell part"]], Float[np.ndarray, "text *cell term"]]
    from_sums: Callable[[Float[np.ndarray, "*cell term"]], Float[np.ndarray, "*cell"]]

    @property
    def sign(self) -> int:
        """1 if a larger score is worse, otherwise -1: times a change, this gives the damage."""
        return 1 if self.name in SMALLER_IS_BETTER else -1

    def of(self, outcomes: Float[np.ndarray, "text *cell part"]) -> Float[np.ndarray, "*cell"]:
        """Score of all texts together."""
        return self.from_sums(self.contributions(outcomes).sum(axis=0))


def mean_score(name: ScoreName) -> Score:
    """Mean over texts of outcomes that are single numbers: "change" or "loss"."""
    return Score(name=name, contributions=_with_count, from_sums=_mean)


def label_score(name: ScoreName, labels: Float[np.ndarray, " text"], n_classes: int) -> Score:
    """A score of a classifier or a regression on labelled texts.

    Args:
        name: accuracy, matthews and f1 for classes; pearson for a regression; loss (cross-entropy in nats, or squared
            error) for both.
        labels: index of each text's class, or its value.
        n_classes: 0 for a regression.

    Raises: AnalysisError for a score that these labels do not have.
    Source: f1 is that of the second class for two classes (as GLUE's MRPC), the mean over the classes for more;
        matthews is Gorodkin's generalisation to any number of classes (2004).
    """
    if (name == "pearson") == (n_classes > 0) and name != "loss":
        choices = "accuracy, loss, matthews or f1" if n_classes else "pearson or loss"
        labelling = "classes" if n_classes else "values of a regression"
        raise AnalysisError(f"The labels are {labelling}, which have no score {name}. Choose {choices}.")
    if name == "pearson":
        return Score(name=name, contributions=lambda values: _moments(values, labels), from_sums=_pearson)
    classes = labels.astype(int)
    if name == "loss":
        loss = (
            (lambda values: _cross_entropy(values, classes))
            if n_classes
            else (lambda v: np.square(v - _along_texts(labels, v))[..., 0])
        )
        return Score(name=name, contributions=lambda values: _with_count(loss(values)[..., None]), from_sums=_mean)
    computed = {"accuracy": _accuracy, "matthews": _matthews, "f1": _f1}[name]
    return Score(
        name=name,
        contributions=lambda logits: _counts(logits, classes, n_classes),
        from_sums=lambda sums: computed(*np.moveaxis(sums.reshape(*sums.shape[:-1], len(COUNTS), n_classes), -2, 0)),
    )


def _with_count(values: Float[np.ndarray, "text *cell 1"]) -> Float[np.ndarray, "text *cell 2"]:
    return np.concatenate([values, np.ones_like(values)], axis=-1)


def _mean(sums: Float[np.ndarray, "*cell 2"]) -> Float[np.ndarray, "*cell"]:
    return ratio(np.asarray(sums[..., 0]), np.asarray(sums[..., 1]))


def _along_texts(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """One value per text, reshaped to broadcast against an array `text *cell`."""
    return values.reshape(len(values), *[1] * (like.ndim - 1))


def _cross_entropy(
    logits: Float[np.ndarray, "text *cell class"], classes: Int[np.ndarray, " text"]
) -> Float[np.ndarray, "text *cell"]:
    from scipy.special import log_softmax

    indices = np.broadcast_to(_along_texts(classes, logits), (*logits.shape[:-1], 1))
    return -np.take_along_axis(log_softmax(logits, axis=-1), indices, axis=-1)[..., 0]


def _counts(
    logits: Float[np.ndarray, "text *cell class"], classes: Int[np.ndarray, " text"], n_classes: int
) -> Float[np.ndarray, "text *cell term"]:
    """COUNTS of each text, by class: 1 or 0; NaN without logits, as where a removed head would be off."""
    predicted = logits.argmax(axis=-1)[..., None] == np.arange(n_classes)
    true = np.broadcast_to(_along_texts(classes, logits) == np.arange(n_classes), predicted.shape)
    counts = np.concatenate([true & predicted, true, predicted], axis=-1).astype(float)
    counts[np.isnan(logits).any(axis=-1)] = np.nan
    return counts


def _accuracy(right: _ByClass, true: _ByClass, predicted: _ByClass) -> Float[np.ndarray, "*cell"]:
    return ratio(np.asarray(right.sum(-1)), np.asarray(true.sum(-1)))


def _matthews(right: _ByClass, true: _ByClass, predicted: _ByClass) -> Float[np.ndarray, "*cell"]:
    """0 where all texts have one class or are predicted to have one, as in scikit-learn."""
    total = true.sum(-1)
    covariance = right.sum(-1) * total - (true * predicted).sum(-1)
    spread = np.sqrt((total**2 - (true**2).sum(-1)) * (total**2 - (predicted**2).sum(-1)))
    return np.where(spread == 0, 0.0, covariance / np.where(spread == 0, 1, spread))


def _f1(right: _ByClass, true: _ByClass, predicted: _ByClass) -> Float[np.ndarray, "*cell"]:
    """A class without a text and without a prediction has an F1 of 0, as in scikit-learn."""
    either = true + predicted
    by_class = 2 * right / np.where(either > 0, either, 1)
    return np.asarray(by_class[..., 1] if by_class.shape[-1] == 2 else by_class.mean(-1))


def _moments(
    values: Float[np.ndarray, "text *cell 1"], labels: Float[np.ndarray, " text"]
) -> Float[np.ndarray, "text *cell 6"]:
    """Count, and sums of both, their squares and product; shifted by the mean of the labels to keep precision."""
    x = values[..., 0] - labels.mean()
    y = np.broadcast_to(_along_texts(labels - labels.mean(), x), x.shape)
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)


def _pearson(sums: Float[np.ndarray, "*cell 6"]) -> Float[np.ndarray, "*cell"]:
    """Pearson's correlation; NaN where one side is constant."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    squares = n * np.stack([xx, yy])
    spreads = squares - np.square(np.stack([x, y]))
    rounding = n * np.finfo(np.float64).eps * squares  # what a constant differs from itself by
    spread = np.sqrt(np.where(spreads > rounding, spreads, 0).prod(axis=0))
    return ratio(np.asarray(n * xy - x * y), np.asarray(spread))
