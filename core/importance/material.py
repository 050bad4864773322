"""Shared by the commands of this package: their options, and the texts, labels and metric that these select."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace

from attention_sieve.core.answering import Reading
from attention_sieve.core.commands import checkpoint_facts, loaded, prepared_texts, read_bytes, read_texts
from attention_sieve.core.importance.labels import check_label_column, read_labels
from attention_sieve.core.importance.metrics import Score
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import MetricSettings
from attention_sieve.core.options import TEXTS_HELP, add_texts_options, settings_of
from attention_sieve.core.texts.text import texts_sha256


@dataclass(frozen=True, eq=False, kw_only=True)
class CommandInput:
    """Input of the commands of this package."""

    reading: Reading[LabelledText]
    metric: MetricSettings
    of_texts: Mapping[str, str]
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


def add_labelled_texts_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the texts, and the labels for a metric that needs them."""
    add_texts_options(parser, f"{TEXTS_HELP}; a table (or gzipped table) for the metric labels")
    parser.add_argument("--label-column", help="column of the table that holds the labels, for the metric labels")


def read_material(arguments: argparse.Namespace) -> CommandInput:
    """Load the checkpoint, texts and metric selected by the options of `add_labelled_texts_options` and MetricSettings.

    Raises: AnalysisError if these do not fit together.
    """
    from attention_sieve.core.passes.readout import check_metric

    metric = settings_of(arguments, MetricSettings())
    check_label_column(metric.metric, arguments.label_column)
    texts = () if metric.metric == "labels" else read_texts(arguments.texts, arguments.text_columns)
    checkpoint, of_pass = loaded(arguments)
    check_metric(checkpoint, metric.metric, of_pass.kind)
    inputs = tuple(map(LabelledText, texts))
    if metric.metric == "labels":
        columns = arguments.text_columns and tuple(name.strip() for name in arguments.text_columns.split(","))
        content = read_bytes(arguments.texts)
        table = read_labels(checkpoint, arguments.texts.name, content, columns, arguments.label_column)
        texts, inputs, metric = table.texts, table.items, replace(metric, n_classes=table.n_classes)
    prepared = prepared_texts(checkpoint, texts, of_pass, arguments.too_long)
    material = CommandInput(
        reading=Reading(
            checkpoint=checkpoint, of_pass=of_pass, inputs=inputs, prepared=prepared, answer=arguments.answer
        ),
        metric=metric,
        of_texts={"texts sha256": texts_sha256(texts), "labels": arguments.label_column or ""},
    )
    _ = material.score  # raises for a score that the labels do not have, before the work
    return material


def material_facts(material: CommandInput) -> dict[str, str]:
    """Provenance of the numbers in an output file."""
    return {
        **checkpoint_facts(material.reading.checkpoint, material.reading.of_pass),
        "texts sha256": material.of_texts["texts sha256"],
        "metric": material.metric.metric,
        "scored by": material.metric.score_name,
        "labels": material.of_texts["labels"],
    }
