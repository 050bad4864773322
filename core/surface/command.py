"""The command `python -m attention_sieve surface`: what each head looks at."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from attention_sieve.core.commands import (
    TABLES,
    check_output,
    loaded,
    read_bytes,
    read_texts,
    reading_of,
    write_reading,
)
from attention_sieve.core.options import add_analysis_command, add_texts_options, column_list, settings_of
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS, SURFACE_ANALYSIS, GradientSettings
from attention_sieve.core.surface.frequencies import FREQUENCY_SUFFIXES, read_frequencies
from attention_sieve.core.texts.text import texts_sha256


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_analysis_command(commands, "surface", surface, SURFACE_ANALYSIS)
    parser.description = f"{parser.description}{column_list('Columns of --gradients', GRADIENT_ANALYSIS.columns)}"
    add_texts_options(parser)
    parser.add_argument(
        "--frequencies",
        type=Path,
        help=f"file of words, the most frequent first, that decides which words are rare: "
        f"{', '.join(FREQUENCY_SUFFIXES)}; default: counted in the texts if there are enough, otherwise English",
    )
    parser.add_argument(
        "--gradients",
        type=Path,
        help="second file to write, for a masked language model: gradient of the loss with respect to the attention",
    )


def surface(arguments: argparse.Namespace) -> None:
    """Measure where each head looks, without a syntactic analysis; write a row per statistic, layer and head."""
    settings = settings_of(arguments, SURFACE_ANALYSIS.settings)
    texts = read_texts(arguments.texts, arguments.text_columns)
    inputs = [arguments.texts, arguments.frequencies]
    if arguments.frequencies:
        words = read_frequencies(arguments.frequencies.name, read_bytes(arguments.frequencies))
        settings = replace(settings, frequencies=words)
    check_output(arguments.output, TABLES, inputs)
    if arguments.gradients:
        check_output(arguments.gradients, TABLES, [*inputs, arguments.output])
    checkpoint, of_pass = loaded(arguments)
    if arguments.gradients:
        GRADIENT_ANALYSIS.check(checkpoint)
    reading = reading_of(checkpoint, texts, of_pass, arguments)
    of_texts = {"texts sha256": texts_sha256(texts)}
    write_reading(arguments.output, SURFACE_ANALYSIS, reading, settings, of_texts)
    if arguments.gradients:
        of_gradients = GradientSettings(punctuation=settings.punctuation, alpha=settings.alpha)
        write_reading(arguments.gradients, GRADIENT_ANALYSIS, reading, of_gradients, of_texts)
