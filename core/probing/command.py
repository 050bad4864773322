"""The command `python -m core probe`: how well all heads together tell which word is a word's head."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from tqdm import tqdm

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from core.checkpoints.find import load_checkpoint, randomly_initialised
from core.commands import (
    TABLES,
    add_checkpoint_options,
    add_texts_options,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write,
    write_table,
)
from core.passes.prepare import check_settings, queries_text
from core.passes.texts import PassText
from core.probing.attachment import LEVEL, RIGHT_BRANCHING, AttachmentScore
from core.probing.features import check_kind, embedded_words, word_attention_maps, word_pieces
from core.probing.probe import ProbeSettings, Training, offset_scores, uas
from core.probing.texts import (
    ProbeText,
    attention_bytes,
    check_fits,
    few_test_texts,
    few_words,
    left_out,
    n_left_out,
    probe_texts,
    split,
)
from core.probing.word_vectors import WordVectors, no_vectors, vectors_from_file
from core.texts.relations import Dependencies, dependencies
from core.texts.text import SUFFIXES, Text, texts_sha256

NONE: Final = "none"
EMBEDDINGS: Final = "embeddings"
OWN_SETTINGS: Final = tuple(field.name for field in fields(ProbeSettings) if field.type in (int, float))
"""Settings that are numbers, each of them an option."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Texts:
    """The texts of a run and what is known of them before a pass."""

    texts: tuple[Text, ...]
    train: Sequence[int]
    """Indices of the training texts."""
    test: Sequence[int]
    prepared: Mapping[int, PassText]
    """By place; none of a text that is left out, and so below."""
    trees: Mapping[int, Dependencies]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Trained:
    """A trained probe and how well it does."""

    training: Training
    score: AttachmentScore


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("probe", help="train a probe for dependency heads", description=probe.__doc__)
    add_checkpoint_options(parser)
    add_texts_options(parser, f"training texts with trees (else spaCy parses them): {', '.join(SUFFIXES)}")
    parser.add_argument("--test-texts", type=Path, help="texts to test on; else a share of --texts is")
    parser.add_argument("--test-share", type=float, default=0.25, help="share of --texts to test on")
    parser.add_argument(
        "--words", default=NONE, help="none, embeddings (the checkpoint's own), or a text file of vectors, as GloVe's"
    )
    parser.add_argument("--bias", action="store_true", help="as in the authors' code: a weight that no word changes")
    for name in OWN_SETTINGS:
        default = getattr(ProbeSettings, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--memory-mb", type=int, default=1024, help="of attention in memory, at most")
    parser.add_argument("--random-control", action="store_true", help="train on a checkpoint of random weights too")
    parser.add_argument("--output", required=True, type=Path, help=".csv or .parquet; a summary is put beside it")
    parser.set_defaults(run=probe)


def probe(chosen: argparse.Namespace) -> None:
    """Train a probe for dependency heads and test it against fixed offsets and a random control.

    Writes one row per head: layer, head, w (weight of the attention from a candidate to the word) and u (from the word
    to a candidate), or their norms where they depend on words; control_w and control_u of the random control. The
    summary beside it, of the same name with .summary.json, holds the scores, the settings, the learning curve, and how
    many words were left out because they, or their heads, have no tokens.
    """
    settings = ProbeSettings(
        words=chosen.words != NONE, bias=chosen.bias, **{name: getattr(chosen, name) for name in OWN_SETTINGS}
    )
    _check_outputs(chosen)
    checkpoint, asked = loaded(chosen)
    files = checkpoint.files
    read = _read(chosen, checkpoint, asked)
    _say_size(read, checkpoint.attentions[asked.kind], chosen.memory_mb * 2**20)
    vectors = _vectors(chosen.words, checkpoint, read)
    facts = checkpoint_facts(checkpoint, asked) | {"words": chosen.words, "texts sha256": texts_sha256(read.texts)}
    train, test = _taken(checkpoint, read, vectors, asked)
    n_words_left_out = _say_words(train, test)
    offsets = offset_scores(train, test)
    trained = {"probe": _trained(train, test, vectors, settings)}
    if chosen.random_control:
        del checkpoint, train, test  # one checkpoint and its attention in memory at a time
        control = load_checkpoint(randomly_initialised(files, settings.seed), device=chosen.device, dtype=chosen.dtype)
        train, test = _taken(control, read, vectors, asked)
        trained["random control"] = _trained(train, test, vectors, settings)
    _write(chosen, settings, trained, offsets, n_words_left_out, facts)


def _summary_path(output: Path) -> Path:
    return output.with_suffix(".summary.json")


def _check_outputs(chosen: argparse.Namespace) -> None:
    """Refuse before the work what cannot be written, or would be written over what is read."""
    read = [chosen.texts, chosen.test_texts, Path(chosen.words)]
    check_output(chosen.output, TABLES, read)
    check_output(_summary_path(chosen.output), others=read)


def _read(chosen: argparse.Namespace, checkpoint: Checkpoint, asked: PassSettings) -> _Texts:
    check_kind(asked.kind)
    texts = own = read_texts(chosen.texts, chosen.text_columns)
    if chosen.test_texts is None:
        train, test = split(len(own), chosen.test_share, chosen.seed)
    else:
        texts = (*own, *read_texts(chosen.test_texts, chosen.text_columns))
        train, test = np.arange(len(own)), np.arange(len(own), len(texts))
    prepared = prepared_texts(checkpoint, texts, asked, chosen.too_long)
    parsed = dependencies([queries_text(texts[place], asked.kind) for place in prepared])
    trees = list(progress_bar(([tree] for tree in parsed), len(prepared), "parsing"))
    return _Texts(
        texts=texts, train=train.tolist(), test=test.tolist(), prepared=prepared, trees=dict(zip(prepared, trees))
    )


def _say_size(read: _Texts, layers: AttentionLayers, budget: int) -> None:
    n_words = [min(len(read.trees[place].heads), text.n_tokens) for place, text in read.prepared.items()]
    check_fits(n_words, layers.n_layers, layers.n_heads, budget)
    needed = attention_bytes(n_words, layers.n_layers, layers.n_heads) / 2**20
    print(f"The attention of {len(n_words):,} texts takes {needed:,.0f} MB of memory.", file=sys.stderr)


def _vectors(words: str, checkpoint: Checkpoint, read: _Texts) -> WordVectors:
    """Vectors of the words of the texts that are prepared; for a random control they are the checkpoint's too."""
    if words == NONE:
        return no_vectors([len(tree.heads) for tree in read.trees.values()])
    if words == EMBEDDINGS:
        return embedded_words(
            checkpoint, [word_pieces(text, read.trees[place].words) for place, text in read.prepared.items()]
        )
    shown = [
        read.trees[place].words.shown(queries_text(read.texts[place], text.kind))
        for place, text in read.prepared.items()
    ]
    vectors = vectors_from_file(Path(words), shown)
    print(f"{vectors.n_unknown:,} of {vectors.n_words:,} words have no vector in {words}.", file=sys.stderr)
    return vectors


def _taken(
    checkpoint: Checkpoint, read: _Texts, vectors: WordVectors, asked: PassSettings
) -> tuple[list[ProbeText], list[ProbeText]]:
    """Training and test texts, with the attention of a checkpoint."""
    check_settings(checkpoint, asked)
    places = list(read.prepared)
    words = [read.trees[place].words for place in places]
    work = word_attention_maps(checkpoint, list(read.prepared.values()), words, asked)
    passed = {places[row]: features for row, features in progress_bar(work, len(places))}
    rows = dict(zip(places, vectors.rows))
    return probe_texts(passed, read.trees, rows, read.train), probe_texts(passed, read.trees, rows, read.test)


def _say_words(train: Sequence[ProbeText], test: Sequence[ProbeText]) -> int:
    """Warn if there is little training or test data, and how many words are left out, which is returned."""
    n_words = n_left_out([*train, *test])
    few = few_words(sum(text.n_learned for text in train), len(train))
    for said in (left_out(n_words), few, few_test_texts(len(test))):
        if said:
            print(said, file=sys.stderr)
    return n_words


def _trained(
    train: Sequence[ProbeText], test: Sequence[ProbeText], vectors: WordVectors, settings: ProbeSettings
) -> _Trained:
    from core.probing.training import predicted_heads
    from core.probing.training import train as trained

    with tqdm(unit="text", disable=not sys.stderr.isatty()) as bar:
        for training in trained(train, vectors.table, settings):
            epochs = len(training.epochs) - (training.done == training.n_texts)
            bar.total = training.n_texts * settings.epochs
            bar.set_description(f"held-out UAS {training.epochs[-1].held_out_score:.3f}", refresh=False)
            bar.update(epochs * training.n_texts + training.done - bar.n)
    return _Trained(training=training, score=uas(predicted_heads(training.probe, test, vectors.table), test))


def _write(
    chosen: argparse.Namespace,
    settings: ProbeSettings,
    trained: Mapping[str, _Trained],
    offsets: Mapping[int, AttachmentScore],
    n_words_left_out: int,
    facts: Mapping[str, str],
) -> None:
    scores = {name: one.score for name, one in trained.items()}
    scores |= {_offset_name(offset): score for offset, score in offsets.items()}
    columns: dict[str, np.ndarray] = {}
    for prefix, one in zip(("", "control_"), trained.values()):
        columns |= {f"{prefix}{name}": weight.ravel() for name, weight in zip("wu", one.training.probe.weights)}
    n_layers, n_heads = trained["probe"].training.probe.weights.shape[1:]
    index = pd.MultiIndex.from_product([range(n_layers), range(n_heads)], names=["layer", "head"])
    write_table(chosen.output, pd.DataFrame(columns, index=index).reset_index(), facts)
    summary = {
        **facts,
        "settings": asdict(settings),
        "UAS": {name: asdict(score) for name, score in scores.items()},
        "words left out": n_words_left_out,
        "training": {name: _course(one.training) for name, one in trained.items()},
    }
    write(
        _summary_path(chosen.output),
        lambda path: path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8"),
    )
    print(_table(scores))


def _course(training: Training) -> dict[str, Any]:
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
    one = next(iter(scores.values()))
    rows = [f"UAS on {one.n_words:,} words of {one.n_texts:,} texts, with its {LEVEL:.0%} interval"]
    rows += [f"{name:{width}}  {s.share:6.1%}  {s.low:6.1%} to {s.high:6.1%}" for name, s in scores.items()]
    return "\n".join(rows)
