"""The command `python -m attention_sieve distances`: how far apart all heads of a checkpoint attend."""

import argparse
from typing import Any

from attention_sieve.core.commands import read_texts, write_finding
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_settings_options,
    add_texts_options,
    description,
    settings_of,
)
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "distances",
        help="measure how differently each pair of heads attends",
        description=description(distances, SIMILARITY_ANALYSIS.columns),
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser)
    add_settings_options(parser, SIMILARITY_ANALYSIS.settings)
    parser.set_defaults(run=distances)


def distances(arguments: argparse.Namespace) -> None:
    """Measure how differently each pair of heads attends; write a row per pair of heads, within and across layers."""
    settings = settings_of(arguments, SIMILARITY_ANALYSIS.settings)
    texts = read_texts(arguments.texts, arguments.text_columns)
    write_finding(arguments, SIMILARITY_ANALYSIS, texts, settings)
