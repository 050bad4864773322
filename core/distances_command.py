"""The command `python -m core distances`: how far apart all heads of a checkpoint attend."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.command_line import (
    TABLES,
    add_checkpoint_options,
    add_random_weights_option,
    add_texts_options,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write_table,
)
from core.frames import texts_sha256
from core.similar_heads import ROWS, DistanceSettings, HeadDistances, head_distances
from core.texts import SUFFIXES


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("distances", help="compare all heads with each other", description=distances.__doc__)
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser, ", ".join(SUFFIXES))
    parser.add_argument("--output", required=True, type=Path, help="file to write: " + " or ".join(TABLES))
    parser.add_argument(
        "--smoothed", action="store_true", help="rows as 0.999 A + 0.001 / keys, as in the authors' code"
    )
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"rows looked at of a longer text, a sample; {ROWS} unless told"
    )
    parser.set_defaults(run=distances)


def distances(chosen: argparse.Namespace) -> None:
    """Write one row per pair of heads of all layers: layer_a, head_a, layer_b, head_b (a before b), divergence
    (Jensen-Shannon in nats, 0 to ln 2, mean over the rows of a text and then over texts), sum (over all rows of all
    texts; with --smoothed the authors' figure), and the divergences (Kullback-Leibler, in nats) of a from b and of b
    from a, which only heads of one layer have.
    """
    from core.head_distances import text_distances

    how = DistanceSettings(smoothed=chosen.smoothed, rows=chosen.rows)
    texts = read_texts(chosen.texts, chosen.text_columns)
    check_output(chosen.output, TABLES, [chosen.texts])
    checkpoint, asked = loaded(chosen)
    prepared = list(prepared_texts(checkpoint, texts, asked, chosen.too_long).values())
    found = sorted(
        progress_bar(text_distances(checkpoint, prepared, asked, how), len(prepared)), key=lambda one: one[0]
    )
    facts = {
        **checkpoint_facts(checkpoint, asked),
        "texts": str(len(found)),
        "texts sha256": texts_sha256(texts),
        "rows smoothed": "yes" if how.smoothed else "no",
        "most rows of a text": str(how.rows),
    }
    write_table(chosen.output, distance_table(head_distances([of_text for _, of_text in found])), facts)


def distance_table(found: HeadDistances) -> pd.DataFrame:
    """Every pair of different heads once, as the command's columns."""
    n_layers, n_heads = found.shape
    a, b = np.triu_indices(n_layers * n_heads, k=1)
    (layer_a, head_a), (layer_b, head_b) = divmod(a, n_heads), divmod(b, n_heads)
    same = layer_a == layer_b
    return pd.DataFrame(
        {
            "layer_a": layer_a,
            "head_a": head_a,
            "layer_b": layer_b,
            "head_b": head_b,
            "divergence": found.mean[layer_a, head_a, layer_b, head_b],
            "sum": found.sum[layer_a, head_a, layer_b, head_b],
            "relative_a_b": np.where(same, found.relative[layer_a, head_a, head_b], np.nan),
            "relative_b_a": np.where(same, found.relative[layer_a, head_b, head_a], np.nan),
        }
    )
