"""Whether a model uses what a head carries: what erasing a concept does, against erasing as many random directions."""

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
"""Random directions are drawn so often: an effect that is greater than all has p = 0.05."""
MOST_TEXTS: Final = 200
"""Of the test part over which the effect is taken."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Erasure:
    """What erasing a concept from the output of one head does."""

    head: Head
    metric: Metric
    rank: int
    """Directions that are erased."""
    n_channels: int
    """Of the head's vector."""
    n_texts: int
    full: float
    """Mean outcome over the texts with nothing erased."""
    erased: float
    """With the concept erased."""
    random: Float[np.ndarray, " draw"]
    """With random directions erased, each draw by itself."""
    excess: float
    """Outcome with the concept erased minus the mean of those with random directions erased."""
    low: float
    high: float
    """95% interval of this difference over the texts, by t."""
    p: float
    """Share of all erasures, the concept's among them, that have at least its outcome."""
    variance: float
    """Share of the variance of the head's vectors, on the training part, that is erased with the concept."""
    random_variance: float
    """The same for random directions, mean over the draws."""
    accuracy: float
    """Of a probe on the head's vectors, on the test part."""
    accuracy_erased: float
    """Of one that is trained on the vectors with the concept erased."""

    @property
    def is_used(self) -> bool:
        """Whether erasing the concept does more than erasing random directions, by draws and by texts."""
        return self.rank < self.n_channels and self.p <= ALPHA and self.low > 0


def usual_metric(checkpoint: Checkpoint) -> Metric:
    """The model's own loss where it has a language-model head and one stack, else the change of the text vector."""
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
    """Erase what tells of a task from the output of some heads, one at a time.

    The erasers are fitted to the training part and judged on texts of the test part, where no label is read.

    Args:
        checkpoint: loaded.
        task: about single texts.
        vectors: of its texts.
        prepared: its texts, in their order.
        settings: which attention, and which heads are off.
        heads: one or more.
        pooling: where the vectors were read.
        metric: what an erasure may change; None for `usual_metric`.
        n_random: how often as many random directions are erased.
        seed: of these.
        watch: is told how many passes over a text are done, and of how many.

    Raises: AnalysisError for a task about pairs, a head that is not there, or a metric that the checkpoint has not.
    Source: Elazar et al. 2021 (amnesic probing), with the eraser of Belrose et al. 2023.
    """
    from core.probing_tasks.erasure.passes import erased_outcomes

    metric = metric or usual_metric(checkpoint)
    _check(checkpoint, task, vectors, heads, metric)
    labels = labels_of(task)
    tested = _some(labels.test)
    texts = [prepared[place] for place in tested]
    found = []
    for number, head in enumerate(heads):
        own = np.asarray(vectors.heads[:, head[0], head[1]], float)
        erasers = _erasers(own[labels.train], labels, n_random, seed)
        outcomes = erased_outcomes(
            checkpoint,
            texts,
            settings,
            head,
            erasers,
            metric=metric,
            pooling=pooling,
            watch=partial(_of_all, watch, number, len(heads)),
        )
        found.append(_erasure(head, metric, own, labels, erasers, outcomes))
    return found


def _of_all(watch: Callable[[int, int], None], n_before: int, n_heads: int, done: int, of: int) -> None:
    """Tell how far one of several heads is."""
    watch(n_before * of + done, n_heads * of)


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


def _some(rows: np.ndarray) -> list[int]:
    """At most MOST_TEXTS rows, evenly over all of them."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), MOST_TEXTS)).round().astype(int)
    return [int(row) for row in rows[places]]


def _erasers(train: Float[np.ndarray, "row channel"], labels: Labels, n_random: int, seed: int) -> list[Eraser]:
    """The concept's, then the random ones."""
    targets = labels.targets if labels.values is None else labels.values[:, None]
    own = concept_eraser(train, np.asarray(targets[labels.train], float))
    rng = np.random.default_rng(seed)
    return [own, *(random_eraser(train, own.rank, rng) for _ in range(n_random))]


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
    of_draws = random.mean(axis=0)
    eraser, train = erasers[0], vectors[labels.train]
    accuracy, accuracy_erased = (_accuracy(own, labels) for own in (vectors, eraser(vectors)))
    variance, *of_random = (_variance(each, train) for each in erasers)
    return Erasure(
        head=head,
        metric=metric,
        rank=eraser.rank,
        n_channels=vectors.shape[1],
        n_texts=len(outcomes),
        full=float(full.mean()),
        erased=float(erased.mean()),
        random=of_draws,
        excess=float(excess),
        low=float(excess - half),
        high=float(excess + half),
        p=float((1 + (of_draws >= erased.mean()).sum()) / (1 + len(of_draws))),
        variance=variance,
        random_variance=float(np.mean(of_random)),
        accuracy=accuracy,
        accuracy_erased=accuracy_erased,
    )


def _variance(eraser: Eraser, vectors: Float[np.ndarray, "row channel"]) -> float:
    """Share of the variance of vectors that an eraser takes away."""
    return float(((vectors - eraser.mean) @ eraser.removed).var(axis=0).sum() / vectors.var(axis=0).sum())


def _accuracy(vectors: Float[np.ndarray, "example channel"], labels: Labels) -> float:
    """Score of a probe of one head on the test part."""
    from core.probing_tasks.probes.probe import probe

    predicted = probe(vectors[:, None], labels).predicted
    return float(score(predicted, labels.gold[labels.test], labels.values is not None)[0])
