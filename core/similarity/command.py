"""The command `python -m attention_sieve similarity`: how far apart all heads of a checkpoint attend."""

import argparse
from typing import Any

from attention_sieve.core.commands import read_texts, write_finding
from attention_sieve.core.options import add_analysis_command, add_texts_options, settings_of
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    add_texts_options(add_analysis_command(commands, "similarity", similarity, SIMILARITY_ANALYSIS))


def similarity(arguments: argparse.Namespace) -> None:
    """Measure how differently each pair of heads attends; write a row per pair of heads, within and across layers."""
    settings = settings_of(arguments, SIMILARITY_ANALYSIS.settings)
    texts = read_texts(arguments.texts, arguments.text_columns)
    write_finding(arguments, SIMILARITY_ANALYSIS, texts, settings)
