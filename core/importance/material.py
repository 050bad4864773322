"""Shared by the commands of this package: their options, and the texts, labels and score that these select."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import answers, checkpoint_facts, loaded, prepared_texts, read_bytes, read_texts
from attention_sieve.core.importance.labels import check_label_column, read_labels
from attention_sieve.core.importance.metrics import SCORE_NAMES, Score, ScoreName, TextOutcomes, label_score, mean_score
from attention_sieve.core.importance.per_text import LabelledText, TextOutputs
from attention_sieve.core.importance.question import HEAD_OUTPUTS, MeanOutputs, ablation_question
from attention_sieve.core.options import (
    TEXTS_HELP,
    add_checkpoint_options,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.passes.metric import METRICS, Metric
from attention_sieve.core.passes.question import Item, Question, Result
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text, texts_sha256

LABEL_SCORES: Final = SCORE_NAMES["labels"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """Input of the commands of this package."""

    checkpoint: Checkpoint
    settings: PassSettings
    metric: Metric
    texts: tuple[Text, ...]
    """As read."""
    prepared: Mapping[int, PassText]
    """By index among the texts; some may be left out."""
    labels: np.ndarray | None
    """Label of each text as read; None unless the metric is labels."""
    score: Score

    @property
    def documents(self) -> list[str | None]:
        """Document of each prepared text, in the order of the texts."""
        return [self.texts[index].document for index in sorted(self.prepared)]

    @property
    def labelled(self) -> list[LabelledText]:
        """All texts as read, with their labels."""
        labels = [None] * len(self.texts) if self.labels is None else self.labels.tolist()
        return [LabelledText(text, label) for text, label in zip(self.texts, labels, strict=True)]


def add_metric_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the metric, the texts and the checkpoint."""
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser, f"{TEXTS_HELP}; a table (or gzipped table) for the metric labels")
    parser.add_argument(
        "--metric",
        default="output",
        choices=METRICS,
        help="output: change of the text vector (mean of the last hidden states), as 1 - cosine between those with all "
        "heads on and without the head; lm: loss of the language model, in nats per predicted token; labels: score of "
        "a classifier on labelled texts; default: %(default)s",
    )
    parser.add_argument("--label-column", help="column of the table that holds the labels, for the metric labels")
    parser.add_argument(
        "--score",
        choices=LABEL_SCORES,
        help="score for the metric labels; f1 is that of the second class if there are two, otherwise the mean over "
        "classes; default: accuracy, or pearson for a regression",
    )


def read_material(arguments: argparse.Namespace) -> Material:
    """Load the checkpoint, texts and metric selected by the options of `add_metric_options`.

    Raises: AnalysisError if these do not fit together.
    """
    from attention_sieve.core.passes.readout import check_metric

    check_label_column(arguments.metric, arguments.label_column)
    texts = () if arguments.metric == "labels" else read_texts(arguments.texts, arguments.text_columns)
    checkpoint, settings = loaded(arguments)
    check_metric(checkpoint, arguments.metric, settings.kind)
    labels, n_classes = None, 0
    if arguments.metric == "labels":
        columns = arguments.text_columns and tuple(name.strip() for name in arguments.text_columns.split(","))
        content = read_bytes(arguments.texts)
        table = read_labels(checkpoint, arguments.texts.name, content, columns, arguments.label_column)
        texts, labels, n_classes = table.texts, table.values, table.n_classes
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    score = score_of(arguments.metric, arguments.score, None if labels is None else labels[sorted(prepared)], n_classes)
    return Material(
        checkpoint=checkpoint,
        settings=settings,
        metric=arguments.metric,
        texts=texts,
        prepared=prepared,
        labels=labels,
        score=score,
    )


def score_of(metric: Metric, name: ScoreName | None, labels: np.ndarray | None, n_classes: int) -> Score:
    """The score of a metric.

    Raises: AnalysisError for a score that the labels do not have.
    """
    if labels is None:
        return mean_score(SCORE_NAMES[metric][0])
    return label_score(name or ("accuracy" if n_classes else "pearson"), labels, n_classes)


def ablation_outcomes(
    material: Material, *, alone: bool = False, means: MeanOutputs | None = None
) -> list[TextOutcomes]:
    """Outcomes of each prepared text, in the order of the texts."""
    question = ablation_question(material.metric, alone=alone, means=means)
    return results_of(material, question, material.texts, "ablating all other heads" if alone else "ablating heads")


def outputs_of_heads(material: Material) -> list[TextOutputs]:
    """Sums of the heads' outputs on each prepared text, in the order of the texts."""
    return results_of(material, HEAD_OUTPUTS, material.texts, "mean outputs of heads")


def results_of(material: Material, question: Question[Item, Result], items: Sequence[Item], doing: str) -> list[Result]:
    """A question's results for the prepared texts, in the order of the texts, computed under a progress bar."""
    return list(answers(material.checkpoint, question, items, material.prepared, material.settings, doing).values())


def material_facts(arguments: argparse.Namespace, material: Material) -> dict[str, str]:
    """Provenance of the numbers in an output file."""
    return {
        **checkpoint_facts(material.checkpoint, material.settings),
        "texts sha256": texts_sha256(material.texts),
        "metric": material.metric,
        "scored by": material.score.name,
        "labels": arguments.label_column or "",
    }
