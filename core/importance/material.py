"""Shared by the commands of this package: their options, and the texts, labels and metric that these select."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from attention_sieve.core.answering import Reading
from attention_sieve.core.commands import checkpoint_facts, loaded, progress_bar, reading_of
from attention_sieve.core.importance.metrics import Score
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings, MetricSettings
from attention_sieve.core.importance.usage import LABELLED_TEXTS
from attention_sieve.core.options import settings_of


@dataclass(frozen=True, eq=False, kw_only=True)
class CommandInput:
    """Input of the commands of this package."""

    reading: Reading[LabelledText]
    metric: MetricSettings
    text_facts: Mapping[str, str]
    """Metadata of files on the texts."""

    @property
    def read(self) -> tuple[LabelledText, ...]:
        """The texts that are not left out."""
        return tuple(self.reading.inputs[index] for index in sorted(self.reading.prepared))

    @property
    def documents(self) -> list[str | None]:
        """Document of each of them."""
        return [item.text.document for item in self.read]

    @property
    def score(self) -> Score:
        """How their outcomes are scored."""
        return self.metric.score_of(self.read)


def read_material(arguments: argparse.Namespace) -> CommandInput:
    """Load the checkpoint, texts and metric selected by the options of `LABELLED_TEXTS` and MetricSettings.

    Raises: AnalysisError if these do not fit together.
    """
    settings = AblationSettings(metric_settings=settings_of(arguments, MetricSettings()))
    given = LABELLED_TEXTS.in_file(arguments, progress_bar)
    checkpoint, pass_settings = loaded(arguments)
    LABELLED_TEXTS.check(checkpoint, arguments, settings)
    read = LABELLED_TEXTS.read(given, checkpoint, arguments, settings, progress_bar)
    reading = reading_of(
        checkpoint, pass_settings, read.inputs, arguments.too_long, arguments.answer, lambda item: item.text
    )
    return CommandInput(reading=reading, metric=read.settings.metric_settings, text_facts=read.facts)


def material_facts(material: CommandInput) -> dict[str, str]:
    """Provenance of the numbers in an output file."""
    return {
        **checkpoint_facts(material.reading.checkpoint, material.reading.pass_settings),
        "texts sha256": material.text_facts["texts sha256"],
        "metric": material.metric.metric,
        "scored by": material.metric.score_name,
        "labels": material.text_facts["labels"],
    }
