"""The commands `python -m attention_sieve ablate` and `importance`: how much each head matters for a metric."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attention_sieve.core.commands import TABLES, check_output, finding_facts, write_reading, write_table
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import NO_ORDER, Agreement
from attention_sieve.core.importance.analysis import (
    ABLATION_ANALYSIS,
    AGREEMENT_COLUMNS,
    IMPORTANCE_ANALYSIS,
    SINGLE_HEAD_ANALYSIS,
    agreement_table,
)
from attention_sieve.core.importance.effects import halves
from attention_sieve.core.importance.material import add_labelled_texts_options, read_material
from attention_sieve.core.importance.measures import ABLATION
from attention_sieve.core.importance.verdicts import NEEDS
from attention_sieve.core.options import add_analysis_command, column_list, settings_of


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    parser = add_analysis_command(commands, "ablate", ablate, ABLATION_ANALYSIS)
    more_columns = column_list("Columns of --keep-one", SINGLE_HEAD_ANALYSIS.columns)
    parser.description = f"{parser.description}{more_columns}\n\n{NEEDS}"
    add_labelled_texts_options(parser)
    parser.add_argument(
        "--keep-one",
        type=Path,
        help="second file to write: the effect of keeping only the best head of each layer, which is chosen on one "
        "half of the texts and evaluated on the other",
    )
    parser = add_analysis_command(commands, "importance", importance, IMPORTANCE_ANALYSIS)
    parser.description = f"{parser.description}{column_list('Columns of --agreement', AGREEMENT_COLUMNS)}"
    add_labelled_texts_options(parser)
    parser.add_argument(
        "--agreement",
        type=Path,
        help="second file to write: rank correlation (Spearman) of each measure with ablation",
    )


def ablate(arguments: argparse.Namespace) -> None:
    """Ablate each head in turn and measure how the metric changes; write a row per head.

    A larger output change or loss is worse; a larger accuracy, matthews, f1 or pearson is better. The output change
    cannot be below 0, so for that metric p only shows that a head has any effect. A masked language model predicts 15%
    of the tokens of each text, always the same ones; other language models predict every token after the first.
    """
    settings = settings_of(arguments, ABLATION_ANALYSIS.settings)
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.keep_one:
        check_output(arguments.keep_one, TABLES, [arguments.texts, arguments.output])
    material = read_material(arguments)
    settings = replace(settings, of_metric=material.metric)
    if arguments.keep_one:
        halves(material.documents)  # too few texts are refused before the work is done
    finding = write_reading(arguments.output, ABLATION_ANALYSIS, material.reading, settings, material.of_texts)
    if note := finding.without_verdict(finding.effects):
        print(note, file=sys.stderr)
    if arguments.keep_one:
        write_reading(arguments.keep_one, SINGLE_HEAD_ANALYSIS, material.reading, settings, material.of_texts)


def importance(arguments: argparse.Namespace) -> None:
    """Measure the importance of each head in several ways; write a row per measure and head.

    Measures that this checkpoint does not support are left out, with the reason on standard error. The command prints
    the rank correlation of each measure with ablation, and how much of the relevance arrives at the tokens.

    Measures:
        ablation: how much worse the metric is without the head
        gradient per token, text or batch: absolute value of the head's output times its gradient, taken per token, per
            text or per batch
        attribution against zero, against mean: first-order estimate of how much the loss rises when the head's output
            is replaced by zero, or by its mean
        wanda-sp, flap: pruning scores, computed from outputs and weights
        confidence: largest attention weight of a query, mean over queries
        relevance: share of the head in the relevance of its layer, by layer-wise relevance propagation
    """
    settings = settings_of(arguments, IMPORTANCE_ANALYSIS.settings)
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.agreement:
        check_output(arguments.agreement, TABLES, [arguments.texts, arguments.output])
    if arguments.agreement and settings.no_ablation:
        raise AnalysisError("Agreement is measured against ablation. Leave out either --no-ablation or --agreement.")
    material = read_material(arguments)
    settings, of_texts = replace(settings, of_metric=material.metric), material.of_texts
    finding = write_reading(arguments.output, IMPORTANCE_ANALYSIS, material.reading, settings, of_texts)
    for name, reason in finding.cheap.left_out:
        print(f"Without {name}: {reason}", file=sys.stderr)
    if not settings.no_ablation:
        _print_agreements(finding.agreements)
    if arguments.agreement:
        facts = finding_facts(IMPORTANCE_ANALYSIS, material.reading, finding, settings, of_texts)
        write_table(arguments.agreement, agreement_table(finding), facts)
    if finding.conserved is not None:
        print(f"{finding.conserved:.1%} of the relevance arrives at the tokens (median over texts).")


def _print_agreements(agreements: Mapping[str, Agreement]) -> None:
    if all(np.isnan(agreement.spearman[0]) for agreement in agreements.values()):
        print(NO_ORDER)
        return
    print(f"Spearman's rank correlation with {ABLATION}, over all heads (95% interval):")
    for measure, agreement in agreements.items():
        value, low, high = (values[0] for values in (agreement.spearman, agreement.low, agreement.high))
        print(f"{measure:<26}{value:>6.2f} ({low:.2f} to {high:.2f})")
