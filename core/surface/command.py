"""The command `python -m attention_sieve surface`: what each head looks at."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.commands import (
    TABLES,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_bytes,
    read_texts,
    write_table,
)
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.surface.frequencies import FREQUENCY_SUFFIXES, FrequencyList, frequencies_of, read_frequencies
from attention_sieve.core.surface.key_kinds import PUNCTUATION, SurfaceSettings
from attention_sieve.core.surface.labels import OFFSETS, head_labels, offset_shares, positional, rare_shares
from attention_sieve.core.surface.per_text import TextGradients, TextSurface
from attention_sieve.core.surface.question import surface_question
from attention_sieve.core.surface.statistics import (
    HeadStatistics,
    LayerStatistics,
    gradient_statistics,
    head_statistics,
    layer_statistics,
    uniform_entropy,
)
from attention_sieve.core.texts.text import texts_sha256

COLUMNS: Final = ("statistic", "layer", "head", "mean", "low", "high", "texts", "offset", "holds")


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "surface", help="measure where each head looks: tokens, distances, entropy", description=surface.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser)
    parser.add_argument(
        "--frequencies",
        type=Path,
        help=f"file of words, the most frequent first, that decides which words are rare: "
        f"{', '.join(FREQUENCY_SUFFIXES)}; default: counted in the texts if there are enough, otherwise English",
    )
    parser.add_argument(
        "--punctuation",
        default="".join(PUNCTUATION),
        help="characters that count as punctuation, written together; default: %(default)s",
    )
    parser.add_argument(
        "--as-in-code",
        action="store_true",
        help="compute shares and entropies as the code of Clark et al. does, which departs from their paper",
    )
    parser.add_argument(
        "--gradients",
        type=Path,
        help="second file to write, for a masked language model: gradient of the loss with respect to the attention",
    )
    parser.set_defaults(run=surface)


def surface(arguments: argparse.Namespace) -> None:
    """Measure where each head looks, without a syntactic analysis; write a row per statistic, layer and head.

    Columns:
        statistic: name of the statistic. Shares of attention and confidence are between 0 and 1, entropy is in nats,
            distance in tokens. `offset share` is how often the most attended key is at that offset. `positional` and
            `rare` are labels of heads
        layer, head: index of the layer and of the head, from 0; head is empty for statistics of a whole layer
            (agreement, output agreement, uniform entropy)
        mean: mean over texts. For positional, the share of tokens whose most attended key is at the offset; for rare,
            the share on one of the two rarest words of the text
        low, high: 95% confidence interval over texts
        texts: number of texts for which the statistic is defined; a text without [CLS], [SEP] or punctuation counts as
            a share of 0 if another text has some
        offset: key minus query, so -1 is the previous token; in rows of `offset share`, empty for all keys further
            away; in rows of `positional`, empty if no token counts
        holds: whether the head has the label

    Columns of --gradients:
        kind: kind of key
        layer: index of the layer, from 0
        mean, low, high: mean over texts of the absolute gradient with respect to one attention weight, and its 95%
            confidence interval
        texts: number of texts with such keys
    """
    from attention_sieve.core.surface.gradients import attention_gradients, check_gradients

    texts = read_texts(arguments.texts, arguments.text_columns)
    frequencies = _frequencies(arguments.frequencies) or frequencies_of(texts)
    inputs = [arguments.texts, arguments.frequencies]
    check_output(arguments.output, TABLES, inputs)
    if arguments.gradients:
        check_output(arguments.gradients, TABLES, [*inputs, arguments.output])
    checkpoint, settings = loaded(arguments)
    if arguments.gradients:
        check_gradients(checkpoint)
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    surface_settings = SurfaceSettings(tuple(arguments.punctuation), arguments.as_in_code)
    facts = {
        **checkpoint_facts(checkpoint, settings),
        "texts sha256": texts_sha256(texts),
        "word frequencies": frequencies.source,
        "punctuation": arguments.punctuation,
        "as in code": "yes" if surface_settings.as_in_code else "no",
    }
    results = answers(checkpoint, surface_question(surface_settings), texts, prepared, settings)
    write_table(arguments.output, surface_table(list(results.values()), frequencies), facts)
    if arguments.gradients:
        backward = attention_gradients(
            checkpoint, list(prepared.values()), settings, punctuation=surface_settings.punctuation
        )
        gradients = [text_gradients for _, text_gradients in progress_bar(backward, len(prepared))]
        write_table(arguments.gradients, gradient_table(gradients), facts)


def _frequencies(path: Path | None) -> FrequencyList | None:
    return None if path is None else read_frequencies(path.name, read_bytes(path))


def surface_table(texts: Sequence[TextSurface], frequencies: FrequencyList) -> pd.DataFrame:
    """Every statistic of many texts, as the command's columns."""
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    rare = rare_shares(texts, ranks)
    labels = head_labels(positional(texts), rare)
    heads_at_offset, n_texts = labels.positional, len(texts)
    parts = [
        *_statistic_rows(head_statistics(texts, ranks=ranks)),
        *_statistic_rows(layer_statistics(texts)),
        _rows("uniform entropy", uniform_entropy(texts)[0], n_texts),
        *(_rows("offset share", share, n_texts, offset=offset) for offset, share in _offsets(texts)),
        _rows(
            "positional",
            heads_at_offset.share,
            n_texts,
            offset=np.where(np.isnan(heads_at_offset.share), np.nan, heads_at_offset.offset),
            holds=heads_at_offset.holds,
        ),
        _rows("rare", rare.two_rarest, rare.n_texts, holds=labels.rare),
    ]
    return pd.concat(parts, ignore_index=True)


def gradient_table(texts: Sequence[TextGradients]) -> pd.DataFrame:
    """Gradients of many texts: kind of key, layer, mean, low, high, texts."""
    table = pd.concat(_statistic_rows(gradient_statistics(texts)), ignore_index=True)
    return table.rename(columns={"statistic": "kind"})[["kind", "layer", "mean", "low", "high", "texts"]]


def _offsets(texts: Sequence[TextSurface]) -> Iterator[tuple[int | None, np.ndarray]]:
    return zip((*OFFSETS, None), offset_shares(texts), strict=True)


def _statistic_rows(statistics: HeadStatistics | LayerStatistics) -> list[pd.DataFrame]:
    statistic_values = zip(
        statistics.names, statistics.mean, statistics.low, statistics.high, statistics.n_texts.tolist(), strict=True
    )
    return [_rows(name, mean, n_texts, low=low, high=high) for name, mean, low, high, n_texts in statistic_values]


def _rows(
    statistic: str, mean: Float[np.ndarray, "*head"], n_texts: int, **extra: np.ndarray | int | None
) -> pd.DataFrame:
    """One row per head or layer; columns without a value are missing values."""
    layer, *head = np.indices(mean.shape)
    columns = {"layer": layer, "head": head[0] if head else None, "mean": mean, "texts": n_texts, **extra}
    types = dict.fromkeys(("layer", "head", "texts", "offset"), "Int64") | dict.fromkeys(
        ("mean", "low", "high"), "float64"
    )
    flat = {name: values.ravel() if isinstance(values, np.ndarray) else values for name, values in columns.items()}
    table = pd.DataFrame({"statistic": statistic, **flat}, index=range(mean.size), columns=COLUMNS)
    return table.astype({**types, "holds": "boolean"})
