"""What ablation and cheaper measures find about the importance of each head. Imports no torch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.importance.agreement import Agreement, agreements
from attention_sieve.core.importance.effects import Draws, Effects, KeptAlone, effects, kept_alone
from attention_sieve.core.importance.measures import Measure, damage
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings
from attention_sieve.core.importance.unreliable import ESTIMATES, FIRST_ORDER, some_texts, unreliable_heads
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


def compared_texts(n_texts: int, settings: ImportanceSettings) -> Int[np.ndarray, " compared"]:
    """Indices of the texts over which first-order measures are compared with ablation: some, where it is left out."""
    return some_texts(n_texts) if settings.no_ablation else np.arange(n_texts)


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
    """Outcomes of each text that is compared with each head ablated in turn, None without any; and other measures."""
    settings: ImportanceSettings

    @property
    def cheap(self) -> CheapMeasures:
        """All measures except ablation."""
        return self.answers[1]

    @property
    def compared(self) -> Int[np.ndarray, " compared"]:
        """Indices of the texts over which first-order measures are compared with ablation."""
        return compared_texts(len(self.items), self.settings)

    @cached_property
    def ablation(self) -> Measure | None:
        """The damage by ablation over the texts that are compared; None if there is none."""
        outcomes = self.answers[0]
        if outcomes is None:
            return None
        return damage(outcomes, self.settings.metric_settings.score_of([self.items[index] for index in self.compared]))

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All measures, ablation first."""
        if self.settings.no_ablation or self.ablation is None:
            return self.cheap.measures
        return self.ablation, *self.cheap.measures

    @cached_property
    def values(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """Values of each measure over all texts; larger means more important."""
        return {measure.name: measure.values(len(self.items)) for measure in self.measures}

    @cached_property
    def exact(self) -> Float[np.ndarray, "layer head"] | None:
        """The damage by ablation over the texts that are compared, of each head; None if there is none."""
        return None if self.ablation is None else self.ablation.values(len(self.compared))

    @cached_property
    def unreliable(self) -> dict[str, Bool[np.ndarray, "layer head"]]:
        """By first-order measure: heads for which it errs, as ablation shows; no measure of another ablation."""
        if self.ablation is None:
            return {}
        metric, replaced_by = self.settings.metric_settings.metric, self.settings.replace
        draws = Draws([self.items[index].text.document for index in self.compared], self.settings.resamples)
        resampled = self.ablation.over(draws.weights)
        return {
            name: unreliable_heads(name, values, resampled, has_sign=metric != "output")
            for name, values in self.values.items()
            if name in FIRST_ORDER and ESTIMATES.get(name, replaced_by) == replaced_by
        }

    def unreliable_heads(self, measure: str) -> list[Head]:
        """Heads for which a measure errs, as far as is known; first the one without which the score changes most."""
        exact = self.exact
        if exact is None or measure not in self.unreliable:
            return []
        heads = [(int(layer), int(head)) for layer, head in np.argwhere(self.unreliable[measure])]
        return sorted(heads, key=lambda head: -abs(exact[head]))

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
