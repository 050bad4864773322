"""Measures of importance that are cheaper than ablation, made of answers that a command or a page gets in its own way.

Does not import torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.errors import AnalysisError
from core.importance.measures import (
    Measure,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
    relevance,
)
from core.importance.per_text import RULES, Rule
from core.importance.question import HEAD_OUTPUTS, relevance_question, slopes_question
from core.passes.metric import Metric
from core.surface.key_kinds import USUAL_SURFACE
from core.surface.question import surface_question

Ask = Callable[..., Sequence[Any]]
"""ask(question, doing, labelled=False) -> results in the order of the texts: `doing` says what is computed to whoever
waits, `labelled` whether the question is about labelled texts. Raises AnalysisError for what a checkpoint does not
allow."""


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
"""Name of each measure -> what computes it, as of `ways_to_measures`; the metric output has no attributions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CheapMeasures:
    """Every measure that a checkpoint allows, but ablation."""

    measures: tuple[Measure, ...]
    left_out: tuple[tuple[str, str], ...]
    """What is missing, and why."""


def ways_to_measures(
    ask: Ask,
    projections: Callable[[], Float[np.ndarray, "layer channel_out head channel"]],
    *,
    metric: Metric,
    normalised: bool = False,
    rule: Rule = RULES[0],
) -> Mapping[str, Callable[[], list[Measure]]]:
    """What computes each kind of measure but ablation; raises AnalysisError for one that a checkpoint does not allow.

    Args:
        ask: answers a question about every text.
        projections: gives the weights that the heads' outputs go through next, or raises AnalysisError.
        metric: what heads are to matter for.
        normalised: whether gradient measures are divided by the norm of their layer.
        rule: how relevance goes through attention.
    """

    def gradients() -> list[Measure]:
        slopes = ask(slopes_question(metric), "gradients", labelled=True)
        by_gradient = gradient_measures(slopes, normalised)
        # The metric output has no slope of its own; the random direction in its place has no sign that would mean much.
        if metric == "output":
            return by_gradient
        return [*by_gradient, *attributions(slopes, ask(HEAD_OUTPUTS, "outputs of heads"))]

    def by_outputs() -> list[Measure]:
        return output_measures(ask(HEAD_OUTPUTS, "outputs of heads"), projections())

    def by_confidence() -> list[Measure]:
        surfaces = ask(surface_question(USUAL_SURFACE), "confidence")
        return [confidence(np.stack([of_text.confidence for of_text in surfaces]))]

    def by_relevance() -> list[Measure]:
        return [relevance(ask(relevance_question(metric, rule), "relevance"))]

    return {
        "gradients": gradients,
        "wanda-sp and flap": by_outputs,
        "confidence": by_confidence,
        "relevance": by_relevance,
    }


def allowed_measures(ways: Mapping[str, Callable[[], list[Measure]]]) -> CheapMeasures:
    """Every measure that a checkpoint allows, but ablation.

    Args:
        ways: of `ways_to_measures`.
    """
    measures: list[Measure] = []
    left_out = []
    for name, compute in ways.items():
        try:
            measures += compute()
        except AnalysisError as error:
            left_out.append((name, str(error)))
    return CheapMeasures(measures=tuple(measures), left_out=tuple(left_out))
