"""Cheaper measures of the texts on the page, and how well they agree with ablation."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from cache.store.recent import Recent
from core.importance.agreement import Agreement, agreements
from core.importance.cheap import allowed_measures, ways_to_measures
from core.importance.effects import Draws
from core.importance.measures import Measure, damage
from core.importance.per_text import Rule
from core.passes.question import Question
from dashboard.views.asking import ask
from dashboard.views.importance.numbers import Importance, projections

COMPARED_BYTES: Final = 32 * 2**20
"""Of the latest comparisons in memory, for all readers: a click asks for the same ones again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Cheaper measures beside ablation."""

    agreements: Mapping[str, Agreement]
    """By measure."""
    values: Mapping[str, Float[np.ndarray, "layer head"]]
    """Of each measure over the corpus; larger means more important."""
    left_out: tuple[tuple[str, str], ...]
    """Measures that the checkpoint does not allow, and why."""
    conserved: float | None
    """Share of what relevance distributes that arrives at the tokens, median over texts; None without relevance."""


_compared: Final[Recent[Hashable, Compared]] = Recent(COMPARED_BYTES)


class _Unanswered(Exception):
    """The reader has to do something first, which the page says."""


def compared(importance: Importance, *, normalised: bool, rule: Rule) -> Compared | None:
    """Cheaper measures and their correlations with ablation; None as for `ask`.

    Args:
        importance: what the page shows.
        normalised: whether gradient measures are divided by the norm of their layer.
        rule: how relevance goes through attention.

    Raises: AnalysisError of any stage.
    """
    key = (importance.material.key, importance.ablated.positions, normalised, rule)
    known = _compared.get(key)
    if known is None:
        try:
            known = _computed(importance, normalised, rule)
        except _Unanswered:
            return None
        size = sum(values.nbytes for values in known.values.values())
        _compared.put(key, known, size)
    return known


def _computed(importance: Importance, normalised: bool, rule: Rule) -> Compared:
    material = importance.material
    visit = material.visit

    def answered(question: Question[Any, Any], doing: str, *, labelled: bool = False) -> Sequence[Any]:
        answers = ask(visit, question, material.labelled if labelled else visit.texts)
        if answers is None:
            raise _Unanswered(doing)
        return answers.results

    found = allowed_measures(
        ways_to_measures(
            answered, lambda: projections(importance), metric=material.metric, normalised=normalised, rule=rule
        )
    )
    results = importance.ablated.results
    ablation = damage(results, importance.score)
    of_all = agreements(list(found.measures), ablation, Draws(importance.documents))
    measures: list[Measure] = [ablation, *found.measures]
    return Compared(
        agreements={each.measure: each for each in of_all},
        values={measure.name: measure.values(len(results)) for measure in measures},
        left_out=found.left_out,
        conserved=next((float(np.median(of.conserved)) for of in measures if of.conserved is not None), None),
    )
