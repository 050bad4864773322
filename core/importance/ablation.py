"""Outcomes of texts with each head ablated in turn. Imports no torch."""

from attention_sieve.core.answering import Ask
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import HEAD_OUTPUTS, ablation_question, mean_outputs
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings

Items = tuple[LabelledText, ...]


def ablated(
    ask: Ask, items: Items, settings: AblationSettings | ImportanceSettings, *, alone: bool = False
) -> tuple[TextOutcomes, ...]:
    """Outcomes of each text with each head ablated in turn; means that replace outputs are found first."""
    texts = [item.text for item in items]
    means = mean_outputs(ask(HEAD_OUTPUTS, texts, "mean outputs of heads")) if settings.replace == "mean" else None
    doing = "ablating all other heads" if alone else "ablating heads"
    return ask(ablation_question(settings.metric_settings.metric, alone=alone, means=means), texts, doing)
