"""The command `python -m attention_sieve coreference`: accuracy of every head at antecedent selection."""

import argparse
import hashlib
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attention_sieve.core.answering import Reading
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    loaded,
    prepared_texts,
    progress_bar,
    read_bytes,
    write_reading,
)
from attention_sieve.core.coreference.accuracy import BASELINES, CoreferenceScores
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.coreference.files import KINDS, read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, windows
from attention_sieve.core.options import add_analysis_command, settings_of
from attention_sieve.core.statistics.means import documents_note

Piece = TypeVar("Piece")


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_analysis_command(commands, "coreference", coreference, COREFERENCE_ANALYSIS)
    parser.add_argument("--texts", required=True, type=Path, help=f"file of texts with annotated coreference: {KINDS}")
    parser.add_argument(
        "--window",
        type=int,
        default=WINDOW,
        help="longer documents are split at sentence ends into windows of at most this many tokens; default: "
        "%(default)s",
    )


def coreference(arguments: argparse.Namespace) -> None:
    """Measure how well each head finds the antecedents of mentions; write a row per group of mentions, layer and head.

    Documents are the units of intervals and tests, because cases of one text are not independent; with a single
    document there are no intervals or tests. A summary is printed to standard error.
    """
    settings = settings_of(arguments, COREFERENCE_ANALYSIS.settings)
    check_output(arguments.output, TABLES, [arguments.texts])
    content = read_bytes(arguments.texts)
    texts = read_mentions(content, partial(_watched, "parsing"))
    checkpoint, of_pass = loaded(arguments)
    COREFERENCE_ANALYSIS.question(settings).check(of_pass.kind)
    cut = windows(checkpoint, texts, arguments.window, partial(_watched, "cutting"))
    prepared = prepared_texts(checkpoint, [text.text for text in cut.texts], of_pass, "truncate")
    reading = Reading(
        checkpoint=checkpoint, of_pass=of_pass, inputs=cut.texts, prepared=prepared, answer=arguments.answer
    )
    of_texts = {"texts sha256": hashlib.sha256(content).hexdigest(), "window": str(arguments.window)}
    finding = write_reading(arguments.output, COREFERENCE_ANALYSIS, reading, settings, of_texts)
    print(_summary(finding.scores, cut.n_apart), documents_note(finding.n_documents), file=sys.stderr)


def _watched(doing: str, items: Iterable[Piece], n_texts: int) -> Iterable[Piece]:
    return progress_bar(([item] for item in items), n_texts, doing)


def _summary(scores: CoreferenceScores, n_apart: int) -> str:
    judged, (layer, head) = scores.judgement, scores.best
    clauses = [
        f"{head_name(layer, head)} is right in {judged.accuracy[0, layer, head]:.1%} of {judged.n_cases[0]:,} cases",
        *(f"{name} in {judged.baselines[baseline, 0]:.1%}" for baseline, name in enumerate(BASELINES)),
    ]
    if judged.held_out is not None:
        held_out = judged.held_out
        clauses.append(
            f"heads chosen on one half of the documents in {held_out.accuracy[0]:.1%} of the other's cases "
            f"({held_out.low[0]:.1%} to {held_out.high[0]:.1%})"
        )
    if n_apart:
        clauses.append(f"{n_apart:,} mentions have their antecedents in earlier windows and do not count as cases")
    if scores.n_unread:
        clauses.append(f"{scores.n_unread:,} mentions without a token of their own were left out")
    return "; ".join(clauses) + "."
