"""Measures of importance for orders of removal, from answers that the page has or asks for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from core.importance.measures import (
    Measure,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
    relevance,
)
from core.importance.question import HEAD_OUTPUTS, relevance_question, slopes_question
from core.passes.prepare import prepare
from core.passes.question import Question
from core.surface.key_kinds import USUAL_SURFACE
from core.surface.question import surface_question
from dashboard.views.importance.material import Material

Ask = Callable[[Question[Any, Any], Sequence[Any]], Sequence[Any] | None]
"""Answers a question about each item; None where the answers cannot be had now."""
Ways = Mapping[str, Callable[[], list[Measure] | None]]


def ways(material: Material, positions: Sequence[int], n_tokens: Sequence[int], ask: Ask) -> Ways:
    """Ways to measures, by name; each gives None where an answer cannot be had now.

    Args:
        material: of the page.
        positions: of the texts that are read.
        n_tokens: of each of them.
        ask: answers questions.
    """
    texts = [material.visit.texts[place] for place in positions]
    labelled = [material.labelled[place] for place in positions]

    def gradients() -> list[Measure] | None:
        slopes = ask(slopes_question(material.metric), labelled)
        outputs = ask(HEAD_OUTPUTS, texts)
        if slopes is None or outputs is None:
            return None
        # The text vector has no slope of its own; the random direction in its place has no sign that would mean much.
        signed = [] if material.metric == "output" else attributions(slopes, outputs)
        return [*gradient_measures(slopes), *signed]

    def by_outputs() -> list[Measure] | None:
        outputs = ask(HEAD_OUTPUTS, texts)
        if outputs is None:
            return None
        return output_measures(outputs, _projections(material, positions[int(np.argmin(n_tokens))]))

    def by_confidence() -> list[Measure] | None:
        surfaces = ask(surface_question(USUAL_SURFACE), texts)
        return None if surfaces is None else [confidence(np.stack([of_text.confidence for of_text in surfaces]))]

    def by_relevance() -> list[Measure] | None:
        found = ask(relevance_question(material.metric), texts)
        return None if found is None else [relevance(found)]

    return {
        "gradients": gradients,
        "wanda-sp and flap": by_outputs,
        "confidence": by_confidence,
        "relevance": by_relevance,
    }


def _projections(material: Material, shortest: int) -> Any:
    """Weights of the output projections, found by the shortest text."""
    visit = material.visit

    def work(checkpoint: Any) -> Any:
        from core.importance.passes.projections import output_projections

        return output_projections(checkpoint, prepare(checkpoint, visit.texts[shortest], visit.settings, truncate=True))

    return visit.inference.run(visit.engine, work)
