"""Measures of importance that are cheaper than ablation. Does not import torch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from attention_sieve.core.answering import Ask
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.finding import CheapMeasures
from attention_sieve.core.importance.measures import (
    Measure,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
    relevance,
)
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import (
    HEAD_OUTPUTS,
    OUTPUT_WEIGHTS,
    relevance_question,
    slopes_question,
)
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS

KINDS: Final[Mapping[str, str]] = {
    "gradient per token": "gradients",
    "gradient per text": "gradients",
    "gradient per batch": "gradients",
    "attribution against zero": "gradients",
    "attribution against mean": "gradients",
    "wanda-sp": "wanda-sp and flap",
    "flap": "wanda-sp and flap",
    "confidence": "confidence",
    "relevance": "relevance",
}
"""Name of each measure -> key in `ways_to_measures`; the metric output has no attributions."""


def ways_to_measures(
    ask: Ask, items: Sequence[LabelledText], metric: Metric, *, normalised: bool = False
) -> Mapping[str, Callable[[], list[Measure]]]:
    """Functions that compute each kind of measure except ablation; each raises AnalysisError if the checkpoint does not
    support it.

    Args:
        ask: answers a question about every text.
        items: the texts; with labels, if the metric needs them.
        metric: what importance is measured for.
        normalised: whether gradient measures are divided by the norm of their layer.
    """
    texts = [item.text for item in items]

    def gradients() -> list[Measure]:
        slopes = ask(slopes_question(metric), items, "gradients")
        by_gradient = gradient_measures(slopes, normalised)
        # The metric output has no gradient of its own; the random direction used instead has no meaningful sign.
        if metric == "output":
            return by_gradient
        return [*by_gradient, *attributions(slopes, ask(HEAD_OUTPUTS, texts, "outputs of heads"))]

    def by_outputs() -> list[Measure]:
        outputs = ask(HEAD_OUTPUTS, texts, "outputs of heads")
        shortest = min(texts, key=lambda text: sum(map(len, text.segments)))  # any text would do
        return output_measures(outputs, *ask(OUTPUT_WEIGHTS, [shortest], "weights of outputs"))

    def by_confidence() -> list[Measure]:
        surfaces = SURFACE_ANALYSIS.answers(ask, tuple(texts), SURFACE_ANALYSIS.settings)
        return [confidence(np.stack([surface.confidence for surface in surfaces]))]

    def by_relevance() -> list[Measure]:
        return [relevance(ask(relevance_question(metric), texts, "relevance"))]

    return {
        "gradients": gradients,
        "wanda-sp and flap": by_outputs,
        "confidence": by_confidence,
        "relevance": by_relevance,
    }


def cheap_measures(
    ask: Ask, items: Sequence[LabelledText], metric: Metric, *, normalised: bool = False
) -> CheapMeasures:
    """All measures except ablation that a checkpoint supports; arguments as of `ways_to_measures`."""
    measures: list[Measure] = []
    left_out = []
    for name, compute in ways_to_measures(ask, items, metric, normalised=normalised).items():
        try:
            measures += compute()
        except AnalysisError as error:
            left_out.append((name, str(error)))
    return CheapMeasures(measures=tuple(measures), left_out=tuple(left_out))
