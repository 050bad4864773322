"""Measures of importance that are cheaper than ablation, from answers that the caller (a command or a page) provides.

Does not import torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.measures import (
    Measure,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
    relevance,
)
from attention_sieve.core.importance.question import HEAD_OUTPUTS, relevance_question, slopes_question
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.surface.key_kinds import USUAL_ROWS
from attention_sieve.core.surface.question import surface_question

Ask = Callable[..., Sequence[Any]]
"""ask(question, doing, labelled=False) -> results in the order of the texts: `doing` describes the computation to the
reader, `labelled` says whether the question is about labelled texts. Raises AnalysisError if the checkpoint does not
support the question."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class CheapMeasures:
    """All measures except ablation that a checkpoint supports."""

    measures: tuple[Measure, ...]
    left_out: tuple[tuple[str, str], ...]
    """Name of each missing measure, and why it is missing."""


def ways_to_measures(
    ask: Ask,
    projections: Callable[[], Float[np.ndarray, "layer channel_out head channel"]],
    *,
    metric: Metric,
    normalised: bool = False,
) -> Mapping[str, Callable[[], list[Measure]]]:
    """Functions that compute each kind of measure except ablation; each raises AnalysisError if the checkpoint does not
    support it.

    Args:
        ask: answers a question about every text.
        projections: returns the output projection's weights by head, or raises AnalysisError.
        metric: what importance is measured for.
        normalised: whether gradient measures are divided by the norm of their layer.
    """

    def gradients() -> list[Measure]:
        slopes = ask(slopes_question(metric), "gradients", labelled=True)
        by_gradient = gradient_measures(slopes, normalised)
        # The metric output has no gradient of its own; the random direction used instead has no meaningful sign.
        if metric == "output":
            return by_gradient
        return [*by_gradient, *attributions(slopes, ask(HEAD_OUTPUTS, "outputs of heads"))]

    def by_outputs() -> list[Measure]:
        return output_measures(ask(HEAD_OUTPUTS, "outputs of heads"), projections())

    def by_confidence() -> list[Measure]:
        surfaces = ask(surface_question(USUAL_ROWS), "confidence")
        return [confidence(np.stack([surface.confidence for surface in surfaces]))]

    def by_relevance() -> list[Measure]:
        return [relevance(ask(relevance_question(metric), "relevance"))]

    return {
        "gradients": gradients,
        "wanda-sp and flap": by_outputs,
        "confidence": by_confidence,
        "relevance": by_relevance,
    }


def allowed_measures(ways: Mapping[str, Callable[[], list[Measure]]]) -> CheapMeasures:
    """All measures except ablation that a checkpoint supports.

    Args:
        ways: from `ways_to_measures`.
    """
    measures: list[Measure] = []
    left_out = []
    for name, compute in ways.items():
        try:
            measures += compute()
        except AnalysisError as error:
            left_out.append((name, str(error)))
    return CheapMeasures(measures=tuple(measures), left_out=tuple(left_out))
