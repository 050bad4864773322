"""Whether a model uses a concept encoded by a head: effect of erasing it, against erasing as many random directions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float

from core.attention.settings import Head, PassSettings, head_name
from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError
from core.passes.metric import Metric
from core.passes.texts import PassText
from core.probing_tasks.erasure.eraser import Eraser, concept_eraser, random_eraser
from core.probing_tasks.labels import Labels, labels_of, score
from core.probing_tasks.report import ALPHA
from core.probing_tasks.task import Task
from core.probing_tasks.vectors import Pooling, Vectors
from core.statistics.means import half_interval, moments

RANDOM_ERASURES: Final = 19
"""Number of random draws: an effect that is greater than all of theirs has p = 0.05."""
MOST_TEXTS: Final = 200
"""Maximum number of test texts for measuring the effect."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Erasure:
    """Effect of erasing a concept from the output of one head."""

    head: Head
    metric: Metric
    rank: int
    """Number of erased directions."""
    n_channels: int
    """Dimension of the head's vector."""
    n_texts: int
    full: float
    """Mean outcome over the texts with nothing erased."""
    erased: float
    """Mean outcome with the concept erased."""
    random: Float[np.ndarray, " draw"]
    """Mean outcome with random directions erased, for each draw."""
    excess: float
    """Outcome with the concept erased minus the mean of those with random directions erased."""
    low: float
    high: float
    """95% t interval of this difference over the texts."""
    p: float
    """Share of all erasures, including that of the concept, with an outcome at least as large as the concept's."""
    variance: float
    """Share of the variance of the head's vectors, on the training part, that is erased with the concept."""
    random_variance: float
    """The same for random directions, mean over the draws."""
    accuracy: float
    """Accuracy of a probe on the head's vectors, on the test part."""
    accuracy_erased: float
    """Accuracy of a probe that is trained on the vectors with the concept erased."""

    @property
    def is_used(self) -> bool:
        """Whether erasing the concept has a greater effect than erasing random directions, over draws and texts."""
        return self.rank < self.n_channels and self.p <= ALPHA and self.low > 0


def usual_metric(checkpoint: Checkpoint) -> Metric:
    """The loss if the model has a language-model head and one stack, otherwise the change of the text vector."""
    is_lm = checkpoint.head in ("masked token", "next token") and len(checkpoint.files.kinds) == 1
    return "lm" if is_lm else "output"


