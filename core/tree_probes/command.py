"""The command `python -m attention_sieve tree-probes`: how well all heads together predict the syntactic head of each
word."""

import argparse
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.find import load_checkpoint, randomly_initialised
from attention_sieve.core.commands import (
    TABLE_FILE,
    TABLES,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write,
    write_table,
)
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_parser_options,
    add_settings_options,
    add_texts_options,
    column_list,
    settings_of,
)
from attention_sieve.core.passes.texts import PassText, check_settings, queries_text
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import SUFFIXES, Text, texts_sha256
from attention_sieve.core.tree_probes.features import check_kind, embedded_words, word_attention_maps, word_pieces
from attention_sieve.core.tree_probes.probe import (
    LEVEL,
    RIGHT_BRANCHING,
    AttachmentScore,
    ProbeTraining,
    TreeProbeSettings,
    offset_scores,
    uas,
)
from attention_sieve.core.tree_probes.run import TrainedProbe
from attention_sieve.core.tree_probes.texts import (
    ProbeText,
    attention_bytes,
    check_fits,
    left_out,
    little_data,
    n_left_out,
    probe_texts,
    split,
)
from attention_sieve.core.tree_probes.word_vectors import UNKNOWN, WordVectors, no_vectors, vectors_from_file
from attention_sieve.core.usage import HEAD_COLUMNS

NONE: Final = "none"
EMBEDDINGS: Final = "embeddings"
COLUMNS: Final = {
    **HEAD_COLUMNS,
    "w": "weight of the attention from a candidate to the word; a norm if it depends on words",
    "u": "weight of the attention from the word to a candidate, likewise",
    "control_w": "w of the random control",
    "control_u": "u of the random control",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Texts:
    texts: tuple[Text, ...]
    train: Sequence[int]
    """Indices of the training texts."""
    test: Sequence[int]
    prepared: Mapping[int, PassText]
    """By index; without texts that are left out, as are the trees."""
    trees: Mapping[int, Dependencies]


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "tree-probes",
        help="train a probe that predicts syntactic heads from all attention heads",
        description=f"{inspect.cleandoc(tree_probes.__doc__ or '')}{column_list('Columns', COLUMNS)}",
    )
    add_checkpoint_options(parser)
    add_texts_options(
        parser, f"training texts: {', '.join(SUFFIXES)}; parsed by spaCy if the file has no dependency trees"
    )
    add_parser_options(parser)
    parser.add_argument("--test-texts", type=Path, help="file of test texts; default: a share of --texts is held out")
    parser.add_argument(
        "--test-share", type=float, default=0.25, help="share of --texts held out for testing; default: %(default)s"
    )
    parser.add_argument(
        "--words",
        default=NONE,
        help="word vectors on which the weight of a head may depend: none, embeddings (those of the checkpoint), or a "
        "text file in GloVe's format; default: %(default)s",
    )
    add_settings_options(parser, TreeProbeSettings())
    parser.add_argument(
        "--memory-mb", type=int, default=1024, help="memory limit for attention maps in MB; default: %(default)s"
    )
    parser.add_argument(
        "--random-control", action="store_true", help="train a second probe on the same model with random weights"
    )
    add_output_option(parser, f"file to write: {TABLE_FILE}; a summary is written beside it")
    parser.set_defaults(run=tree_probes)


def tree_probes(arguments: argparse.Namespace) -> None:
    """Train a probe that predicts the syntactic head of each word from all attention heads; write a row per head.

    The probe is compared with fixed offsets and, with --random-control, with a probe on a model with random weights.
    Its scores (UAS), settings and learning curve, and the number of words that were left out because they or their
    heads have no tokens, are written beside the output, to a file of the same name that ends in .summary.json.
    """
    settings = settings_of(arguments, TreeProbeSettings(words=arguments.words != NONE))
    inputs = [arguments.texts, arguments.test_texts, Path(arguments.words)]
    check_output(arguments.output, TABLES, inputs)
    check_output(_summary_path(arguments.output), others=inputs)
    checkpoint, pass_settings = loaded(arguments)
    files = checkpoint.files
    data = _read(arguments, checkpoint, pass_settings, settings.seed)
    _say_size(data, checkpoint.attentions[pass_settings.kind], arguments.memory_mb * 2**20)
    vectors = _vectors(arguments.words, checkpoint, data)
    facts = checkpoint_facts(checkpoint, pass_settings) | {
        "words": arguments.words,
        "texts sha256": texts_sha256(data.texts),
    }
    train, test = _features(checkpoint, data, vectors, pass_settings)
    n_words_left_out = _say_words(train, test)
    offsets = offset_scores(train, test)
    results = {"probe": _trained(train, test, vectors, settings)}
    if arguments.random_control:
        del checkpoint, train, test  # one checkpoint and its attention in memory at a time
        control = load_checkpoint(
            randomly_initialised(files, settings.seed), device=arguments.device, dtype=arguments.dtype
        )
        train, test = _features(control, data, vectors, pass_settings)
        results["random control"] = _trained(train, test, vectors, settings)
    _write(arguments, settings, results, offsets, n_words_left_out, facts)


def _summary_path(output: Path) -> Path:
    return output.with_suffix(".summary.json")


