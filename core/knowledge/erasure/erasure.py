"""Whether a model uses a concept encoded by a head: effect of erasing it, against random erasures."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, check_heads
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.erasure.eraser import Eraser, concept_eraser, random_eraser
from attention_sieve.core.knowledge.labels import TaskLabels, labels_of, score
from attention_sieve.core.knowledge.report import ALPHA
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.statistics.means import adjusted, half_interval, moments

if TYPE_CHECKING:
    from attention_sieve.core.knowledge.erasure.passes import HeadPasses
    from attention_sieve.core.knowledge.kept_vectors import TaskReading

FIRST_DRAWS: Final = math.ceil(1 / ALPHA)
"""Number of random draws after which an effect that is greater than all of theirs has p below ALPHA. A head that may be
used has as many for each test of the family, so that its p can be below ALPHA once it is corrected."""
MOST_TEXTS: Final = 200
"""Maximum number of test texts for measuring the effect."""
LEAST_CHANGE: Final = 0.001
"""Minimum effect to count at all: turn of the text vector, as a share of its length, or relative growth of the
perplexity. Rounding in float32 is a thousandth of it; in a format that rounds more, its rounding counts."""
Verdict = Literal["used", "not used", "too small", "nothing to compare"]
"""Whether the output changes more than with random directions, or does not; whether the change is too small to count;
or whether all directions of the head are erased, so that there are no others to compare with."""


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
    """Mean square of the change by erasing the concept, and by each random one, as a share of that of the deviations of
    the head's output from its mean, at the tokens where it is erased."""
    accuracy: float
    """Accuracy of a probe on the head's vectors, on the test part."""
    accuracy_erased: float
    """Accuracy of a probe that is trained on the vectors with the concept erased."""
    least_effect: float

    def verdict(self, p_adjusted: float) -> Verdict:
        """Whether the model uses the concept, by the corrected p-value."""
        if self.rank >= self.n_channels:
            return "nothing to compare"
        if abs(self.erased - self.full) < self.least_effect:
            return "too small"
        return "used" if p_adjusted < ALPHA and self.low > self.least_effect else "not used"


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedErasure:
    """The effect of erasing a concept, judged as one of a family of tests."""

    erasure: Erasure
    p_adjusted: float
    verdict: Verdict


def judged(erasures: Sequence[Erasure], n_tests: int) -> list[JudgedErasure]:
    """Whether the model uses each concept; p-values are corrected by Holm's method.

    Args:
        erasures: of all heads and tasks.
        n_tests: size of the family, at least the number of erasures; tests that are not made count with p = 1.
    """
    p_values = np.ones(n_tests)
    p_values[: len(erasures)] = [erasure.p for erasure in erasures]
    return [
        JudgedErasure(erasure=erasure, p_adjusted=float(p), verdict=erasure.verdict(p))
        for erasure, p in zip(erasures, adjusted(p_values, "holm"))
    ]


def draws_needed(n_tests: int) -> int:
    """Number of draws with which the smallest possible p-value, corrected for so many tests, is below ALPHA."""
    return n_tests * FIRST_DRAWS


@dataclass(frozen=True, kw_only=True)
class _Plan:
    least_effect: float
    first_draws: int
    most_draws: int
    """Maximum number of draws of a head that may be used."""
    seed: int


def usual_metric(checkpoint: Checkpoint) -> Metric:
    """The loss if the model has a language-model head and one stack, otherwise the change of the text vector."""
    is_lm = checkpoint.head in ("masked token", "next token") and len(checkpoint.files.kinds) == 1
    return "lm" if is_lm else "output"


def erase(
    reading: "TaskReading",
    heads: Sequence[Head],
    *,
    metric: Metric | None = None,
    n_tests: int | None = None,
    n_random: int | None = None,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Erasure]:
    """Erase the concept of a task from the output of some heads, one at a time.

    The erasers are fitted to the training part, and their effect is measured on test texts, without their labels.
    After FIRST_DRAWS a head has more only while it may still be used: its effect counts, and p so far is below ALPHA.

    Args:
        reading: of a task about single texts.
        metric: how the effect is measured; None for `usual_metric`.
        n_tests: size of the family for which `judged` corrects p; None for the number of heads.
        n_random: number of draws of every head; None for as many as each head needs.
        check: called before each pass; may raise to stop.

    Raises: AnalysisError for a task about pairs, and for a head or a metric that the checkpoint does not have.
    Source: Elazar et al. 2021 (amnesic probing), with the eraser of Belrose et al. 2023.
    """
    from attention_sieve.core.knowledge.erasure.passes import HeadPasses, least_effect

    metric = metric or usual_metric(reading.checkpoint)
    _check(reading, heads, metric)
    labels = labels_of(reading.task)
    plan = _Plan(
        least_effect=least_effect(reading.checkpoint, metric, LEAST_CHANGE),
        first_draws=FIRST_DRAWS if n_random is None else n_random,
        most_draws=draws_needed(n_tests or len(heads)) if n_random is None else n_random,
        seed=seed,
    )
    evenly_spaced = np.linspace(0, len(labels.test) - 1, min(len(labels.test), MOST_TEXTS)).round().astype(int)
    passes = HeadPasses(
        checkpoint=reading.checkpoint,
        texts=[reading.texts[row] for row in labels.test[evenly_spaced]],
        settings=reading.settings,
        head=heads[0],
        pooling=reading.pooling,
        metric=metric,
        check=check,
    )
    return (
        _erasure(np.asarray(reading.vectors.heads[:, *head], float), labels, plan, replace(passes, head=head))
        for head in heads
    )