def erase(
    checkpoint: Checkpoint,
    task: Task,
    vectors: Vectors,
    prepared: Sequence[PassText],
    settings: PassSettings,
    heads: Sequence[Head],
    *,
    pooling: Pooling,
    metric: Metric | None = None,
    n_random: int = RANDOM_ERASURES,
    seed: int = 0,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> list[Erasure]:
    """Erase the concept of a task from the output of some heads, one at a time.

    The erasers are fitted to the training part, and their effect is measured on test texts, without their labels.

    Args:
        checkpoint: loaded.
        task: about single texts.
        vectors: of its texts.
        prepared: its texts, in their order.
        settings: which attention, and which heads are off.
        heads: one or more.
        pooling: where the vectors were read.
        metric: how the effect is measured; None for `usual_metric`.
        n_random: number of draws of as many random directions.
        seed: of these draws.
        watch: called with the number of passes done and the total, over all texts and heads.

    Raises: AnalysisError for a task about pairs, and for a head or a metric that the checkpoint does not have.
    Source: Elazar et al. 2021 (amnesic probing), with the eraser of Belrose et al. 2023.
    """
    from core.probing_tasks.erasure.passes import erased_outcomes

    metric = metric or usual_metric(checkpoint)
    _check(checkpoint, task, vectors, heads, metric)
    labels = labels_of(task)
    test_rows = _evenly_spaced(labels.test)
    texts = [prepared[row] for row in test_rows]
    erasures = []
    for number, head in enumerate(heads):
        head_vectors = np.asarray(vectors.heads[:, head[0], head[1]], float)
        erasers = _erasers(head_vectors[labels.train], labels, n_random, seed)
        outcomes = erased_outcomes(
            checkpoint,
            texts,
            settings,
            head,
            erasers,
            metric=metric,
            pooling=pooling,
            watch=partial(_watch_all, watch, number, len(heads)),
        )
        erasures.append(_erasure(head, metric, head_vectors, labels, erasers, outcomes))
    return erasures


def _watch_all(watch: Callable[[int, int], None], n_before: int, n_heads: int, done: int, total: int) -> None:
    """Report progress over all heads from that of one head."""
    watch(n_before * total + done, n_heads * total)


def _check(checkpoint: Checkpoint, task: Task, vectors: Vectors, heads: Sequence[Head], metric: Metric) -> None:
    if vectors.n_texts != len(task.examples):
        raise AnalysisError(
            f"{task.name} is about pairs of texts, and a concept is erased from one text. Choose a task about one text."
        )
    if metric == "labels":
        raise AnalysisError("An erasure is judged by the text vector or the loss. Choose the metric output or lm.")
    if metric == "lm" and len(checkpoint.files.kinds) > 1:
        raise AnalysisError(
            f"{checkpoint.files.name} is an encoder-decoder, whose loss needs a target, and the texts of a task have "
            "none. Choose the metric output."
        )
    n_layers, n_heads = vectors.shape
    for layer, head in heads:
        if not (layer < n_layers and head < n_heads) or np.isnan(vectors.heads[0, layer, head]).any():
            raise AnalysisError(f"The checkpoint has no head {head_name(layer, head)}. Choose another.")


def _evenly_spaced(rows: np.ndarray) -> list[int]:
    """At most MOST_TEXTS rows, evenly spaced."""
    indices = np.linspace(0, len(rows) - 1, min(len(rows), MOST_TEXTS)).round().astype(int)
    return [int(row) for row in rows[indices]]


def _erasers(train: Float[np.ndarray, "row channel"], labels: Labels, n_random: int, seed: int) -> list[Eraser]:
    """The eraser of the concept, then the random ones."""
    targets = labels.targets if labels.values is None else labels.values[:, None]
    concept = concept_eraser(train, np.asarray(targets[labels.train], float))
    rng = np.random.default_rng(seed)
    return [concept, *(random_eraser(train, concept.rank, rng) for _ in range(n_random))]


def _erasure(
    head: Head,
    metric: Metric,
    vectors: Float[np.ndarray, "example channel"],
    labels: Labels,
    erasers: Sequence[Eraser],
    outcomes: Float[np.ndarray, "text state"],
) -> Erasure:
    full, erased, random = outcomes[:, 0], outcomes[:, 1], outcomes[:, 2:]
    n_texts, (excess,), squares = moments((erased - random.mean(axis=1))[:, None])
    (half,) = half_interval(n_texts, squares, ALPHA)
    by_draw = random.mean(axis=0)
    eraser, train = erasers[0], vectors[labels.train]
    accuracy, accuracy_erased = (_accuracy(inputs, labels) for inputs in (vectors, eraser(vectors)))
    variance, *random_variances = (_variance(each_eraser, train) for each_eraser in erasers)
    return Erasure(
        head=head,
        metric=metric,
        rank=eraser.rank,
        n_channels=vectors.shape[1],
        n_texts=len(outcomes),
        full=float(full.mean()),
        erased=float(erased.mean()),
        random=by_draw,
        excess=float(excess),
        low=float(excess - half),
        high=float(excess + half),
        p=float((1 + (by_draw >= erased.mean()).sum()) / (1 + len(by_draw))),
        variance=variance,
        random_variance=float(np.mean(random_variances)),
        accuracy=accuracy,
        accuracy_erased=accuracy_erased,
    )


def _variance(eraser: Eraser, vectors: Float[np.ndarray, "row channel"]) -> float:
    """Share of the variance of vectors that an eraser removes."""
    return float(((vectors - eraser.mean) @ eraser.removed).var(axis=0).sum() / vectors.var(axis=0).sum())


def _accuracy(vectors: Float[np.ndarray, "example channel"], labels: Labels) -> float:
    """Score on the test part of a probe trained on the vectors of one head."""
    from core.probing_tasks.probes.probe import probe

    predicted = probe(vectors[:, None], labels).predicted
    return float(score(predicted, labels.gold[labels.test], labels.values is not None)[0])
