"""What ablation and cheaper measures find about the importance of each head. Imports no torch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.importance.agreement import Agreement, agreements
from attention_sieve.core.importance.effects import Draws, Effects, KeptAlone, effects, kept_alone
from attention_sieve.core.importance.measures import ABLATION, FIRST_ORDER, Measure, damage, missed_heads
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings
from attention_sieve.core.importance.wording import verdict_facts, without_verdict


@dataclass(frozen=True, eq=False)
class AblationFinding:
    """How a score changes when each head is ablated, or when each layer keeps only its best head."""

    items: tuple[LabelledText, ...]
    answers: tuple[TextOutcomes, ...]
    """Of each text with each head off, or with it alone on in its layer."""
    settings: AblationSettings

    @cached_property
    def score(self) -> Score:
        """How the outcomes of the texts are scored."""
        return self.settings.metric_settings.score_of(self.items)

    @property
    def documents(self) -> list[str | None]:
        """Document of each text; None where it is unknown."""
        return [item.text.document for item in self.items]

    @cached_property
    def effects(self) -> Effects:
        """The change of the score by each head that is off, with its interval and test."""
        return effects(self.answers, self.score, self.documents, self.settings.correction, self.settings.resamples)

    @cached_property
    def kept(self) -> KeptAlone:
        """The change of the score by each layer whose best head is alone on, with its interval and test.

        Raises: AnalysisError for fewer than two texts, or documents.
        """
        return kept_alone(self.answers, self.score, self.documents, self.settings.correction, self.settings.resamples)

    @property
    def damage(self) -> Float[np.ndarray, "layer head"]:
        """How much worse the score is without each head; NaN for one that was removed from the checkpoint."""
        return self.score.sign * self.effects.delta

    @property
    def most_important(self) -> Head:
        """The head without which the score is worst."""
        return highest_head(self.damage)

    @cached_property
    def measure(self) -> Measure:
        """The damage as a function of text weights."""
        return damage(self.answers, self.score)

    def without_verdict(self, tested: Effects) -> str:
        """How many changes have no interval and no p-value, and why; empty if all have them."""
        return without_verdict(tested.delta, tested.p, self.documents)

    def facts(self, tested: Effects) -> dict[str, str]:
        """Metadata of files."""
        return {
            **metric_facts(self.settings),
            "correction": self.settings.correction,
            **verdict_facts(tested.delta, tested.p, self.documents, self.settings.resamples),
        }


def metric_facts(settings: AblationSettings | ImportanceSettings) -> dict[str, str]:
    """What heads are important for, and what replaces their output, as metadata of files."""
    metric_settings = settings.metric_settings
    return {"metric": metric_settings.metric, "scored by": metric_settings.score_name, "replaced by": settings.replace}


@dataclass(frozen=True, eq=False, kw_only=True)
class CheapMeasures:
    """All measures except ablation that a checkpoint supports."""

    measures: tuple[Measure, ...]
    left_out: tuple[tuple[str, str], ...]
    """Name of each missing measure, and why it is missing."""


@dataclass(frozen=True, eq=False)
class ImportanceFinding:
    """The importance of each head by several measures."""

    items: tuple[LabelledText, ...]
    answers: tuple[tuple[TextOutcomes, ...] | None, CheapMeasures]
    """Outcomes of each text with each head ablated in turn, None if that is left out; and the other measures."""
    settings: ImportanceSettings

    @property
    def cheap(self) -> CheapMeasures:
        """All measures except ablation."""
        return self.answers[1]

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All measures, ablation first."""
        outcomes, cheap = self.answers
        if outcomes is None:
            return cheap.measures
        return damage(outcomes, self.settings.metric_settings.score_of(self.items)), *cheap.measures

    @cached_property
    def values(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """Values of each measure over all texts; larger means more important."""
        return {measure.name: measure.values(len(self.items)) for measure in self.measures}

    @cached_property
    def missed(self) -> dict[str, Bool[np.ndarray, "layer head"]]:
        """By first-order measure: heads that matter by ablation, and that it does not see; empty without ablation."""
        if (by_ablation := self.values.get(ABLATION)) is None:
            return {}
        return {name: missed_heads(self.values[name], by_ablation) for name in FIRST_ORDER if name in self.values}

    @cached_property
    def agreements(self) -> dict[str, Agreement]:
        """How well each other measure agrees with ablation, which must not be left out."""
        ablation, *others = self.measures
        draws = Draws([item.text.document for item in self.items], self.settings.resamples)
        return {agreement.measure: agreement for agreement in agreements(others, ablation, draws)}

    @property
    def conserved(self) -> float | None:
        """Share of the relevance that arrives at the tokens, median over texts; None without relevance."""
        shares = (measure.conserved for measure in self.measures if measure.conserved is not None)
        return next((float(np.median(text_shares)) for text_shares in shares), None)