def _check(reading: "TaskReading", heads: Sequence[Head], metric: Metric) -> None:
    checkpoint, task, vectors = reading.checkpoint, reading.task, reading.vectors
    if vectors.n_texts != len(task.examples):
        raise AnalysisError(
            f"{task.name} is about pairs of texts, and a concept is erased from one text. Choose a task about one text."
        )
    if metric == "labels":
        raise AnalysisError(
            "The effect of an erasure is measured on the text vector or the loss. Choose the metric output or lm."
        )
    if metric == "lm" and len(checkpoint.files.kinds) > 1:
        raise AnalysisError(
            f"{checkpoint.files.name} is an encoder-decoder, whose loss needs a target, and the texts of a task have "
            "none. Choose the metric output."
        )
    check_heads(checkpoint.files.name, vectors.shape, heads)
    for layer, head in heads:
        if np.isnan(vectors.heads[0, layer, head]).any():
            raise AnalysisError(
                f"Head {head_name(layer, head)} was removed, or its layer has no attention. Choose another."
            )


def _erasure(
    vectors: Float[np.ndarray, "example channel"], labels: TaskLabels, plan: _Plan, passes: "HeadPasses"
) -> Erasure:
    targets = labels.targets if labels.values is None else labels.values[:, None]
    train = vectors[labels.train]
    concept = concept_eraser(train, np.asarray(targets[labels.train], float))
    spread = passes.spread(concept.mean)
    outcomes = _outcomes(train, concept, spread, plan, passes)
    full, erased, random = outcomes[:, 0], outcomes[:, 1], outcomes[:, 2:]
    n_texts, (excess,), squares = moments((erased - random.mean(axis=1))[:, None])
    (half,) = half_interval(n_texts, squares, ALPHA)
    accuracy, accuracy_erased = (_accuracy(inputs, labels) for inputs in (vectors, concept(vectors)))
    return Erasure(
        head=passes.head,
        metric=passes.metric,
        rank=concept.rank,
        n_channels=vectors.shape[1],
        n_texts=len(outcomes),
        full=float(full.mean()),
        erased=float(erased.mean()),
        random=random.mean(axis=0),
        excess=float(excess),
        low=float(excess - half),
        high=float(excess + half),
        p=_p(outcomes),
        variance=concept.share(spread),
        accuracy=accuracy,
        accuracy_erased=accuracy_erased,
        least_effect=plan.least_effect,
    )


def _outcomes(
    train: Float[np.ndarray, "row channel"],
    concept: Eraser,
    spread: Float[np.ndarray, "channel channel"],
    plan: _Plan,
    passes: "HeadPasses",
) -> Float[np.ndarray, "text state"]:
    """Outcomes with nothing erased, with the concept erased, and with each random change."""
    rng = np.random.default_rng(plan.seed)
    n_more = plan.first_draws
    outcomes, n_draws = passes.outcomes([concept]), 0
    while n_more and (not n_draws or _may_be_used(outcomes, plan.least_effect)):
        draws = [random_eraser(train, concept, spread, rng) for _ in range(n_more)]
        outcomes = np.hstack([outcomes, passes.outcomes(draws)[:, 1:]])
        n_draws += n_more
        n_more = min(n_draws, plan.most_draws - n_draws)
    return outcomes


def _may_be_used(outcomes: Float[np.ndarray, "text state"], least_effect: float) -> bool:
    """Whether more draws could make the concept used: its effect counts, and few draws had as great a one."""
    full, erased = outcomes[:, :2].mean(axis=0)
    return bool(erased - full >= least_effect and _p(outcomes) < ALPHA)


def _p(outcomes: Float[np.ndarray, "text state"]) -> float:
    """Share of all erasures, the concept's among them, with an outcome at least as large as the concept's."""
    _, erased, *random = outcomes.mean(axis=0)
    return (1 + sum(draw >= erased for draw in random)) / (1 + len(random))


def _accuracy(vectors: Float[np.ndarray, "example channel"], labels: TaskLabels) -> float:
    from attention_sieve.core.knowledge.probes.probe import probe

    predicted = probe(vectors[:, None], labels).predicted
    return float(score(predicted, labels.gold[labels.test], labels.values is not None)[0])
