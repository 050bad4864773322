"""How the importance of heads is asked for: labelled texts, from a file or a program, and what is said of a finding."""

import csv
import io
from argparse import Namespace
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from attention_sieve.core.answering import Watch
from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import NO_ORDER
from attention_sieve.core.importance.finding import ImportanceFinding
from attention_sieve.core.importance.labels import check_label_column, read_labels
from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.texts.parsers import parsed_by
from attention_sieve.core.texts.text import Text, read_bytes, read_file, texts_sha256
from attention_sieve.core.usage import TEXTS_HELP, Inputs, Option, ReadInputs

MOST_NAMED: Final = 5
"""Heads of one measure that are named; the table has all."""


@dataclass(frozen=True)
class _Given:
    """Texts, or a table of texts with labels for the metric that needs them."""

    texts: tuple[Text, ...] | None
    """None for those of the table."""
    name: str = ""
    """Of the file of the table, which is empty where there is none."""
    content: bytes = b""
    text_columns: tuple[str, ...] | None = None
    label_column: str = ""


def _in_file(options: Namespace, _: Watch) -> _Given:
    """The file of the options --texts, --text-columns and --label-column.

    Raises: TextError; AnalysisError for a column of labels without a metric that uses them, or the reverse.
    """
    check_label_column(options.metric or "output", options.label_column)
    named = options.text_columns and tuple(name.strip() for name in options.text_columns.split(","))
    content, name = read_bytes(options.texts), options.texts.name
    if options.metric == "labels":
        return _Given(None, name, content, named, options.label_column)
    return _Given(parsed_by(read_file(name, content, named), None))


def _given(texts: Any, keywords: Namespace, parsed: Callable[[Any], tuple[Text, ...]]) -> _Given:
    """Texts of a program, with the labels that a metric needs, as a table has them: names or numbers of the classes of
    the checkpoint, or values.

    Raises: TextError; AnalysisError for labels that are missing, or not used.
    """
    read, metric, labels = parsed(texts), keywords.metric or "output", keywords.labels
    if metric != "labels" and labels is not None:
        raise AnalysisError(f'The metric {metric} uses no labels. Choose metric="labels", or leave out labels.')
    if metric != "labels":
        return _Given(read)
    n_labels = len(labels) if isinstance(labels, Sized) else 0
    if labels is None or n_labels != len(read):
        raise AnalysisError(
            f"The metric labels needs a label for each of {len(read):,} texts, and there are {n_labels or 'none'}."
        )
    columns, file = ("first", "second")[: len(read[0].segments)], io.StringIO()
    rows = [(*text.segments, label) for text, label in zip(read, labels, strict=True)]
    csv.writer(file).writerows([(*columns, "label"), *rows])
    return _Given(read, "texts.csv", file.getvalue().encode(), columns, "label")


def _check(checkpoint: Checkpoint, options: Namespace, settings: Any) -> None:
    """Raise AnalysisError for a metric that the checkpoint does not have."""
    from attention_sieve.core.passes.readout import check_metric

    check_metric(checkpoint, settings.metric_settings.metric, options.attention or checkpoint.files.kinds[0])


def _labelled(given: _Given, checkpoint: Checkpoint, _: Namespace, settings: Any, __: Watch) -> ReadInputs:
    """The texts with their labels, and the settings, which say how many classes these have.

    Raises: AnalysisError for labels that the checkpoint does not have.
    """
    texts, n_classes = given.texts or (), 0
    items = tuple(map(LabelledText, texts))
    if given.name:
        table = read_labels(checkpoint, given.name, given.content, given.text_columns, given.label_column)
        # The texts of a program may have documents, ids or trees, which its table of labels does not.
        texts, n_classes = given.texts or table.texts, table.n_classes
        items = tuple(LabelledText(*labelled) for labelled in zip(texts, table.values.tolist(), strict=True))
    metric_settings = replace(settings.metric_settings, n_classes=n_classes)
    metric_settings.score_of(items)  # raises for a score that the labels do not have, before the work
    facts = {"texts sha256": texts_sha256(texts), "labels": given.label_column}
    return ReadInputs(inputs=items, settings=replace(settings, metric_settings=metric_settings), facts=facts)


LABELLED_TEXTS: Final = Inputs(
    file=f"{TEXTS_HELP}; a table (or gzipped table) for the metric labels",
    are_texts=True,
    options={
        "label_column": Option(sentence="column of the table that holds the labels, for the metric labels"),
    },
    in_file=_in_file,
    keywords={
        "labels": Option(
            sentence="of the texts, for the metric labels: names or numbers of the checkpoint's classes, or values",
            given=lambda labels: labels,
        )
    },
    given=_given,
    check=_check,
    read=_labelled,
)


def importance_summary(finding: ImportanceFinding) -> Iterator[str]:
    """The agreement of measures with ablation, where they err, and how much of the relevance arrives at the tokens."""
    if not finding.settings.no_ablation:
        yield _agreements(finding)
    yield from _unreliable(finding)
    if finding.conserved is not None:
        yield f"{finding.conserved:.1%} of the relevance arrives at the tokens (median over texts)."


def _agreements(finding: ImportanceFinding) -> str:
    agreements = finding.agreements
    if all(np.isnan(agreement.spearman[0]) for agreement in agreements.values()):
        return NO_ORDER
    lines = [f"Spearman's rank correlation with {ABLATION}, over all heads (95% interval):"]
    for measure, agreement in agreements.items():
        value, low, high = (values[0] for values in (agreement.spearman, agreement.low, agreement.high))
        lines.append(f"{measure:<26}{value:>6.2f} ({low:.2f} to {high:.2f})")
    return "\n".join(lines)


def _unreliable(finding: ImportanceFinding) -> Iterator[str]:
    by_measure = {name: finding.unreliable_heads(name) for name in finding.unreliable}
    if any(by_measure.values()):
        n_texts = len(finding.compared)
        yield f"First-order estimates that are unreliable, by ablation on {n_texts:,} text{'s' * (n_texts > 1)}:"
    for name, heads in by_measure.items():
        if heads:
            more = f" and {len(heads) - MOST_NAMED:,} more" if len(heads) > MOST_NAMED else ""
            yield f"{name:<26}{head_names(heads[:MOST_NAMED])}{more}"