def _read(arguments: argparse.Namespace, checkpoint: Checkpoint, settings: PassSettings, seed: int) -> _Texts:
    check_kind(settings.kind)
    texts = first_texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    if arguments.test_texts is None:
        train, test = split(len(first_texts), arguments.test_share, seed)
    else:
        texts = (
            *first_texts,
            *read_texts(arguments.test_texts, arguments.text_columns, arguments.parser),
        )
        train, test = np.arange(len(first_texts)), np.arange(len(first_texts), len(texts))
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    parsed = dependencies([queries_text(texts[index], settings.kind) for index in prepared])
    trees = list(progress_bar(([tree] for tree in parsed), len(prepared), "parsing"))
    return _Texts(
        texts=texts, train=train.tolist(), test=test.tolist(), prepared=prepared, trees=dict(zip(prepared, trees))
    )


def _say_size(data: _Texts, layers: AttentionLayers, budget: int) -> None:
    n_words = [min(len(data.trees[index].heads), text.n_tokens) for index, text in data.prepared.items()]
    check_fits(n_words, layers.n_layers, layers.n_heads, budget)
    megabytes = attention_bytes(n_words, layers.n_layers, layers.n_heads) / 2**20
    print(f"The attention of {len(n_words):,} texts takes {megabytes:,.0f} MB of memory.", file=sys.stderr)


def _vectors(words: str, checkpoint: Checkpoint, data: _Texts) -> WordVectors:
    """Vectors of the words of the prepared texts; a random control uses those of the real checkpoint."""
    if words == NONE:
        return no_vectors([len(tree.heads) for tree in data.trees.values()])
    if words == EMBEDDINGS:
        return embedded_words(
            checkpoint, [word_pieces(text, data.trees[index].words) for index, text in data.prepared.items()]
        )
    word_forms = [
        data.trees[index].words.shown(queries_text(data.texts[index], text.kind))
        for index, text in data.prepared.items()
    ]
    vectors = vectors_from_file(Path(words), word_forms)
    is_unknown = np.concatenate(vectors.rows) == UNKNOWN
    print(f"{is_unknown.sum():,} of {len(is_unknown):,} words have no vector in {words}.", file=sys.stderr)
    return vectors


def _features(
    checkpoint: Checkpoint, data: _Texts, vectors: WordVectors, settings: PassSettings
) -> tuple[list[ProbeText], list[ProbeText]]:
    check_settings(checkpoint, settings)
    indices = list(data.prepared)
    words = [data.trees[index].words for index in indices]
    batches = word_attention_maps(checkpoint, list(data.prepared.values()), words, settings)
    passed = {indices[row]: features for row, features in progress_bar(batches, len(indices))}
    rows = dict(zip(indices, vectors.rows))
    return probe_texts(passed, data.trees, rows, data.train), probe_texts(passed, data.trees, rows, data.test)


def _say_words(train: Sequence[ProbeText], test: Sequence[ProbeText]) -> int:
    n_words = n_left_out([*train, *test])
    few = little_data(sum(text.n_learned for text in train), len(train), len(test))
    for warning in filter(None, [left_out(n_words), *few]):
        print(warning, file=sys.stderr)
    return n_words


def _trained(
    train: Sequence[ProbeText], test: Sequence[ProbeText], vectors: WordVectors, settings: TreeProbeSettings
) -> TrainedProbe:
    from attention_sieve.core.tree_probes.training import predicted_heads
    from attention_sieve.core.tree_probes.training import train as trained

    with ProgressBar(unit="text") as bar:
        for training in trained(train, vectors.table, settings):
            bar.set_description(f"held-out UAS {training.epochs[-1].held_out_score:.3f}", refresh=False)
            bar.reach(training.n_seen, training.n_texts * settings.epochs)
    return TrainedProbe(training=training, score=uas(predicted_heads(training.probe, test, vectors.table), test))


def _write(
    arguments: argparse.Namespace,
    settings: TreeProbeSettings,
    results: Mapping[str, TrainedProbe],
    offsets: Mapping[int, AttachmentScore],
    n_words_left_out: int,
    facts: Mapping[str, str],
) -> None:
    scores = {name: result.score for name, result in results.items()}
    scores |= {_offset_name(offset): score for offset, score in offsets.items()}
    columns: dict[str, np.ndarray] = {}
    for prefix, result in zip(("", "control_"), results.values()):
        columns |= {f"{prefix}{name}": weight.ravel() for name, weight in zip("wu", result.training.probe.weights)}
    n_layers, n_heads = results["probe"].training.probe.weights.shape[1:]
    index = pd.MultiIndex.from_product([range(n_layers), range(n_heads)], names=["layer", "head"])
    write_table(arguments.output, pd.DataFrame(columns, index=index).reset_index(), facts)
    summary = {
        **facts,
        "settings": asdict(settings),
        "UAS": {name: asdict(score) for name, score in scores.items()},
        "words left out": n_words_left_out,
        "training": {name: _course(result.training) for name, result in results.items()},
    }
    write(
        _summary_path(arguments.output),
        lambda path: path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8"),
    )
    print(_table(scores))


def _course(training: ProbeTraining) -> dict[str, Any]:
    return {
        "texts": training.n_texts,
        "texts held out": training.n_held_out,
        "best epoch": training.best,
        "a_start, a_end": training.probe.root_parts.tolist(),
        "epochs": [asdict(epoch) for epoch in training.epochs],
    }


def _offset_name(offset: int) -> str:
    return "right-branching" if offset == RIGHT_BRANCHING else f"offset {offset:+d}, best on the training texts"


def _table(scores: Mapping[str, AttachmentScore]) -> str:
    width = max(map(len, scores))
    first = next(iter(scores.values()))
    rows = [f"UAS on {first.n_words:,} words of {first.n_texts:,} texts, with its {LEVEL:.0%} interval"]
    rows += [f"{name:{width}}  {s.share:6.1%}  {s.low:6.1%} to {s.high:6.1%}" for name, s in scores.items()]
    return "\n".join(rows)
