"""The command `python -m attention_sieve copying`: where heads look, what they write, and whether it matters."""

import argparse
import sys
from typing import Any

from attention_sieve.core.commands import read_texts, write_finding
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.copying.published import DIFFERENCES
from attention_sieve.core.options import add_analysis_command, add_texts_options, column_list, settings_of


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_analysis_command(commands, "copying", copying, COPY_ANALYSIS)
    differences = {str(name): says for name, says in DIFFERENCES.items()}
    parser.description = f"{parser.description}{column_list('Detectors', differences)}"
    add_texts_options(parser)


def copying(arguments: argparse.Namespace) -> None:
    """Test whether heads of a decoder look at what is to be copied, write it, and matter for the loss on second copies;
    write a row per head.

    The texts should have repeats, as those of `probe-texts` have. Tokens count for the loss that complete a pair of
    tokens for the second time. How many heads are in all three columns is printed beside the number expected by chance.
    """
    settings = settings_of(arguments, COPY_ANALYSIS.settings)
    texts = read_texts(arguments.texts, arguments.text_columns)
    finding = write_finding(arguments, COPY_ANALYSIS, texts, settings)
    for name, reason in finding.answers.left_out:
        print(f"Without {name}: {reason}", file=sys.stderr)
    if finding.without_verdict:
        print(finding.without_verdict, file=sys.stderr)
    n_heads = int(finding.present.sum())
    counts = ", ".join(f"{name} {int(holds.sum()):,}" for name, holds in finding.columns.items())
    n_all = finding.combinations.get(frozenset(finding.columns), 0)
    print(f"Of {n_heads:,} heads: {counts}; all of these {n_all:,} (by chance {finding.expected_in_all:.1f}).")
