"""What the page Importance shows first: the effect of switching off each head."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.cache.answers import Answers
from attention_sieve.core.attention.settings import Head, head_name, highest_head
from attention_sieve.core.importance.effects import Effects, effects
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.views.asking import kept
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.material import Material


@dataclass(frozen=True, eq=False, kw_only=True)
class Importance:
    """What the views of the page share."""

    material: Material
    ablated: Answers[TextOutcomes]
    """Outcomes of each text with every head off in turn."""
    effects: Effects
    heads: list[Head]
    """The chosen heads."""
    facts: dict[str, str]

    @property
    def score(self) -> Score:
        """How to score the texts that were read."""
        return self.material.score(self.ablated.positions)

    @property
    def documents(self) -> list[str | None]:
        """Documents of the texts that were read."""
        return self.material.documents(self.ablated.positions)

    @cached_property
    def damage(self) -> Float[np.ndarray, "layer head"]:
        """How much worse the score is without the head; NaN for one that was removed from the checkpoint."""
        return self.score.sign * self.effects.delta

    @cached_property
    def differs(self) -> Bool[np.ndarray, "layer head"]:
        """Heads without which the score differs significantly, at the reader's level and with their correction."""
        return self.effects.p_adjusted < self.material.visit.chosen.criterion.alpha


def measured(material: Material, ablated: Answers[TextOutcomes]) -> Effects:
    """Effects of the ablations, cached between clicks."""
    correction: Correction = material.visit.chosen.criterion.correction
    key = (material.key, ablated.positions, correction)

    def computed() -> Effects:
        score, documents = material.score(ablated.positions), material.documents(ablated.positions)
        return effects(ablated.results, score, documents, correction)

    return memory().get_or_put("effects", key, computed)


def kept_effects(visit: Visit) -> Effects | None:
    """Effects on the text vector for the card of a head, if they need no pass; None otherwise."""
    answers = kept(visit, ablation_question("output"), visit.texts) if visit.texts else None
    if answers is None:
        return None
    return measured(Material(visit=visit, metric="output", score_name="change", replace="zero"), answers)


def most_important(effects: Effects, sign: int) -> Head:
    """The head without which the score is worst; `sign` as of a score."""
    return highest_head(sign * effects.delta)


def facts_of(material: Material, n_texts: int) -> dict[str, str]:
    """Provenance that is written into downloaded files."""
    choice, engine = material.visit.chosen, material.visit.engine
    of_texts = {"corpus": material.labels_name or choice.corpus, "corpus texts": str(n_texts)}
    return {
        **provenance.engine_facts(choice, engine),
        **of_texts,
        "metric": material.metric,
        "scored by": material.score_name,
        "replaced by": material.replace,
        "alpha": f"{choice.criterion.alpha:g}",
        "correction": choice.criterion.correction,
    }


def names(heads: Bool[np.ndarray, "layer head"]) -> list[str]:
    """Names of the heads that are marked."""
    return [head_name(layer, head) for layer, head in np.argwhere(heads).tolist()]


def projections(importance: Importance) -> Float[np.ndarray, "layer channel_out head channel"]:
    """Output projection weights of the heads, found by tracing a short text through the checkpoint."""
    from attention_sieve.core.importance.passes.projections import output_projections
    from attention_sieve.core.passes.prepare import prepare

    visit, ablated = importance.material.visit, importance.ablated
    shortest = visit.texts[ablated.positions[int(np.argmin(ablated.n_tokens))]]
    return visit.inference.run(
        visit.engine,
        lambda checkpoint: output_projections(checkpoint, prepare(checkpoint, shortest, visit.settings, truncate=True)),
    )
