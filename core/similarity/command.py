"""The command `python -m attention_sieve distances`: how far apart all heads of a checkpoint attend."""

import argparse
from typing import Any

import numpy as np
import pandas as pd

from attention_sieve.core.commands import (
    TABLES,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    read_texts,
    write_table,
)
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.similarity.distances import ROWS, DistanceSettings, HeadDistances, head_distances
from attention_sieve.core.similarity.question import distance_question
from attention_sieve.core.texts.text import texts_sha256


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "distances", help="measure how differently each pair of heads attends", description=distances.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser)
    parser.add_argument(
        "--smoothed",
        action="store_true",
        help="smooth each row of attention A to 0.999 A + 0.001 / number of keys, as in the authors' code",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=ROWS,
        help="maximum number of rows (queries) compared per text; longer texts are sampled; default: %(default)s",
    )
    parser.set_defaults(run=distances)


def distances(arguments: argparse.Namespace) -> None:
    """Measure how differently each pair of heads attends; write a row per pair of heads, within and across layers.

    Columns:
        layer_a, head_a, layer_b, head_b: the two heads; a comes before b
        divergence: Jensen-Shannon divergence in nats, 0 to ln 2; mean over the rows of a text, then over texts
        sum: Jensen-Shannon divergence summed over all rows of all texts; with --smoothed, what the authors report
        relative_a_b, relative_b_a: Kullback-Leibler divergence in nats of a from b, and of b from a; empty for heads of
            different layers
    """
    distance_settings = DistanceSettings(smoothed=arguments.smoothed, rows=arguments.rows)
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, TABLES, [arguments.texts])
    checkpoint, settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    results = answers(checkpoint, distance_question(distance_settings), texts, prepared, settings)
    facts = {
        **checkpoint_facts(checkpoint, settings),
        "texts": str(len(results)),
        "texts sha256": texts_sha256(texts),
        "rows smoothed": "yes" if distance_settings.smoothed else "no",
        "most rows of a text": str(distance_settings.rows),
    }
    write_table(arguments.output, distance_table(head_distances(list(results.values()))), facts)


def distance_table(distances: HeadDistances) -> pd.DataFrame:
    """Every pair of different heads once, as the command's columns."""
    n_layers, n_heads = distances.shape
    a, b = np.triu_indices(n_layers * n_heads, k=1)
    (layer_a, head_a), (layer_b, head_b) = divmod(a, n_heads), divmod(b, n_heads)
    same = layer_a == layer_b
    return pd.DataFrame(
        {
            "layer_a": layer_a,
            "head_a": head_a,
            "layer_b": layer_b,
            "head_b": head_b,
            "divergence": distances.mean[layer_a, head_a, layer_b, head_b],
            "sum": distances.sum[layer_a, head_a, layer_b, head_b],
            "relative_a_b": np.where(same, distances.relative[layer_a, head_a, head_b], np.nan),
            "relative_b_a": np.where(same, distances.relative[layer_a, head_b, head_a], np.nan),
        }
    )
