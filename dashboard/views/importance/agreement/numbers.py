"""Cheaper measures on the texts of the page, and how well they agree with ablation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.agreement import Agreement, agreements
from attention_sieve.core.importance.cheap import allowed_measures, ways_to_measures
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import Measure, damage
from attention_sieve.core.passes.question import Question
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.views.asking import ask
from attention_sieve.dashboard.views.importance.numbers import Importance, projections


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Cheaper measures compared with ablation."""

    agreements: Mapping[str, Agreement]
    """Agreement of each measure with ablation."""
    values: Mapping[str, Float[np.ndarray, "layer head"]]
    """Values of each measure over the corpus; larger means more important."""
    left_out: tuple[tuple[str, str], ...]
    """Measures that the checkpoint does not allow, and why."""
    conserved: float | None
    """Share of the distributed relevance that arrives at the tokens, median over texts; None without relevance."""


class _Unanswered(Exception):
    """The reader has to do something first; the page says what."""


def compared(importance: Importance, *, normalised: bool) -> Compared | None:
    """Cheaper measures and their correlations with ablation; None as for `ask`.

    Args:
        importance: results of the page.
        normalised: whether gradient measures are divided by the norm of their layer.

    Raises: AnalysisError of any stage.
    """
    key = (importance.material.key, importance.ablated.positions, normalised)
    try:
        return memory().get_or_put("agreement", key, lambda: _computed(importance, normalised))
    except _Unanswered:
        return None


def _computed(importance: Importance, normalised: bool) -> Compared:
    material = importance.material
    visit = material.visit

    def answered(question: Question[Any, Any], doing: str, *, labelled: bool = False) -> Sequence[Any]:
        answers = ask(visit, question, material.labelled if labelled else visit.texts)
        if answers is None:
            raise _Unanswered(doing)
        return answers.results

    cheap = allowed_measures(
        ways_to_measures(answered, lambda: projections(importance), metric=material.metric, normalised=normalised)
    )
    results = importance.ablated.results
    ablation = damage(results, importance.score)
    correlations = agreements(list(cheap.measures), ablation, Draws(importance.documents))
    measures: list[Measure] = [ablation, *cheap.measures]
    return Compared(
        agreements={agreement.measure: agreement for agreement in correlations},
        values={measure.name: measure.values(len(results)) for measure in measures},
        left_out=cheap.left_out,
        conserved=next((float(np.median(each.conserved)) for each in measures if each.conserved is not None), None),
    )
